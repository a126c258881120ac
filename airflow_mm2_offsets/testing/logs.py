"""The logs of a simulated partition: one kind for the source, one for the target."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

FIRST_TIMESTAMP = 1_800_000_000_000
"""Milliseconds since 1970 of a record at offset 0 for which the test gave none."""

FOREIGN = -1
"""The origin of a record that another writer wrote to the target."""
MARKER = -2
"""The origin of a target offset that delivers nothing: a marker, an aborted or cleaned record."""


class Record(NamedTuple):
    """A record as a consumer gets it."""

    key: bytes | None
    value: bytes | None
    timestamp: int = FIRST_TIMESTAMP
    """Milliseconds since 1970."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Entry(NamedTuple):
    """What lies at one target offset."""

    origin: int
    """The source offset that it copies, FOREIGN or MARKER."""
    incarnation: int
    """The incarnation of the source topic that ``origin`` belongs to."""
    record: Record | None
    """None where nothing is delivered."""


class PartitionLog(Protocol):
    """A partition's log, as clients and tests use it."""

    low: int

    @property
    def high(self) -> int:
        """The end offset."""

    @property
    def stable(self) -> int:
        """The last stable offset: where the first open transaction begins, or the end."""

    def write(self, record: Record) -> int:
        """Append a record; return its offset."""

    def skip(self, offsets: int) -> None:
        """Add offsets that deliver nothing."""

    def delete_before(self, low: int) -> None:
        """Delete the records below ``low``."""

    def committed_records(self, start: int) -> Iterator[tuple[int, Record]]:
        """Yield offset and record from ``start`` on, also those of an open transaction."""


@dataclass(slots=True, kw_only=True)
class SourceLog:
    """One incarnation of a source partition; an offset without a record is a hole."""

    incarnation: int = 0
    low: int = 0
    high: int = 0
    records: dict[int, Record] = field(default_factory=dict)
    """By offset, rising: what a read_committed consumer gets now."""
    open_from: int | None = None
    """Where a transaction begins that is not decided yet; all that follows belongs to it."""

    @property
    def stable(self) -> int:
        """The offset up to which every transaction is decided."""
        return self.high if self.open_from is None else self.open_from

    def write(self, record: Record) -> int:
        """Append a record; return its offset."""
        self.records[self.high] = record
        self.high += 1
        return self.high - 1

    def skip(self, offsets: int) -> None:
        """Add offsets that deliver nothing: transaction markers, aborted records."""
        self.high += offsets

    def delete_before(self, low: int) -> None:
        """Let retention delete the decided records below ``low``."""
        self.low = min(self.stable, max(self.low, low))
        for offset in [offset for offset in self.records if offset < self.low]:
            del self.records[offset]

    def read(
        self, position: int, most: int, *, uncommitted: bool = False
    ) -> list[tuple[int, Record]]:
        """Return up to ``most`` records from ``position`` on."""
        batch: list[tuple[int, Record]] = []
        for offset in range(max(position, self.low), self.high if uncommitted else self.stable):
            if len(batch) == most:
                break
            if offset in self.records:
                batch.append((offset, self.records[offset]))
        return batch

    def committed_records(self, start: int) -> Iterator[tuple[int, Record]]:
        """Yield offset and record from ``start`` on."""
        offsets = [*self.records]  # a writer may add some meanwhile
        return ((offset, self.records[offset]) for offset in offsets if offset >= start)


@dataclass(slots=True, kw_only=True)
class TargetLog:
    """One incarnation of a target partition; it remembers which source record each copy is of."""

    incarnation: int = 0
    low: int = 0
    entries: list[Entry] = field(default_factory=list)
    """One for each offset ever written, also below ``low``."""
    open_from: int | None = None
    """Where a transaction begins that is not decided yet; its records are not delivered."""

    @property
    def high(self) -> int:
        """The end offset."""
        return len(self.entries)

    @property
    def stable(self) -> int:
        """The offset up to which every transaction is decided."""
        return len(self.entries) if self.open_from is None else self.open_from

    def append(self, entry: Entry) -> int:
        """Append an entry; return its offset."""
        self.entries.append(entry)
        return len(self.entries) - 1

    def write(self, record: Record) -> int:
        """Append a record of another writer than MirrorMaker 2; return its offset."""
        return self.append(Entry(FOREIGN, 0, record))

    def skip(self, offsets: int) -> None:
        """Add offsets that deliver nothing."""
        self.entries.extend([Entry(MARKER, 0, None)] * offsets)

    def delete_before(self, low: int) -> None:
        """Let retention delete the records below ``low``."""
        self.low = min(self.high, max(self.low, low))

    def committed_records(self, start: int) -> Iterator[tuple[int, Record]]:
        """Yield offset and record from ``start`` on."""
        for offset in range(max(start, self.low), self.stable):
            record = self.entries[offset].record
            if record is not None:
                yield offset, record
