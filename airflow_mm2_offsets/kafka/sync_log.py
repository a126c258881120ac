"""Reads the records of an offset-syncs topic: those of each partition as columns."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias, cast

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.wire import check_value, decode_key, decode_values
from airflow_mm2_offsets.errors import WireFormatError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Progress, Record, drain
from airflow_mm2_offsets.kafka.pace import Pace

SYNCS_PARTITION = 0  # MirrorSourceTask writes to this one whatever the topic has.

_OFFSET_SIZE = 8
_VALUE_SIZE = 2 * _OFFSET_SIZE
_SLICE = 1000 * _VALUE_SIZE
_NO_REST = Pace(0)

SKIPPED_KEPT = 20
"""How many skipped records are kept with their reasons; all are counted."""

_Sink: TypeAlias = tuple[Callable[[bytes], None], Callable[[int], None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that is not an offset sync."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncColumns:
    """The syncs of one partition, in log order."""

    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    """Where each stands on the offset-syncs topic."""
    values: bytearray = field(default_factory=bytearray)
    """Their values in a row, as MirrorMaker 2 writes them."""

    def pairs(self, pace: Pace = _NO_REST) -> Iterator[tuple[int, int]]:
        """Yield the upstream and the downstream offset of each."""
        return chain.from_iterable(self._slices(pace))

    def _slices(self, pace: Pace) -> Iterator[Iterator[tuple[int, int]]]:
        for begin in range(0, len(self.values), _SLICE):
            pace.pause()
            yield decode_values(self.values[begin : begin + _SLICE])


@dataclass(slots=True, kw_only=True)
class SyncLog:
    """What was read of the topic."""

    next_offset: int
    """Where a later read goes on."""
    contiguous_until: int
    """There was a record at each offset from the start of the read up to this one, exclusive:
    what is missing, compaction or retention has removed."""
    columns: dict[TopicPartition, SyncColumns] = field(default_factory=dict)
    read: int = 0
    """Records read, with the skipped ones."""
    skipped_count: int = 0
    skipped: list[SkippedRecord] = field(default_factory=list)
    """The first ``SKIPPED_KEPT`` of them."""

    def complete(self) -> frozenset[TopicPartition]:
        """Return the partitions of which no earlier sync can be missing from the read."""
        return frozenset(
            place
            for place, columns in self.columns.items()
            if columns.offsets and columns.offsets[0] < self.contiguous_until
        )

    def skip(self, offset: int, error: WireFormatError) -> None:
        """Note a record that is no offset sync."""
        self.skipped_count += 1
        if len(self.skipped) < SKIPPED_KEPT:
            self.skipped.append(SkippedRecord(offset=offset, reason=str(error)))


def read_log(
    cluster: KafkaCluster,
    topic: str,
    start: int = 0,
    *,
    refuse_deleted: bool = False,
    progress: Progress | None = None,
) -> SyncLog:
    """Read the records from ``start`` to the topic's end.

    A record that is no offset sync (truncated, foreign, a tombstone, negative) is skipped,
    counted and reported.

    Args:
        cluster: The cluster that holds the topic.
        topic: Its name.
        start: The first offset to read.
        refuse_deleted: See ``drain``.
        progress: Told the number of records read and the seconds passed, after each batch.

    Raises:
        Mm2OffsetsError: See ``drain``.
    """
    log = SyncLog(next_offset=start, contiguous_until=start)
    sinks = _Sinks(log.columns)
    place = TopicPartition(topic, SYNCS_PARTITION)
    for batch in drain(cluster, {place: start}, refuse_deleted=refuse_deleted, progress=progress):
        _take(batch, log, sinks)
    return log


class _Sinks(dict[bytes | None, _Sink]):
    """Where the value and the offset of a record go, by its key; a key is checked once."""

    def __init__(self, columns: dict[TopicPartition, SyncColumns]) -> None:
        super().__init__()
        self._columns = columns

    def __missing__(self, key: bytes | None) -> _Sink:
        mine = self._columns.setdefault(TopicPartition(*decode_key(key)), SyncColumns())
        # Bound once, the two cost less for each record than finding the columns again.
        return self.setdefault(key, (mine.values.extend, mine.offsets.append))


def _take(batch: list[Record], log: SyncLog, sinks: _Sinks) -> None:
    values = cast("list[bytes]", [record.value() for record in batch])
    sound = _are_sound(values)
    for record, value in zip(batch, values, strict=True):
        try:
            checked = value if sound else check_value(value)
            add_value, add_offset = sinks[record.key()]
        except WireFormatError as error:
            log.skip(record.offset(), error)
        else:
            add_value(checked)
            add_offset(record.offset())
    log.read += len(batch)
    if log.contiguous_until == log.next_offset:
        log.contiguous_until = _contiguous(batch, log.next_offset)
    log.next_offset = batch[-1].offset() + 1


def _contiguous(batch: list[Record], first: int) -> int:
    """Return the first offset from ``first`` on that ``batch`` has no record of."""
    if batch[-1].offset() - first + 1 == len(batch):
        return first + len(batch)
    return next(each for each, record in enumerate(batch, first) if record.offset() != each)


def _are_sound(values: list[bytes]) -> bool:
    """Tell whether ``check_value`` would take each: of many at once that costs a third."""
    try:
        sizes = set(map(len, values))
    except TypeError:
        return False  # A tombstone has no value.
    # A number that is not negative begins with a byte below 128, as an ASCII character does.
    return sizes == {_VALUE_SIZE} and b"".join(values)[::_OFFSET_SIZE].isascii()
