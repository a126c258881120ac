"""docs/monitoring.md: its table and its alerts are of the metrics that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_mm2_offsets.observability import METRICS, MetricKind

PAGE = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text()


def test_the_table_is_the_code() -> None:
    """Each metric has its line, with type, tags and meaning, and each line its metric."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| `mm2_offsets.")]
    assert lines == [
        f"| `mm2_offsets.{name}` | {metric.kind} | "
        f"{', '.join(f'`{tag}`' for tag in metric.tags)} | {metric.meaning} |"
        for name, metric in METRICS.items()
    ]


def _rules() -> list[dict[str, Any]]:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (group,) = yaml.safe_load(block)["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def test_there_are_three_alerts() -> None:
    """Each has what Prometheus requires, and says what to do."""
    assert [rule["alert"] for rule in _rules()] == [
        "OffsetSyncsNotArchived",
        "MirrorMakerFarBehind",
        "FailoverNotReady",
    ]
    for rule in _rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_looks_at_metrics_that_exist(rule: dict[str, Any]) -> None:
    """By the names of gauges, which StatsD and OpenTelemetry both only write with underscores.

    OpenTelemetry's collector adds ``_total`` to a counter's name.
    """
    gauges = {
        f"airflow_mm2_offsets_{name}": metric
        for name, metric in METRICS.items()
        if metric.kind is MetricKind.GAUGE
    }
    names = re.findall(r"airflow_\w+", rule["expr"])
    assert names
    assert set(names) <= set(gauges)
    for name in names:
        assert set(re.findall(r"by \((\w+)\)", rule["expr"])) <= set(gauges[name].tags)
    opening, closing = rule["expr"].count("("), rule["expr"].count(")")
    assert opening == closing
