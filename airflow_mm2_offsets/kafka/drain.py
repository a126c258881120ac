"""Reads partitions from given offsets to the ends that they have when the read begins."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Place

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.kafka.clients import open_consumer
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.session import ClientSession
from airflow_mm2_offsets.kafka.throttle import Throttle

BATCH_SIZE = 1000
_POLL_SECONDS = 0.1
_UNCOMMITTED = "read_uncommitted"

_PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - how the library names its local errors
_OFFSET_GONE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
_IGNORED = frozenset(
    {
        # The client looks for the coordinator of a group that it never joins.
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        # librdkafka tries again. If that fails too, the read times out with the reason.
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
    }
)

Progress: TypeAlias = Callable[[int, float], None]
"""Called with the number of records read so far and the seconds since the start."""


class Record(Protocol):
    """A delivered ``confluent_kafka.Message``: topic, partition and offset are never None."""

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
    refuse_deleted: bool = False,
    isolation: str = _UNCOMMITTED,
    progress: Progress | None = None,
) -> Iterator[list[Record]]:
    """Yield the records of partitions in batches, up to the ends they have at the start.

    Args:
        cluster: The cluster to read from; its timeout is how long the broker may be silent.
        starts: The first offset to read of each partition.
        stops: Where to end a partition before its end: the offset after the last to read.
        first_only: Read a partition only up to the first batch that holds a record of it.
        refuse_deleted: Raise if records from a start on were deleted; else read those left.
        isolation: ``read_committed`` or ``read_uncommitted``.
        progress: Called after each batch.

    Raises:
        TopicNotFoundError: A topic or a partition does not exist.
        PositionError: A start lies beyond its partition's end, or records were deleted meanwhile.
        ClusterUnreachableError: Nothing came for the cluster's timeout, or authentication failed.
        ClusterRefusedError: A broker answered with an error.
    """
    watermarks = cluster.watermarks(starts)
    begins = {
        place: _begin(cluster.name, place, start, watermarks[place], refuse_deleted=refuse_deleted)
        for place, start in starts.items()
    }
    if isolation != _UNCOMMITTED:
        watermarks = cluster.watermarks(starts, isolation=isolation)
    stops = stops or {}
    ends = {place: min(watermarks[place].high, stops.get(place, MAX_OFFSET)) for place in starts}
    reading = _Reading(cluster=cluster.name, begins=begins, ends=ends, first_only=first_only)
    if reading.pending:
        yield from _read(cluster, reading, isolation, progress)


def _begin(
    cluster: str, place: TopicPartition, start: int, watermarks: Watermarks, *, refuse_deleted: bool
) -> int:
    if start > watermarks.high:
        problem = f"its end offset {watermarks.high} is below {start}: truncated or recreated"
    elif start < watermarks.low and refuse_deleted:
        problem = f"its first offset {watermarks.low} is above {start}: records were deleted"
    else:
        return max(start, watermarks.low)
    raise PositionError(
        f"{problem}; read it from its beginning",
        cluster=cluster,
        topic=place.topic,
        partition=place.partition,
        position=start,
    )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The offsets to read of each partition, and the partitions that have not ended.

    A partition ends with its last record, or when the broker reports its end. Transaction markers
    may follow the last record: no consumer sees them, so its position never reaches the end.
    """

    cluster: str
    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    first_only: bool
    pending: set[TopicPartition] = field(init=False)
    """Shrinks as partitions end."""
    early: dict[TopicPartition, int] = field(default_factory=dict)
    """The end that a broker reports of a pending partition, if it is below the end at the start: a
    new leader may lag behind, or the partition was truncated."""

    def __post_init__(self) -> None:
        self.pending = {place for place, begin in self.begins.items() if begin < self.ends[place]}

    @property
    def most_records(self) -> int:
        """The most records to read of one partition."""
        if self.first_only:
            return 1
        return max(self.ends[place] - self.begins[place] for place in self.pending)


def _read(
    cluster: KafkaCluster, reading: _Reading, isolation: str, progress: Progress | None
) -> Iterator[list[Record]]:
    with open_consumer(
        cluster.name, cluster.config, cluster.timeout, isolation, prefetch=reading.most_records
    ) as session:
        session.client.assign([Place(*place, reading.begins[place]) for place in reading.pending])
        yield from _batches(session, reading, Throttle(cluster.throttle_ratio), progress)


def _batches(
    session: ClientSession[Consumer],
    reading: _Reading,
    throttle: Throttle,
    progress: Progress | None,
) -> Iterator[list[Record]]:
    pending = reading.pending
    read, started = 0, time.monotonic()
    while pending:
        open_before = len(pending)
        messages = session.client.consume(BATCH_SIZE, timeout=_POLL_SECONDS)
        if records := _accept(session, messages, reading):
            read += len(records)
            yield records
            throttle.pause()
            if progress is not None:
                progress(read, time.monotonic() - started)
        if records or len(pending) < open_before:
            session.reset_deadline()
        else:
            _check_alive(session, reading)


def _check_alive(session: ClientSession[Consumer], reading: _Reading) -> None:
    session.check()
    if not session.is_over:
        return
    for place, offset in reading.early.items():
        if place in reading.pending:
            end = reading.ends[place]
            raise _truncated(reading, place, f"its end offset is {offset}, and was {end}")
    raise session.unreachable()


def _truncated(reading: _Reading, place: TopicPartition, what: str) -> PositionError:
    return PositionError(
        f"{what} when the read began: it was truncated, compacted or recreated; read it again",
        cluster=reading.cluster,
        topic=place.topic,
        partition=place.partition,
    )


def _accept(
    session: ClientSession[Consumer], messages: list[Message], reading: _Reading
) -> list[Record]:
    """Return the records among ``messages``; partitions that end are no longer pending."""
    records = cast("list[Record]", [message for message in messages if message.error() is None])
    if len(records) < len(messages):
        for message in messages:
            _handle_error(session, message, reading)
    # A plain tuple finds a TopicPartition, and costs less for each record.
    ends = cast("Mapping[tuple[str, int], int]", reading.ends)
    # Only the last record can end a single partition; to look at each costs a tenth of the time.
    latest = records[-1:] if len(ends) == 1 else records
    last = {(record.topic(), record.partition()): record.offset() for record in latest}
    ended = {
        TopicPartition(*place)
        for place, offset in last.items()
        if reading.first_only or offset >= ends[place] - 1
    }
    if not ended:
        return records
    session.client.pause([Place(*place) for place in ended])
    reading.pending.difference_update(ended)
    return [
        record for record in records if record.offset() < ends[record.topic(), record.partition()]
    ]


def _handle_error(session: ClientSession[Consumer], message: Message, reading: _Reading) -> None:
    error = message.error()
    if error is None or error.code() in _IGNORED:
        return
    topic, partition, offset = cast(
        "tuple[str, int, int]", (message.topic(), message.partition(), message.offset())
    )
    place = TopicPartition(topic, partition)
    if error.code() == _OFFSET_GONE:
        raise _truncated(reading, place, f"offset {offset} is gone, and was there")
    if error.code() != _PARTITION_EOF:
        raise session.failure(error, topic=topic, partition=partition)
    if offset >= reading.ends[place]:
        reading.pending.discard(place)
    else:
        reading.early[place] = offset
