"""Reads partitions up to the ends that they have at the start; for ``ranges`` and ``sync_log``."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import chain
from typing import Protocol, TypeAlias, cast

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as PartitionOffset

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.kafka.clients import make_consumer
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.lap_progress import LapProgress, require_offset
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

_watchers: list[Callable[[int], None]] = []

Lap: TypeAlias = Mapping[TopicPartition, tuple[int, int]]
"""What is read together: of each partition the first offset, and the one after the last."""


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


@contextmanager
def watched_reads(watch: Callable[[int], None]) -> Iterator[None]:
    """Tell ``watch`` how many records each batch has that is read meanwhile, in any thread.

    Reads begin far below what shows their progress: no room between has to hand it on.
    """
    _watchers.append(watch)
    try:
        yield
    finally:
        _watchers.remove(watch)


def drain(
    cluster: KafkaCluster,
    starts: Mapping[TopicPartition, int],
    *,
    stops: Mapping[TopicPartition, int] | None = None,
    first_only: bool = False,
    refuse_deleted: bool = False,
    isolation: str = _UNCOMMITTED,
) -> Iterator[list[Record]]:
    """Yield the records of partitions in batches, up to the ends they have at the start.

    Args:
        cluster: The cluster to read from; its timeout is how long the broker may be silent.
        starts: The first offset to read of each partition.
        stops: Where to end a partition before its end: the offset after the last to read.
        first_only: Read a partition only up to the first batch that holds a record of it.
        refuse_deleted: Raise if records from a start on were deleted; else read those left.
        isolation: ``read_committed`` or ``read_uncommitted``.

    Raises:
        TopicNotFoundError: A topic or a partition does not exist.
        PositionError: A start lies beyond its partition's end, or records were deleted meanwhile.
        ClusterUnreachableError: Nothing came for the cluster's timeout, or authentication failed.
        ClusterRefusedError: A broker answered with an error.
    """
    lap = {each: (start, (stops or {}).get(each, MAX_OFFSET)) for each, start in starts.items()}
    yield from drain_laps(
        cluster,
        [lap],
        first_only=first_only,
        refuse_deleted=refuse_deleted,
        isolation=isolation,
    )


def drain_laps(
    cluster: KafkaCluster,
    laps: Collection[Lap],
    *,
    first_only: bool = False,
    refuse_deleted: bool = False,
    isolation: str = _UNCOMMITTED,
) -> Iterator[list[Record]]:
    """Yield the records of one lap after the other, by one consumer; see ``drain``."""
    keys = {each for lap in laps for each in lap}
    # By the log's end: a start beyond the last stable offset is no truncation.
    watermarks = cluster.watermarks(keys)
    ends = watermarks
    if isolation != _UNCOMMITTED:
        ends = cluster.watermarks(keys, isolation=isolation)
    for lap in laps:
        for each, (start, _) in lap.items():
            require_offset(
                cluster.name, each, start, watermarks[each], refuse_deleted=refuse_deleted
            )
    readings = [
        LapProgress(
            cluster=cluster.name,
            begins={each: max(start, watermarks[each].low) for each, (start, _) in lap.items()},
            ends={each: min(ends[each].high, stop) for each, (_, stop) in lap.items()},
            first_only=first_only,
        )
        for lap in laps
    ]
    if readings := [each for each in readings if each.pending]:
        yield from _read(cluster, readings, isolation)


def _read(cluster: KafkaCluster, laps: list[LapProgress], isolation: str) -> Iterator[list[Record]]:
    prefetch = max(lap.most_records for lap in laps)
    session = make_consumer(
        cluster.name, cluster.config, cluster.timeout, isolation, prefetch=prefetch
    )
    throttle = Throttle(cluster.throttle_ratio)
    with closing(session.client):
        for records in chain.from_iterable(_read_lap(session, lap) for lap in laps):
            for watch in _watchers:
                watch(len(records))
            yield records
            throttle.pause()
            session.reset_deadline()


def _read_lap(session: ClientSession[Consumer], lap: LapProgress) -> Iterator[list[Record]]:
    consumer, pending = session.client, lap.pending
    session.reset_deadline()
    starts = [PartitionOffset(*each, lap.begins[each]) for each in pending]
    consumer.assign(starts)
    while pending:
        pending_before = len(pending)
        messages = consumer.consume(BATCH_SIZE, timeout=_POLL_SECONDS)
        if records := _accept(session, messages, lap):
            yield records
        elif len(pending) < pending_before:
            session.reset_deadline()
        else:
            _check_alive(session, lap)
    # A pause outlives the next ``assign``. Measured: to resume after it takes a second.
    consumer.resume(starts)


def _check_alive(session: ClientSession[Consumer], lap: LapProgress) -> None:
    session.check()
    if not session.is_over:
        return
    for topic_partition, offset in lap.early_ends.items():
        if topic_partition in lap.pending:
            end = lap.ends[topic_partition]
            raise _truncated(lap, topic_partition, f"its end offset is {offset}, and was {end}")
    raise session.unreachable()


def _truncated(lap: LapProgress, topic_partition: TopicPartition, problem: str) -> PositionError:
    return PositionError(
        f"{problem} when the read began: it was truncated, compacted or recreated; read it again",
        cluster=lap.cluster,
        **topic_partition._asdict(),
    )


def _accept(
    session: ClientSession[Consumer], messages: list[Message], lap: LapProgress
) -> list[Record]:
    """Return the records among ``messages``; partitions that end are no longer pending."""
    records = cast("list[Record]", [message for message in messages if message.error() is None])
    if len(records) < len(messages):
        for message in messages:
            _handle_error(session, message, lap)
    # A plain tuple finds a TopicPartition, and costs less for each record.
    ends = cast("Mapping[tuple[str, int], int]", lap.ends)
    # Only the last record can end a single partition; to look at each costs a tenth of the time.
    latest = records[-1:] if len(ends) == 1 else records
    last = {(record.topic(), record.partition()): record.offset() for record in latest}
    ended = {
        TopicPartition(*each)
        for each, offset in last.items()
        if lap.first_only or offset >= ends[each] - 1
    }
    if not ended:
        return records
    session.client.pause([PartitionOffset(*each) for each in ended])
    lap.pending.difference_update(ended)
    return [
        record for record in records if record.offset() < ends[record.topic(), record.partition()]
    ]


def _handle_error(session: ClientSession[Consumer], message: Message, lap: LapProgress) -> None:
    error = message.error()
    if error is None or error.code() in _IGNORED:
        return
    topic, partition, offset = cast(
        "tuple[str, int, int]", (message.topic(), message.partition(), message.offset())
    )
    topic_partition = TopicPartition(topic, partition)
    if error.code() == _OFFSET_GONE:
        raise _truncated(lap, topic_partition, f"offset {offset} is gone, and was there")
    if error.code() != _PARTITION_EOF:
        raise session.failure(error, operation=Operation.READ, **topic_partition._asdict())
    if offset >= lap.ends[topic_partition]:
        lap.pending.discard(topic_partition)
    else:
        lap.early_ends[topic_partition] = offset
