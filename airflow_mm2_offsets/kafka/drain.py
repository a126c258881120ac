"""Reads partitions from where one says to where they ended when the reading started."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Place

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.session import Session, open_consumer

BATCH_SIZE = 10_000
_POLL_SECONDS = 0.1

_PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - how the library names its local errors
_IGNORED = frozenset(
    {
        # The client looks for the coordinator of the group that is never joined.
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        # Mended by trying again, or else the reading stalls and says why.
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
    }
)

Progress: TypeAlias = Callable[[int, float], None]
"""Is told the number of records read so far and the seconds since the start."""


class Record(Protocol):
    """A ``confluent_kafka.Message`` that was delivered: its place is never None."""

    def topic(self) -> str:
        """Return the topic."""

    def partition(self) -> int:
        """Return the partition."""

    def offset(self) -> int:
        """Return the offset."""

    def key(self) -> bytes | None:
        """Return the key."""

    def value(self) -> bytes | None:
        """Return the value; None is a tombstone."""

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp and its milliseconds since 1970."""

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers."""


def drain(
    cluster: KafkaCluster,
    starts: Mapping[TopicPartition, int],
    *,
    stops: Mapping[TopicPartition, int] | None = None,
    first_only: bool = False,
    isolation: str = "read_uncommitted",
    progress: Progress | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of partitions in batches, up to the ends they have at the start.

    A partition has ended when its last record is there or the broker says so: after the last
    record there may be transaction markers, which no consumer sees, so that its position never
    reaches the end.

    Args:
        cluster: The cluster to read from; its timeout is how long the broker may be silent.
        starts: The first offset to read of each partition; what is deleted of it is left out.
        stops: Where to end a partition before its end: the offset after the last to read.
        first_only: A partition ends with the first batch that holds a record of it.
        isolation: ``read_committed`` or ``read_uncommitted``.
        progress: Called after each batch.

    Raises:
        TopicNotFoundError: A topic or a partition does not exist.
        PositionError: A start lies beyond the partition's end.
        ClusterUnreachableError: Nothing came for the cluster's timeout, or authentication failed.
        ClusterRefusedError: A broker answered with an error.
    """
    held = cluster.watermarks(starts)
    begins = {place: _begin(cluster, place, starts[place], held[place]) for place in starts}
    ends = {place: min(held[place].high, (stops or {}).get(place, MAX_OFFSET)) for place in starts}
    pending = {place: begin for place, begin in begins.items() if begin < ends[place]}
    if not pending:
        return
    most = 1 if first_only else max(ends[place] - begin for place, begin in pending.items())
    with open_consumer(
        cluster.name, cluster.config, cluster.timeout, isolation, prefetch=most
    ) as session:
        session.client.assign([Place(*place, begin) for place, begin in pending.items()])
        yield from _batches(session, _Reading(set(pending), ends, first_only), progress)


def _begin(cluster: KafkaCluster, place: TopicPartition, offset: int, held: Watermarks) -> int:
    topic, partition = place
    if offset > held.high:
        raise PositionError(
            f"{cluster.name}: topic {topic} partition {partition} ends at {held.high}, before the "
            f"start {offset}: it was truncated or created again; read it from its beginning"
        )
    return max(offset, held.low)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What of each partition is to be read."""

    pending: set[TopicPartition]
    """Shrinks as partitions end."""
    ends: Mapping[TopicPartition, int]
    first_only: bool


def _batches(
    session: Session[Consumer], reading: _Reading, progress: Progress | None
) -> Iterator[list[Record]]:
    pending = reading.pending
    read, started = 0, time.monotonic()
    while pending:
        open_before = len(pending)
        messages = session.client.consume(BATCH_SIZE, timeout=_POLL_SECONDS)
        if records := _accept(session, messages, reading):
            read += len(records)
            yield records
            if progress is not None:
                progress(read, time.monotonic() - started)
        if records or len(pending) < open_before:
            session.touch()
            continue
        session.check()
        if session.is_over:
            raise session.unreachable()


def _accept(session: Session[Consumer], messages: list[Message], reading: _Reading) -> list[Record]:
    """Return the records among ``messages``; what has ended is pending no more."""
    records = cast("list[Record]", [message for message in messages if message.error() is None])
    if len(records) < len(messages):
        for message in messages:
            _hear(session, message, reading.pending)
    ends = reading.ends
    # Of a single partition, only the last record can end it: asking each would cost a tenth.
    latest = records[-1:] if len(ends) == 1 else records
    last = {(record.topic(), record.partition()): record.offset() for record in latest}
    ended = {
        place for place, offset in last.items() if reading.first_only or offset >= ends[place] - 1
    }
    if not ended:
        return records
    session.client.pause([Place(*place) for place in ended])
    reading.pending.difference_update(ended)
    return [
        record for record in records if record.offset() < ends[record.topic(), record.partition()]
    ]


def _hear(session: Session[Consumer], message: Message, pending: set[TopicPartition]) -> None:
    error = message.error()
    if error is None or error.code() in _IGNORED:
        return
    topic, partition = cast("TopicPartition", (message.topic(), message.partition()))
    if error.code() != _PARTITION_EOF:
        raise session.failure(error, f"topic {topic} partition {partition}")
    pending.discard((topic, partition))
