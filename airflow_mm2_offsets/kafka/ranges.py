"""Reads the records in ranges of partitions, for the planner's evidence.

Each function raises what ``drain`` raises.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias, TypeVar

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain_laps
from airflow_mm2_offsets.kafka.record_digests import RecordParts, digest_of, parts_of

_AT_A_TIME = 100
"""Ranges that one consumer reads."""
_offset = attrgetter("offset")


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


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The offsets ``[first, last]`` of a partition; none if ``last`` is below ``first``."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return max(0, self.last - self.first + 1)

    def covers(self, other: "OffsetRange") -> bool:
        """Tell whether all offsets of another range are of this one."""
        return self.first <= other.first and other.last <= self.last


PartitionRange: TypeAlias = tuple[TopicPartition, OffsetRange]
Key = TypeVar("Key", bound=Hashable)


def read_ranges(
    cluster: KafkaCluster,
    ranges: Mapping[Key, PartitionRange],
    *,
    max_bytes: int,
    isolation: str = "read_committed",
) -> dict[Key, list[RangeRecord]]:
    """Return the records of each range, as a consumer of that isolation level gets them.

    Ranges of one partition may overlap: each offset is read once. What overlaps or touches is read
    as one range. The smallest ones are read first, some at a time. If ``max_bytes`` of keys and
    values are not enough for all, the larger ranges are absent from the result.
    """
    unions = _unions(ranges.values())
    records: dict[PartitionRange, list[RangeRecord]] = {}
    in_order = dict.fromkeys(unions[each] for each in ranges.values())
    by_size = sorted(in_order, key=lambda union: union[1].size)
    for begin in range(0, len(by_size), _AT_A_TIME):
        if max_bytes <= 0:
            break
        some = by_size[begin : begin + _AT_A_TIME]
        records_of_some, bytes_read = _read_some(cluster, some, max_bytes, isolation)
        max_bytes -= bytes_read
        if max_bytes >= 0:
            records |= records_of_some
    slices = {
        each: _slice(records[union], each[1], union[1])
        for each, union in unions.items()
        if union in records
    }
    return {key: slices[each] for key, each in ranges.items() if each in slices}


def _unions(ranges: Iterable[PartitionRange]) -> dict[PartitionRange, PartitionRange]:
    """Return of each range the union of all that it overlaps or touches."""
    return {
        (topic_partition, each): (topic_partition, OffsetRange(some[0].first, last))
        for topic_partition, several in _by_partition(set(ranges)).items()
        for some, last in _clusters(several)
        for each in some
    }


def _by_partition(ranges: Iterable[PartitionRange]) -> dict[TopicPartition, list[OffsetRange]]:
    """Return each partition's ranges in order."""
    grouped: dict[TopicPartition, list[OffsetRange]] = {}
    for topic_partition, offsets in sorted(ranges, key=itemgetter(1)):
        grouped.setdefault(topic_partition, []).append(offsets)
    return grouped


def _clusters(ordered: Iterable[OffsetRange]) -> Iterator[tuple[list[OffsetRange], int]]:
    """Yield ranges that overlap or touch, in order, and the last offset of each such cluster."""
    some: list[OffsetRange] = []
    last = -1
    for each in ordered:
        if some and each.first > last + 1:
            yield some, last
            some = []
        last = max(last, each.last) if some else each.last
        some.append(each)
    if some:
        yield some, last


def _slice(
    records: list[RangeRecord], offsets: OffsetRange, union: OffsetRange
) -> list[RangeRecord]:
    if offsets == union:
        return records
    begin = bisect_left(records, offsets.first, key=_offset)
    return records[begin : bisect_right(records, offsets.last, begin, key=_offset)]


def _read_some(
    cluster: KafkaCluster, ranges: Sequence[PartitionRange], max_bytes: int, isolation: str
) -> tuple[dict[PartitionRange, list[RangeRecord]], int]:
    """Read ranges until they end, or until more than ``max_bytes`` were read."""
    records: dict[PartitionRange, list[RangeRecord]] = {each: [] for each in ranges}
    bytes_read = 0
    for each, record in _read(cluster, ranges, isolation=isolation):
        bytes_read += len(record.key() or b"") + len(record.value() or b"")
        if bytes_read > max_bytes:
            break
        records[each].append(_range_record(record))
    return records, bytes_read


def find_empty(cluster: KafkaCluster, ranges: Mapping[Key, PartitionRange]) -> set[Key]:
    """Return the keys whose range holds no committed record.

    Ranges of one partition may overlap. The middle one is read up to its first record, which
    settles others too; then the middle one of those left. Where all begin or all end at one offset,
    half of them are settled each time.
    """
    empty: set[Key] = set()
    unsettled = dict(ranges)
    while unsettled:
        several = _by_partition(unsettled.values())
        probes = {each: some[len(some) // 2] for each, some in several.items()}
        firsts: dict[TopicPartition, int] = {}
        for (topic_partition, _), record in _read(cluster, probes.items(), first_only=True):
            firsts.setdefault(topic_partition, record.offset())
        for key, (topic_partition, offsets) in list(unsettled.items()):
            probe, first = probes[topic_partition], firsts.get(topic_partition)
            without = OffsetRange(probe.first, probe.last if first is None else first - 1)
            if not offsets.size or without.covers(offsets):
                empty.add(key)
                del unsettled[key]
            elif first is not None and offsets.first <= first <= offsets.last:
                del unsettled[key]
    return empty


def first_times(
    cluster: KafkaCluster, ranges: Mapping[TopicPartition, OffsetRange]
) -> dict[TopicPartition, int]:
    """Return the time of the first committed record of each range, in milliseconds since 1970.

    A range without a record is absent.
    """
    times: dict[TopicPartition, int] = {}
    for (topic_partition, _), record in _read(cluster, ranges.items(), first_only=True):
        times.setdefault(topic_partition, record.timestamp()[1])
    return times


def read_parts(
    cluster: KafkaCluster, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, RecordParts]:
    """Return the parts of the record at one offset of each partition, committed or not.

    A partition without a record there is absent.
    """
    ranges = [(each, OffsetRange(offset, offset)) for each, offset in offsets.items()]
    return {
        each: parts_of(record)
        for (each, _), record in _read(cluster, ranges, isolation="read_uncommitted")
    }


def _read(
    cluster: KafkaCluster,
    ranges: Iterable[PartitionRange],
    *,
    first_only: bool = False,
    isolation: str = "read_committed",
) -> Iterator[tuple[PartitionRange, Record]]:
    """Yield the records of ranges that do not overlap, those of a partition in order."""
    by_partition = _by_partition(each for each in ranges if each[1].size)
    columns = [
        [(each, (offsets.first, offsets.last + 1)) for offsets in some]
        for each, some in by_partition.items()
    ]
    laps = [dict(filter(None, row)) for row in zip_longest(*columns)]
    batches = drain_laps(cluster, laps, first_only=first_only, isolation=isolation)
    for record in chain.from_iterable(batches):
        topic_partition = TopicPartition(record.topic(), record.partition())
        some = by_partition[topic_partition]
        at = bisect_right(some, record.offset(), key=attrgetter("first")) - 1
        yield (topic_partition, some[at]), record


def _range_record(record: Record) -> RangeRecord:
    kind, milliseconds = record.timestamp()
    return RangeRecord(
        record.offset(), digest_of(record), milliseconds, kind == TIMESTAMP_LOG_APPEND_TIME
    )
