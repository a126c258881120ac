"""Rules about offset syncs: are they written, how many, and how well are they kept?"""

from collections.abc import Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.hits import hit_of
from airflow_mm2_offsets.planning.mirror_connector import (
    EMIT_SYNCS,
    OFFSET_LAG_MAX,
    RECOMMENDED_OFFSET_LAG,
    MirrorConnector,
)

_SYNCS_REPLICATION = "offset-syncs.topic.replication.factor"
_FLUSH = "target.cluster.offset.flush.interval.ms"
"""How the dedicated mode (``B.offset.flush.interval.ms``) and Strimzi configure their worker."""
_DEFAULT_FLUSH = 60_000
"""Milliseconds (Connect's ``WorkerConfig``)."""


def _not_emitted(connector: MirrorConnector) -> Iterator[Hit]:
    if not connector.emits_syncs:
        yield hit_of(connector, EMIT_SYNCS)


def _large_lag(connector: MirrorConnector) -> Iterator[Hit]:
    if (connector.number(OFFSET_LAG_MAX) or 0) > RECOMMENDED_OFFSET_LAG:
        yield hit_of(connector, OFFSET_LAG_MAX)


def _no_lag(connector: MirrorConnector) -> Iterator[Hit]:
    lag = connector.number(OFFSET_LAG_MAX)
    if lag is not None and lag <= 0:
        yield hit_of(connector, OFFSET_LAG_MAX)


def _one_replica(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.number(_SYNCS_REPLICATION) == 1:
        yield hit_of(connector, _SYNCS_REPLICATION)


def _slow_flush(connector: MirrorConnector) -> Iterator[Hit]:
    if (connector.number(_FLUSH) or 0) > _DEFAULT_FLUSH:
        yield hit_of(connector, _FLUSH)


SYNC_RULES: tuple[Rule[MirrorConnector], ...] = (
    Rule(
        check="syncs_not_emitted",
        severity=Severity.ERROR,
        why="No offset sync is written: no position can be translated.",
        remedy="emit.offset-syncs.enabled = true",
        find=_not_emitted,
    ),
    Rule(
        check="offset_lag_large",
        severity=Severity.WARNING,
        why=(
            "Offset syncs are far apart: where no evidence narrows the answer, a job reads so many "
            "records of each topic-partition again."
        ),
        remedy=f"{OFFSET_LAG_MAX} = {RECOMMENDED_OFFSET_LAG}, or less",
        find=_large_lag,
    ),
    Rule(
        check="offset_lag_zero",
        severity=Severity.NOTE,
        why=(
            "An offset sync is written for each record: answers are the best there are, at the "
            "cost of one more record for each copied one."
        ),
        remedy=f"nothing; {OFFSET_LAG_MAX} = 10 costs a tenth, if the syncs topic grows too fast",
        find=_no_lag,
    ),
    Rule(
        check="syncs_replication",
        severity=Severity.WARNING,
        why="The offset-syncs topic has one replica: one lost broker takes all offset syncs.",
        remedy=(
            f"{_SYNCS_REPLICATION} = 3; it counts for a new topic: give an existing one replicas "
            f"by kafka-reassign-partitions.sh"
        ),
        find=_one_replica,
    ),
    Rule(
        check="offset_flush_slow",
        severity=Severity.WARNING,
        why=(
            "Connect commits rarely: the last sync of an idle topic comes that late, and a worker "
            "that was killed copies that much again."
        ),
        remedy=(
            f"offset.flush.interval.ms = {_DEFAULT_FLUSH}, or less, for the worker "
            f"(in mm2.properties: B.offset.flush.interval.ms for the target B)"
        ),
        find=_slow_flush,
    ),
)
