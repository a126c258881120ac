"""Reads the records in ranges of partitions, for the planner's evidence.

Each function raises what ``drain`` raises.
"""

from collections.abc import Iterable, Iterator, Mapping
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
    """A record's offset, and what distinguishes it from other records."""

    offset: int
    digest: bytes
    """16 bytes that are equal for equal key, value and headers."""
    milliseconds: int
    """Its timestamp, since 1970."""
    is_append_time: bool
    """Whether the broker set the timestamp (``message.timestamp.type``): then two copies of one
    record differ in it."""


class RecordParts(NamedTuple):
    """A record's parts, each as a digest, to tell which of them differ from another record's."""

    key: bytes
    value: bytes
    timestamp: int
    headers: bytes

    def differing(self, other: "RecordParts") -> list[str]:
        """Return the names of the parts that differ."""
        return [name for name in self._fields if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets ``[first, last]`` of a partition; none if ``last`` is below ``first``."""

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

    The smallest ranges are read first, some at a time. If ``max_bytes`` of keys and values are not
    enough for all, the larger ranges are absent from the result.
    """
    records: dict[TopicPartition, list[RangeRecord]] = {}
    by_size = sorted(ranges, key=lambda topic_partition: ranges[topic_partition].size)
    for begin in range(0, len(by_size), _AT_A_TIME):
        if max_bytes <= 0:
            break
        some = {each: ranges[each] for each in by_size[begin : begin + _AT_A_TIME]}
        records_of_some, bytes_read = _read_some(cluster, some, max_bytes, isolation)
        max_bytes -= bytes_read
        if max_bytes >= 0:
            records |= records_of_some
    return records


def _read_some(
    cluster: KafkaCluster,
    ranges: Mapping[TopicPartition, OffsetRange],
    max_bytes: int,
    isolation: str,
) -> tuple[dict[TopicPartition, list[RangeRecord]], int]:
    """Read ranges until they end, or until more than ``max_bytes`` were read."""
    records: dict[TopicPartition, list[RangeRecord]] = {each: [] for each in ranges}
    bytes_read = 0
    for topic_partition, record in _read(cluster, ranges, isolation=isolation):
        bytes_read += len(record.key() or b"") + len(record.value() or b"")
        if bytes_read > max_bytes:
            break
        records[topic_partition].append(_range_record(record))
    return records, bytes_read


def find_empty(
    cluster: KafkaCluster, ranges: Mapping[TopicPartition, OffsetRange]
) -> set[TopicPartition]:
    """Return the partitions whose range holds no committed record."""
    return ranges.keys() - {each for each, _ in _read(cluster, ranges, first_only=True)}


def first_times(
    cluster: KafkaCluster, ranges: Mapping[TopicPartition, OffsetRange]
) -> dict[TopicPartition, int]:
    """Return the time of the first committed record of each range, in milliseconds since 1970.

    A range without a record is absent.
    """
    times: dict[TopicPartition, int] = {}
    for topic_partition, record in _read(cluster, ranges, first_only=True):
        times.setdefault(topic_partition, record.timestamp()[1])
    return times


def read_parts(
    cluster: KafkaCluster, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, RecordParts]:
    """Return the parts of the record at one offset of each partition, committed or not.

    A partition without a record there is absent.
    """
    ranges = {each: OffsetRange(offset, offset) for each, offset in offsets.items()}
    return {
        each: RecordParts(
            key=_digest([record.key()]),
            value=_digest([record.value()]),
            timestamp=record.timestamp()[1],
            headers=_digest(_header_parts(record)),
        )
        for each, record in _read(cluster, ranges, isolation="read_uncommitted")
    }


def _read(
    cluster: KafkaCluster,
    ranges: Mapping[TopicPartition, OffsetRange],
    *,
    first_only: bool = False,
    isolation: str = "read_committed",
) -> Iterator[tuple[TopicPartition, Record]]:
    batches = drain(
        cluster,
        {each: offsets.first for each, offsets in ranges.items() if offsets.size},
        stops={each: offsets.last + 1 for each, offsets in ranges.items()},
        first_only=first_only,
        isolation=isolation,
    )
    for record in chain.from_iterable(batches):
        yield TopicPartition(record.topic(), record.partition()), record


def _range_record(record: Record) -> RangeRecord:
    digest = _digest([record.key(), record.value(), *_header_parts(record)])
    kind, milliseconds = record.timestamp()
    return RangeRecord(record.offset(), digest, milliseconds, kind == TIMESTAMP_LOG_APPEND_TIME)


def _header_parts(record: Record) -> list[bytes | None]:
    parts: list[bytes | None] = []
    for name, value in record.headers() or ():
        parts += [name.encode(), value]
    return parts


def _digest(parts: Iterable[bytes | None]) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        # The length separates neighbours; -1 tells an absent value from an empty one.
        digest.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
        digest.update(part or b"")
    return digest.digest()
