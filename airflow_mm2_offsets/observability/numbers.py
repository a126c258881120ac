"""The numbers of a failover, from the JSON that its tasks return.

They take plain JSON, as an XCom holds it. So an XCom of another release, or of a user's own task,
is no error: a number that is missing or unreadable is left out.
"""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from opentelemetry import trace

from airflow_mm2_offsets.observability.metrics import NOT_KNOWN, emit

_STATUSES = ("exact", "bounded", "refused", "not_safe")
_COMMIT_STATUSES = ("committed", "unchanged", "kept", "refused", "failed")
_READINESS = {
    "replication_lag": "replication_lag_records",
    "lag_seconds": "replication_lag_seconds",
    "sync_age": "sync_age_seconds",
    "archive_age": "archive_age_seconds",
}
"""Names of checks, and the metric of the greatest value that they have."""


def emit_plan(plan: Mapping[str, Any]) -> None:
    """Send the totals of a plan, and note them in the step's span."""
    totals = _part(plan, "totals")
    span = trace.get_current_span()
    for name in ("partitions", *_STATUSES):
        if (count := _number(totals.get(name))) is not None:
            span.set_attribute(f"mm2_offsets.{name}", count)
            if name in _STATUSES:
                emit("positions", count, status=name)
    if "max_reread" in totals:
        _emit_known("read_again_records", totals["max_reread"])


def emit_groups(report: Mapping[str, Any]) -> None:
    """Send how many offsets of consumer groups have which status; a dry run commits none."""
    totals = _part(report, "totals")
    if report.get("dry_run"):
        return
    for status in _COMMIT_STATUSES:
        if (count := _number(totals.get(status))) is not None:
            emit("group_offsets", count, status=status)
    if "max_reread" in totals:
        _emit_known("group_read_again_records", totals["max_reread"])


def emit_forecast(forecast: Mapping[str, Any]) -> None:
    """Send how many records a failover can lose and repeat, at most."""
    totals = _part(forecast, "totals")
    for name in ("at_risk", "read_again"):
        if "at_most" in (forecast_range := _part(totals, name)):
            _emit_known(f"{name}_records", forecast_range["at_most"])


def emit_readiness(report: Mapping[str, Any]) -> None:
    """Send the verdict of a readiness report, and the numbers of its checks.

    A check's ``number`` counts, else its ``value`` if that is a number and no sentence.
    """
    if verdict := report.get("verdict"):
        is_ready = verdict in ("ready", "ready_with_warnings")
        emit("ready", int(is_ready), policy=_text(report, "policy"))
    greatest: dict[str, float] = {}
    checks = report.get("checks")
    for check in checks if isinstance(checks, list) else ():
        if not isinstance(check, Mapping):
            continue
        metric = _READINESS.get(str(check.get("name")))
        value = _number(check.get("number", check.get("value")))
        if metric is not None and value is not None:
            greatest[metric] = max(greatest.get(metric, value), value)
    for metric, value in greatest.items():
        emit(metric, value)


def emit_report(report: Mapping[str, Any]) -> None:
    """Count a move by its outcome; of a drill, send its seconds and when it ended."""
    policy, outcome = _text(report, "policy"), _text(report, "outcome")
    emit("failovers", policy=policy, outcome=outcome)
    if policy != "drill":
        return
    conn_id = _text(report, "mm2_conn_id")
    if (seconds := _drill_seconds(report)) is not None:
        emit("drill_seconds", seconds, conn_id=conn_id)
    if outcome == "drilled":
        emit("drilled_at_seconds", round(time.time(), 3), conn_id=conn_id)


def _drill_seconds(report: Mapping[str, Any]) -> float | None:
    """Return the seconds of the report's steps, which run one after the other."""
    steps = report.get("steps")
    found = [
        _number(step.get("seconds"))
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, Mapping)
    ]
    known = [each for each in found if each is not None]
    return round(sum(known), 3) if known else None


def emit_archive(run: Mapping[str, Any]) -> None:
    """Send what a run of the archive added, and when."""
    if (new_syncs := _number(run.get("new_syncs"))) is not None:
        emit("archived_syncs", new_syncs)
    archived_at = _time(run.get("as_of"))
    if archived_at is not None:
        emit("archived_at_seconds", archived_at)
        emit("archive_age_seconds", round(max(time.time() - archived_at, 0.0), 3))


def _emit_known(name: str, value: object) -> None:
    """Send a number that may not be known: a gauge would go on showing the value before."""
    number = _number(value)
    emit(name, NOT_KNOWN if number is None else number)


def _part(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = values.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    """Return a number, which may be text or the greatest of several; None if it is no number."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, str):
        numbers = [number for each in value if (number := _number(each)) is not None]
        return max(numbers, default=None)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    if not -1e300 < number < 1e300:  # NaN and infinity: StatsD has no word for them  # noqa: PLR2004
        return None
    return int(number) if number.is_integer() else number


def _time(text: object) -> float | None:
    """Return an ISO 8601 time with a zone in seconds since 1970."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None
