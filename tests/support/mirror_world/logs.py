"""The three logs of a simulated partition: the source's, the target's, and the offset syncs."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.mirror_world.records import MARKER, Entry, Record


@dataclass(slots=True, kw_only=True)
class SourceLog:
    """One incarnation of the source partition; an offset without a record is a hole."""

    incarnation: int = 0
    low: int = 0
    high: int = 0
    records: dict[int, Record] = field(default_factory=dict)
    """By offset, rising: what a read_committed consumer gets now."""
    luck: dict[int, float] = field(default_factory=dict)
    """For each offset ever written a number in [0, 1) that transforms decide by."""
    open_from: int | None = None
    """Where a transaction begins that is not decided yet; all that follows is of it."""
    aborted: set[int] = field(default_factory=set)
    """Offsets that held a record of an aborted transaction: nothing is lost with its copy."""

    @property
    def stable(self) -> int:
        """Up to where every transaction is decided."""
        return self.high if self.open_from is None else self.open_from

    def append(self, record: Record, luck: float) -> None:
        """Add a record."""
        self.records[self.high] = record
        self.luck[self.high] = luck
        self.high += 1

    def skip(self, offsets: int) -> None:
        """Add offsets that deliver nothing: transaction markers, aborted records."""
        self.high += offsets

    def decide(self, *, commits: bool) -> None:
        """End the open transaction, if there is one, with a marker."""
        if self.open_from is None:
            return
        if not commits:
            gone = [each for each in self.records if each >= self.open_from]
            self.aborted.update(gone)
            self.clean(gone)
        self.open_from = None
        self.skip(1)

    def delete_before(self, low: int) -> None:
        """Let retention delete what lies below ``low``, and is decided."""
        self.low = min(self.stable, max(self.low, low))
        for offset in [each for each in self.records if each < self.low]:
            del self.records[offset]

    def clean(self, offsets: Iterable[int]) -> None:
        """Let compaction remove records."""
        for offset in offsets:
            self.records.pop(offset, None)

    def read(
        self, position: int, most: int, *, uncommitted: bool = False
    ) -> list[tuple[int, Record]]:
        """Return the next records from ``position`` on."""
        found: list[tuple[int, Record]] = []
        for offset in range(max(position, self.low), self.high if uncommitted else self.stable):
            if len(found) == most:
                break
            if offset in self.records:
                found.append((offset, self.records[offset]))
        return found


@dataclass(slots=True, kw_only=True)
class TargetLog:
    """One incarnation of the target partition."""

    incarnation: int = 0
    low: int = 0
    entries: list[Entry] = field(default_factory=list)
    """One for each offset ever written, also below ``low``."""
    is_cleaned: bool = False
    """Compaction has removed records."""

    @property
    def high(self) -> int:
        """The end."""
        return len(self.entries)

    def append(self, entry: Entry) -> int:
        """Add an entry; return its offset."""
        self.entries.append(entry)
        return len(self.entries) - 1

    def delete_before(self, low: int) -> None:
        """Let retention delete what lies below ``low``."""
        self.low = min(self.high, max(self.low, low))

    def clean(self, end: int) -> None:
        """Let compaction leave the last record of each key below ``end``."""
        seen: set[bytes | None] = set()
        for offset in range(end - 1, -1, -1):
            record = self.entries[offset].record
            if record is None:
                continue
            if record.key in seen:
                self.entries[offset] = Entry(MARKER, 0, None)
                self.is_cleaned = True
            seen.add(record.key)


@dataclass(slots=True, kw_only=True)
class SyncsLog:
    """One incarnation of the offset-syncs topic, as far as this partition's key goes."""

    incarnation: int = 0
    syncs: list[tuple[int, int]] = field(default_factory=list)
    """Upstream and downstream offset of each, at the offset of its index."""
    of_target: list[int] = field(default_factory=list)
    """Which incarnation of the target topic each speaks of."""

    def append(self, sync: tuple[int, int], of_target: int) -> None:
        """Add a sync."""
        self.syncs.append(sync)
        self.of_target.append(of_target)
