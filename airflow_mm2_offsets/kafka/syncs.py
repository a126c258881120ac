"""Reads the offset-syncs topic of MirrorMaker 2 into an index."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.core.naming import SYNCS_TOPIC_PREFIX
from airflow_mm2_offsets.core.wire import check_value, decode_key, decode_values
from airflow_mm2_offsets.errors import (
    PositionError,
    SyncsTopicError,
    TopicNotFoundError,
    WireFormatError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Progress, Record, drain

SKIPPED_KEPT = 20
"""How many skipped records are kept with their reasons; all are counted."""

SYNCS_PARTITION = 0  # MirrorSourceTask writes to this one whatever the topic has.


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that is not an offset sync."""

    offset: int
    reason: str


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
    """Read every offset sync from ``start`` to the topic's end.

    A record that is no offset sync (truncated, foreign, a tombstone, negative) is skipped,
    counted and reported.

    Args:
        cluster: The cluster that holds the topic (``offset-syncs.topic.location``).
        topic: Its name; see ``Naming.syncs_topic``.
        start: The first offset to read: ``next_offset`` of an earlier read goes on from there.
        known: The index of that earlier read, which the result continues.
        progress: Told the number of records read and the seconds passed, after each batch.

    Raises:
        SyncsTopicError: The topic does not exist, holds no offset sync, or ends before ``start``.
        ClusterUnreachableError: See ``drain``.
        ClusterRefusedError: See ``drain``.
    """
    reading = _Reading(next_offset=start)
    try:
        for batch in drain(cluster, {(topic, SYNCS_PARTITION): start}, progress=progress):
            reading.take(batch)
    except TopicNotFoundError as error:
        raise _unusable(cluster, topic, "does not exist") from error
    except PositionError as error:
        raise SyncsTopicError(str(error)) from error
    index = (known or SyncIndex()).extended(reading.pairs())
    if not len(index):
        raise _unusable(cluster, topic, reading.emptiness())
    return SyncsRead(
        index=index,
        read=reading.read,
        skipped_count=reading.skipped_count,
        skipped=tuple(reading.skipped),
        next_offset=reading.next_offset,
    )


class _ValuesByKey(dict[bytes | None, bytearray]):
    """The values of each key in a row; a key is checked when it comes first."""

    def __missing__(self, key: bytes | None) -> bytearray:
        decode_key(key)
        return self.setdefault(key, bytearray())


@dataclass(slots=True, kw_only=True)
class _Reading:
    """A read under way."""

    next_offset: int
    read: int = 0
    skipped_count: int = 0
    skipped: list[SkippedRecord] = field(default_factory=list)
    _values: _ValuesByKey = field(default_factory=_ValuesByKey)

    def take(self, batch: list[Record]) -> None:
        values = self._values
        for record in batch:
            try:
                value = check_value(record.value())
                values[record.key()] += value
            except WireFormatError as error:
                self._skip(record.offset(), str(error))
        self.read += len(batch)
        self.next_offset = batch[-1].offset() + 1

    def pairs(self) -> dict[TopicPartition, Iterator[tuple[int, int]]]:
        return {decode_key(key): decode_values(values) for key, values in self._values.items()}

    def emptiness(self) -> str:
        if not self.read:
            return "is empty"
        first = self.skipped[0]
        return (
            f"holds {self.read} records but no offset sync (the first, at offset {first.offset}: "
            f"{first.reason})"
        )

    def _skip(self, offset: int, reason: str) -> None:
        self.skipped_count += 1
        if len(self.skipped) < SKIPPED_KEPT:
            self.skipped.append(SkippedRecord(offset=offset, reason=reason))


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
