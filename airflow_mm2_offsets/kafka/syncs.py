"""Reads the offset-syncs topic of MirrorMaker 2 into an index."""

from dataclasses import dataclass

from airflow_mm2_offsets.core import SyncIndex
from airflow_mm2_offsets.core.naming import SYNCS_TOPIC_PREFIX
from airflow_mm2_offsets.errors import PositionError, SyncsTopicError, TopicNotFoundError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Progress
from airflow_mm2_offsets.kafka.pace import Pace
from airflow_mm2_offsets.kafka.sync_log import SkippedRecord, SyncLog, read_log


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncsRead:
    """What came of reading the topic."""

    index: SyncIndex
    read: int
    """Records read, with the skipped ones."""
    skipped_count: int
    skipped: tuple[SkippedRecord, ...]
    """The first ``SKIPPED_KEPT`` of them."""
    next_offset: int
    """Where a later read goes on."""


def read_syncs(
    cluster: KafkaCluster,
    topic: str,
    *,
    start: int = 0,
    known: SyncIndex | None = None,
    progress: Progress | None = None,
) -> SyncsRead:
    """Read every offset sync from ``start`` to the topic's end; see ``read_log``.

    A topic that was made again and has grown past ``start`` since looks like one that goes on:
    who reads on should compare its id (``KafkaCluster.topics``).

    Args:
        cluster: The cluster that holds the topic (``offset-syncs.topic.location``).
        topic: Its name; see ``Naming.syncs_topic``.
        start: The first offset to read: ``next_offset`` of an earlier read goes on from there.
        known: The index of that earlier read, which the result continues.
        progress: Told the number of records read and the seconds passed, after each batch.

    Raises:
        SyncsTopicError: The topic does not exist or holds no offset sync; or it ends before
            ``start``, or begins after it: read it from 0 then, without ``known``.
        Mm2OffsetsError: See ``drain``.
    """
    log = _read_log(cluster, topic, start, progress)
    pace = Pace(cluster.rest)
    pairs = {place: columns.pairs(pace) for place, columns in log.columns.items()}
    complete = log.complete() if start == 0 else frozenset()
    index = (known or SyncIndex()).extended(pairs, complete=complete)
    if not len(index):
        raise _unusable(cluster, topic, _emptiness(log))
    return SyncsRead(
        index=index,
        read=log.read,
        skipped_count=log.skipped_count,
        skipped=tuple(log.skipped),
        next_offset=log.next_offset,
    )


def _read_log(cluster: KafkaCluster, topic: str, start: int, progress: Progress | None) -> SyncLog:
    try:
        # From 0 on, what is left of the topic is all there is; later on, a gap would go unseen.
        return read_log(cluster, topic, start, refuse_deleted=start > 0, progress=progress)
    except TopicNotFoundError as error:
        raise _unusable(cluster, topic, "does not exist") from error
    except PositionError as error:
        raise SyncsTopicError(str(error)) from error


def _emptiness(log: SyncLog) -> str:
    if not log.read:
        return "is empty"
    first = log.skipped[0]
    return (
        f"holds {log.read} records but no offset sync (the first, at offset {first.offset}: "
        f"{first.reason})"
    )


def _unusable(cluster: KafkaCluster, topic: str, what: str) -> SyncsTopicError:
    others = sorted(
        name
        for name in cluster.topic_names()
        if name.startswith(SYNCS_TOPIC_PREFIX) and name != topic
    )
    seen = f"it has {', '.join(others)}" if others else "it has no other topic that looks like one"
    return SyncsTopicError(
        f"{cluster.name}: the offset-syncs topic {topic} {what}; {seen}. Check that "
        "offset-syncs.topic.location (source or target) names this cluster, that the alias in "
        "the topic's name is the OTHER cluster's, that emit.offset-syncs.enabled is not false, "
        "and that MirrorMaker 2 has started and copied a record"
    )
