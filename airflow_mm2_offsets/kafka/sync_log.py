"""Reads the records of an offset-syncs topic; ``kafka.syncs`` and ``archive`` call it."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias, cast

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.wire import check_value, decode_key, decode_values
from airflow_mm2_offsets.errors import WireFormatError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain
from airflow_mm2_offsets.kafka.throttle import Throttle

SYNCS_PARTITION = 0  # MirrorSourceTask writes to this one whatever the topic has.

_OFFSET_SIZE = 8
_VALUE_SIZE = 2 * _OFFSET_SIZE
_SLICE = 1000 * _VALUE_SIZE
_NO_THROTTLE = Throttle(0)

MAX_SKIPPED = 20
"""Skipped records that are reported with their reasons; all are counted."""

_Sink: TypeAlias = tuple[Callable[[bytes], None], Callable[[int], None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that is not an offset sync."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRecords:
    """The records of one partition's syncs, in log order."""

    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    """The offset of each sync's record on the offset-syncs topic."""
    values: bytearray = field(default_factory=bytearray)
    """The records' values, one after the other, as MirrorMaker 2 writes them."""

    def pairs(self, throttle: Throttle = _NO_THROTTLE) -> Iterator[tuple[int, int]]:
        """Yield the upstream and the downstream offset of each sync."""
        return chain.from_iterable(self._slices(throttle))

    def _slices(self, throttle: Throttle) -> Iterator[Iterator[tuple[int, int]]]:
        for begin in range(0, len(self.values), _SLICE):
            throttle.pause()
            yield decode_values(self.values[begin : begin + _SLICE])


@dataclass(slots=True, kw_only=True)
class SyncsTopicRead:
    """The records of one read of the topic."""

    next_offset: int
    """The first offset of a later read."""
    contiguous_until: int
    """Each offset from the start of the read up to this one, exclusive, had a record; compaction
    or retention removed the first missing one."""
    syncs: dict[TopicPartition, SyncRecords] = field(default_factory=dict)
    """The partitions of which a sync was read."""
    records_read: int = 0
    """Skipped records count too."""
    skipped_count: int = 0
    skipped: list[SkippedRecord] = field(default_factory=list)
    """The first ``MAX_SKIPPED`` of them."""

    def complete(self) -> frozenset[TopicPartition]:
        """Return the partitions whose earliest sync was surely read."""
        return frozenset(
            topic_partition
            for topic_partition, records in self.syncs.items()
            if records.offsets[0] < self.contiguous_until
        )

    def skip(self, offset: int, error: WireFormatError) -> None:
        """Count a record that is not an offset sync."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(SkippedRecord(offset=offset, reason=str(error)))


def read_syncs_topic(
    cluster: KafkaCluster,
    topic: str,
    start: int = 0,
    *,
    refuse_deleted: bool = False,
) -> SyncsTopicRead:
    """Read the records from ``start`` to the topic's end.

    A record that is not an offset sync (truncated, foreign, a tombstone, negative) is skipped and
    counted. See ``drain`` for ``refuse_deleted``, ``progress`` and the errors.
    """
    topic_read = SyncsTopicRead(next_offset=start, contiguous_until=start)
    sinks = _Sinks(topic_read.syncs)
    starts = {TopicPartition(topic, SYNCS_PARTITION): start}
    for batch in drain(cluster, starts, refuse_deleted=refuse_deleted):
        _append(batch, topic_read, sinks)
    return topic_read


class _Sinks(dict[bytes | None, _Sink]):
    """The appenders of a record's value and offset, by its key; a key is checked once."""

    def __init__(self, syncs: dict[TopicPartition, SyncRecords]) -> None:
        super().__init__()
        self._syncs = syncs

    def __missing__(self, key: bytes | None) -> _Sink:
        records = self._syncs.setdefault(TopicPartition(*decode_key(key)), SyncRecords())
        # Two bound methods cost less for each record than a look-up of the partition.
        return self.setdefault(key, (records.values.extend, records.offsets.append))


def _append(batch: list[Record], topic_read: SyncsTopicRead, sinks: _Sinks) -> None:
    values = cast("list[bytes]", [record.value() for record in batch])
    sound = _are_sound(values)
    for record, value in zip(batch, values, strict=True):
        try:
            checked = value if sound else check_value(value)
            add_value, add_offset = sinks[record.key()]
        except WireFormatError as error:
            topic_read.skip(record.offset(), error)
        else:
            add_value(checked)
            add_offset(record.offset())
    topic_read.records_read += len(batch)
    if topic_read.contiguous_until == topic_read.next_offset:
        topic_read.contiguous_until = _contiguous(batch, topic_read.next_offset)
    topic_read.next_offset = batch[-1].offset() + 1


def _contiguous(batch: list[Record], first: int) -> int:
    """Return the first offset from ``first`` on without a record in ``batch``."""
    if batch[-1].offset() - first + 1 == len(batch):
        return first + len(batch)
    return next(each for each, record in enumerate(batch, first) if record.offset() != each)


def _are_sound(values: list[bytes]) -> bool:
    """Tell whether ``check_value`` accepts all values: one check of many costs a third."""
    try:
        sizes = set(map(len, values))
    except TypeError:
        return False  # A tombstone has no value.
    # A number that is not negative begins with a byte below 128, as an ASCII character does.
    return sizes == {_VALUE_SIZE} and b"".join(values)[::_OFFSET_SIZE].isascii()
