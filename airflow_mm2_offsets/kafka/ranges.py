"""Reads ranges of partitions: what a consumer gets of them, and what it holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain

_AT_A_TIME = 100
"""Ranges that one consumer reads together."""


class RangeRecord(NamedTuple):
    """A record, with what tells it apart from others."""

    offset: int
    digest: bytes
    """16 bytes that are equal for equal key, value and headers."""
    milliseconds: int
    """Its timestamp, since 1970."""
    is_append_time: bool
    """The broker has set that when it wrote the record (``message.timestamp.type``), so that two
    copies of one record differ in it."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets ``[first, last]`` of a partition; none where ``last`` is below ``first``."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return max(0, self.last - self.first + 1)


def read_ranges(
    cluster: KafkaCluster,
    ranges: Mapping[TopicPartition, OffsetRange],
    *,
    max_bytes: int,
    isolation: str = "read_committed",
) -> dict[TopicPartition, list[RangeRecord]]:
    """Return the records of each range, as a consumer of that isolation level gets them.

    The smallest ranges are read first, some at a time; where ``max_bytes`` of keys and values are
    not enough for all, the larger ranges are absent from what is returned.

    Raises:
        Mm2OffsetsError: See ``drain``.
    """
    found: dict[TopicPartition, list[RangeRecord]] = {}
    order = sorted(ranges, key=lambda place: ranges[place].size)
    for begin in range(0, len(order), _AT_A_TIME):
        if max_bytes <= 0:
            break
        some = {place: ranges[place] for place in order[begin : begin + _AT_A_TIME]}
        records, read = _read_some(cluster, some, max_bytes, isolation)
        max_bytes -= read
        if max_bytes >= 0:
            found |= records
    return found


def _read_some(
    cluster: KafkaCluster,
    ranges: Mapping[TopicPartition, OffsetRange],
    max_bytes: int,
    isolation: str,
) -> tuple[dict[TopicPartition, list[RangeRecord]], int]:
    """Read ranges until they end, or until more than ``max_bytes`` were read."""
    found: dict[TopicPartition, list[RangeRecord]] = {place: [] for place in ranges}
    read = 0
    for record in _records(cluster, ranges, isolation=isolation):
        read += len(record.key() or b"") + len(record.value() or b"")
        if read > max_bytes:
            break
        found[TopicPartition(record.topic(), record.partition())].append(_range_record(record))
    return found, read


def find_empty(
    cluster: KafkaCluster, ranges: Mapping[TopicPartition, OffsetRange]
) -> set[TopicPartition]:
    """Return the partitions whose range holds no committed record.

    Of the others no more is read than it takes to see a record.

    Raises:
        Mm2OffsetsError: See ``drain``.
    """
    records = _records(cluster, ranges, first_only=True)
    return set(ranges) - {TopicPartition(record.topic(), record.partition()) for record in records}


def first_times(
    cluster: KafkaCluster, ranges: Mapping[TopicPartition, OffsetRange]
) -> dict[TopicPartition, int]:
    """Return the time of the first committed record of each range, in milliseconds since 1970.

    A range without a record is absent.

    Raises:
        Mm2OffsetsError: See ``drain``.
    """
    found: dict[TopicPartition, int] = {}
    for record in _records(cluster, ranges, first_only=True):
        _, milliseconds = record.timestamp()
        found.setdefault(TopicPartition(record.topic(), record.partition()), milliseconds)
    return found


def _records(
    cluster: KafkaCluster,
    ranges: Mapping[TopicPartition, OffsetRange],
    *,
    first_only: bool = False,
    isolation: str = "read_committed",
) -> Iterator[Record]:
    wanted = {place: each for place, each in ranges.items() if each.size}
    batches = drain(
        cluster,
        {place: each.first for place, each in wanted.items()},
        stops={place: each.last + 1 for place, each in wanted.items()},
        first_only=first_only,
        isolation=isolation,
    )
    return chain.from_iterable(batches)


def _range_record(record: Record) -> RangeRecord:
    digest = blake2b(digest_size=16)
    parts = [record.key(), record.value()]
    for name, value in record.headers() or ():
        parts += [name.encode(), value]
    for part in parts:
        # The length keeps neighbours apart; -1 keeps an absent value from an empty one.
        digest.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
        digest.update(part or b"")
    kind, milliseconds = record.timestamp()
    return RangeRecord(
        record.offset(), digest.digest(), milliseconds, kind == TIMESTAMP_LOG_APPEND_TIME
    )
