"""What a world's logs hold beside those of ``airflow_mm2_offsets.testing``."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from airflow_mm2_offsets.testing import logs
from airflow_mm2_offsets.testing.logs import MARKER, Entry, Record


@dataclass(slots=True, kw_only=True)
class SourceLog(logs.SourceLog):
    """A source partition whose transforms decide by chance."""

    luck: dict[int, float] = field(default_factory=dict)
    """For each offset ever written a number in [0, 1) that transforms decide by."""
    is_cleaned: bool = False
    """Compaction has removed records."""
    begin: int = 0
    """Its first offset when MirrorMaker 2 was set up: retention had deleted what was below."""
    aborted: set[int] = field(default_factory=set)
    """Offsets that held a record of an aborted transaction: nothing is lost with its copy."""

    def append(self, record: Record, luck: float) -> None:
        """Add a record."""
        self.luck[self.high] = luck
        self.write(record)

    def decide(self, *, commits: bool) -> None:
        """End the open transaction, if there is one, with a marker."""
        if self.open_from is None:
            return
        if not commits:
            aborted = [offset for offset in self.records if offset >= self.open_from]
            self.aborted.update(aborted)
            self.clean(aborted)
        self.open_from = None
        self.skip(1)

    def clean(self, offsets: Iterable[int]) -> None:
        """Let compaction remove records."""
        for offset in offsets:
            self.records.pop(offset, None)


@dataclass(slots=True, kw_only=True)
class TargetLog(logs.TargetLog):
    """A target partition that compaction may clean."""

    is_cleaned: bool = False
    """Compaction has removed records."""

    def truncate(self, offsets: int) -> list[Entry]:
        """Lose up to ``offsets`` at the end, in an unclean leader election; return them."""
        end = max(self.low, self.high - offsets)
        lost = self.entries[end:]
        del self.entries[end:]
        return lost

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
    """The incarnation of the target topic that each sync is about."""

    def append(self, sync: tuple[int, int], of_target: int) -> None:
        """Add a sync."""
        self.syncs.append(sync)
        self.of_target.append(of_target)

    def until(self, count: int) -> "SyncsLog":
        """Return the log as it was when it held so many syncs."""
        return replace(self, syncs=self.syncs[:count], of_target=self.of_target[:count])
