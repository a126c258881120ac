"""The table of all metrics, and the way to Airflow's exporter."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow.providers.common.compat.sdk import Stats, conf

from airflow_mm2_offsets.observability.step import current_step

log = logging.getLogger(__name__)

PREFIX = "mm2_offsets"
"""Airflow puts its own prefix before it: ``airflow`` by default."""
NOT_KNOWN = -1
"""The value of a number that could not be established; 0 would read as "nothing is lost"."""
NO_VALUE = "none"
"""The value of a tag that does not apply: an exporter may refuse an empty one."""


class MetricKind(StrEnum):
    """What a metric's values mean to an exporter."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric; its name is the key in ``METRICS``."""

    kind: MetricKind
    tags: tuple[str, ...]
    meaning: str


def _gauge(meaning: str, *tags: str) -> Metric:
    return Metric(kind=MetricKind.GAUGE, tags=("dag_id", *tags), meaning=meaning)


def _counter(meaning: str, *tags: str) -> Metric:
    return Metric(kind=MetricKind.COUNTER, tags=("dag_id", *tags), meaning=meaning)


METRICS: Mapping[str, Metric] = {
    "replication_lag_records": _gauge(
        "Records of the source that MirrorMaker 2 has not copied: the partition with the most",
        "conn_id",
    ),
    "replication_lag_seconds": _gauge(
        "The same in seconds, by the heartbeats of MirrorMaker 2", "conn_id"
    ),
    "sync_age_seconds": _gauge("Age of the newest offset sync", "conn_id"),
    "archive_age_seconds": _gauge("Age of the archive's last run", "conn_id"),
    "archived_at_seconds": _gauge(
        "When the offset syncs were last archived, in seconds since 1970", "conn_id"
    ),
    "archived_syncs": _counter("Offset syncs added to the archive", "conn_id"),
    "ready": _gauge(
        "1 if the last check found the failover ready, with or without warnings; else 0",
        "conn_id",
        "policy",
    ),
    "positions": _gauge(
        "Partitions of the plan with this status: exact, bounded, refused or not_safe",
        "conn_id",
        "policy",
        "status",
    ),
    "read_again_records": _gauge(
        "Records that can be processed twice, at most; -1: not known", "conn_id", "policy"
    ),
    "at_risk_records": _gauge(
        "Records that can be lost, at most, by the forecast; -1: not known", "conn_id", "policy"
    ),
    "group_offsets": _gauge(
        "Offsets of consumer groups with this status after the last run: committed, unchanged, "
        "kept, refused or failed",
        "conn_id",
        "status",
    ),
    "group_read_again_records": _gauge(
        "Records that the groups read again from our commits, at most; -1: not known", "conn_id"
    ),
    "step_seconds": _gauge(
        "From a step's first start to its end; the time in the triggerer counts", "policy", "step"
    ),
    "errors": _counter(
        "Tries of a step that ended with an error of this class", "policy", "step", "kind"
    ),
    "failovers": _counter("Failovers that ended with this outcome", "policy", "outcome"),
    "drill_seconds": _gauge("How long the last drill took", "conn_id"),
    "drilled_at_seconds": _gauge(
        "When the last drill that succeeded ended, in seconds since 1970", "conn_id"
    ),
}
"""All metrics, by their names without prefix. No tag has a value for each topic-partition."""

_UNSAFE = re.compile(r"[^a-zA-Z0-9_.-]")


def emit(name: str, value: float = 1, **tags: str | None) -> None:
    """Send a number as Airflow's metrics are configured; log it if that fails.

    Args:
        name: A key of ``METRICS``.
        value: What a gauge shows, or a counter adds.
        tags: Those of the metric that the current step does not know.
    """
    metric = METRICS[name]
    step = current_step()
    known = step.tags() if step else {}
    values = known | {tag: text for tag, text in tags.items() if text is not None}
    texts = {tag: _UNSAFE.sub("_", str(values.get(tag) or NO_VALUE)) for tag in metric.tags}
    try:
        _send(f"{PREFIX}.{name}", metric.kind, value, texts)
    except Exception as error:  # noqa: BLE001 - an exporter may raise anything
        log.warning("Metric %s.%s was not sent: %r", PREFIX, name, error)


def _send(name: str, kind: MetricKind, value: float, tags: dict[str, str]) -> None:
    send: Callable[..., None] = Stats.gauge if kind is MetricKind.GAUGE else Stats.incr
    send(name, value, tags=tags)
    if _drops_tags():
        # Airflow's own rule: the values stand in the name, and a dot in one would look like a part.
        parts = (text.replace(".", "__") for text in tags.values())
        send(".".join([name, *parts]), value)


def _drops_tags() -> bool:
    """Tell whether metrics go to a StatsD without tags, and names with values are wanted."""
    return (
        conf.getboolean("metrics", "statsd_on", fallback=False)
        and not conf.getboolean("metrics", "statsd_datadog_enabled", fallback=False)
        and not conf.getboolean("metrics", "statsd_influxdb_enabled", fallback=False)
        and conf.getboolean("metrics", "legacy_names_on", fallback=True)
    )
