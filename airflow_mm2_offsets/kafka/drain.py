"""Reads partitions up to the ends that they have at the start; for ``ranges`` and ``sync_log``."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as PartitionOffset

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.kafka.clients import make_consumer
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
    # By the log's end: a start beyond the last stable offset is no truncation.
    watermarks = cluster.watermarks(starts)
    begins = {
        each: _begin(cluster.name, each, start, watermarks[each], refuse_deleted=refuse_deleted)
        for each, start in starts.items()
    }
    if isolation != _UNCOMMITTED:
        watermarks = cluster.watermarks(starts, isolation=isolation)
    stops = stops or {}
    ends = {each: min(watermarks[each].high, stops.get(each, MAX_OFFSET)) for each in starts}
    reading = _PartitionsRead(cluster=cluster.name, begins=begins, ends=ends, first_only=first_only)
    if reading.pending:
        yield from _read(cluster, reading, isolation, progress)


def _begin(
    cluster: str,
    topic_partition: TopicPartition,
    start: int,
    watermarks: Watermarks,
    *,
    refuse_deleted: bool,
) -> int:
    """Return the first offset to read: the start, or the first that is left."""
    if start > watermarks.high:
        problem = f"its end offset {watermarks.high} is below {start}: truncated or recreated"
    elif start < watermarks.low and refuse_deleted:
        problem = f"its first offset {watermarks.low} is above {start}: records were deleted"
    else:
        return max(start, watermarks.low)
    raise PositionError(
        f"{problem}; read it from its beginning",
        cluster=cluster,
        position=start,
        **topic_partition._asdict(),
    )


@dataclass(slots=True, kw_only=True)
class _PartitionsRead:
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
    early_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The end that a broker reports of a pending partition, if it is below the end at the start: a
    new leader may lag behind, or the partition was truncated."""

    def __post_init__(self) -> None:
        self.pending = {each for each, begin in self.begins.items() if begin < self.ends[each]}

    @property
    def most_records(self) -> int:
        """The most records to read of one partition."""
        if self.first_only:
            return 1
        return max(self.ends[each] - self.begins[each] for each in self.pending)


def _read(
    cluster: KafkaCluster, reading: _PartitionsRead, isolation: str, progress: Progress | None
) -> Iterator[list[Record]]:
    session = make_consumer(
        cluster.name, cluster.config, cluster.timeout, isolation, prefetch=reading.most_records
    )
    pending, throttle = reading.pending, Throttle(cluster.throttle_ratio)
    count, started = 0, time.monotonic()
    with closing(session.client) as consumer:
        consumer.assign([PartitionOffset(*each, reading.begins[each]) for each in pending])
        while pending:
            pending_before = len(pending)
            messages = consumer.consume(BATCH_SIZE, timeout=_POLL_SECONDS)
            if records := _accept(session, messages, reading):
                count += len(records)
                yield records
                throttle.pause()
                if progress is not None:
                    progress(count, time.monotonic() - started)
            if records or len(pending) < pending_before:
                session.reset_deadline()
            else:
                _check_alive(session, reading)


def _check_alive(session: ClientSession[Consumer], reading: _PartitionsRead) -> None:
    session.check()
    if not session.is_over:
        return
    for topic_partition, offset in reading.early_ends.items():
        if topic_partition in reading.pending:
            end = reading.ends[topic_partition]
            raise _truncated(reading, topic_partition, f"its end offset is {offset}, and was {end}")
    raise session.unreachable()


def _truncated(
    reading: _PartitionsRead, topic_partition: TopicPartition, problem: str
) -> PositionError:
    return PositionError(
        f"{problem} when the read began: it was truncated, compacted or recreated; read it again",
        cluster=reading.cluster,
        **topic_partition._asdict(),
    )


def _accept(
    session: ClientSession[Consumer], messages: list[Message], reading: _PartitionsRead
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
        TopicPartition(*each)
        for each, offset in last.items()
        if reading.first_only or offset >= ends[each] - 1
    }
    if not ended:
        return records
    session.client.pause([PartitionOffset(*each) for each in ended])
    reading.pending.difference_update(ended)
    return [
        record for record in records if record.offset() < ends[record.topic(), record.partition()]
    ]


def _handle_error(
    session: ClientSession[Consumer], message: Message, reading: _PartitionsRead
) -> None:
    error = message.error()
    if error is None or error.code() in _IGNORED:
        return
    topic, partition, offset = cast(
        "tuple[str, int, int]", (message.topic(), message.partition(), message.offset())
    )
    topic_partition = TopicPartition(topic, partition)
    if error.code() == _OFFSET_GONE:
        raise _truncated(reading, topic_partition, f"offset {offset} is gone, and was there")
    if error.code() != _PARTITION_EOF:
        raise session.failure(error, operation=Operation.READ, **topic_partition._asdict())
    if offset >= reading.ends[topic_partition]:
        reading.pending.discard(topic_partition)
    else:
        reading.early_ends[topic_partition] = offset
