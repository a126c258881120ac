"""Runs a step: its span, its seconds, its errors, and the run's id in each line of its log."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Span, Status, StatusCode
from structlog.contextvars import bound_contextvars

from airflow_mm2_offsets.observability.metrics import emit
from airflow_mm2_offsets.observability.step import CURRENT, Step, current_step

log = logging.getLogger(__name__)

_PAUSES = frozenset(
    {"TaskDeferred", "TaskAwaitingInput", "AirflowRescheduleException", "CancelledError"}
)
"""What ends a part of a step and not the step: the task goes on later, or its triggerer stops.

By name, for the classes of Airflow move between releases.
"""
_GOOD_ENDS = frozenset({"AirflowSkipException", "DagRunTriggerException", "DownstreamTasksSkipped"})
"""What they raise though nothing went wrong."""


@contextmanager
def run_step(step: Step) -> Iterator[None]:
    """Run a step; a step within a step is a part of it, and counts once."""
    if current_step() is not None:
        yield
        return
    token = CURRENT.set(step)
    try:
        with bound_contextvars(**step.log_fields()), _span(step) as span:
            try:
                yield
            except BaseException as error:
                _end(step, span, error)
                raise
            _end(step, span, None)
    finally:
        CURRENT.reset(token)


def _end(step: Step, span: Span, error: BaseException | None) -> None:
    kinds = {kind.__name__ for kind in type(error).__mro__} if error else set()
    is_pause = bool(kinds & _PAUSES)
    failed = error is not None and not kinds & (_PAUSES | _GOOD_ENDS)
    if failed:
        kind = type(error).__name__
        span.set_status(Status(StatusCode.ERROR, kind))
        span.set_attribute("error.type", kind)
    span.set_attribute("mm2_offsets.deferred", is_pause)
    if step.is_wait or is_pause:
        return
    emit("step_seconds", round(max(time.time() - step.began, 0.0), 3))
    if failed:
        emit("errors", kind=kind)


@contextmanager
def _span(step: Step) -> Iterator[Span]:
    """Run a span, as Airflow's tracing is configured: within the span of Airflow's task."""
    span = _start_span(step)
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    finally:
        _end_span(span)


def _start_span(step: Step) -> Span:
    name = f"mm2_offsets.{step.name}{'.wait' if step.is_wait else ''}"
    try:
        return trace.get_tracer(__name__).start_span(name, attributes=step.attributes())
    except Exception as error:  # noqa: BLE001 - a span processor may raise anything
        log.warning("Span %s was not started: %r", name, error)
        return INVALID_SPAN


def _end_span(span: Span) -> None:
    try:
        span.end()
    except Exception as error:  # noqa: BLE001 - as in _start_span
        log.warning("A span was not sent: %r", error)
