"""Metrics, spans and log fields, through Airflow's own exporters.

Operators and triggers call it. Who configures Airflow's StatsD or OpenTelemetry gets them; nothing
here opens a connection, and nothing here fails a task.
"""

from airflow_mm2_offsets.observability.metrics import METRICS, Metric, MetricKind, emit
from airflow_mm2_offsets.observability.numbers import (
    emit_archive,
    emit_forecast,
    emit_groups,
    emit_plan,
    emit_readiness,
    emit_report,
)
from airflow_mm2_offsets.observability.step import Step, current_step
from airflow_mm2_offsets.observability.tracing import run_step

__all__ = [
    "METRICS",
    "Metric",
    "MetricKind",
    "Step",
    "current_step",
    "emit",
    "emit_archive",
    "emit_forecast",
    "emit_groups",
    "emit_plan",
    "emit_readiness",
    "emit_report",
    "run_step",
]
