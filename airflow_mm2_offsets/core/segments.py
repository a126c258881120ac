"""The rule of translation: what the syncs of one partition say of each position.

All faces ask it: ``rules`` for one position; ``rows`` for all positions of a partition, which
``bulk`` (numpy) and the Spark job search; the archive, to see which syncs no position needs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bounds import begins_epoch, lacks_records
from airflow_mm2_offsets.core.bracket import END, SyncBracket, SyncPoint, steps_between
from airflow_mm2_offsets.core.lows import LowRun, Progress, clipped, low_at, low_runs_of

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs

_begin = attrgetter("begin")


class BracketRun(NamedTuple):
    """Positions from ``begin`` on, up to the next run: their brackets are of the same epoch."""

    begin: int
    start: int
    stop: int
    """The epoch's syncs are ``[start, stop)``."""
    rewind: int | None
    """The index of the sync that begins the next run, which is of a newer epoch; None in the last
    run."""


class SearchRange(NamedTuple):
    """The offsets to read on both clusters to find a position by content."""

    position: int
    begin: SyncPoint
    """The first offset to read on source and target."""
    end: SyncPoint
    """The last offset to read on each cluster.

    It is a sync of the bracket, or of the newest epoch that has caught up.
    """
    is_ordered: bool = False
    """Whether no rewind can lie in the range, so that the copies are in the source's order."""
    is_newest: bool = True
    """Whether no sync shows that the records were copied again after the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """What the syncs of one partition say of all positions, as runs that rise from 0 on."""

    upstream: Sequence[int]
    downstream: Sequence[int]
    brackets: tuple[BracketRun, ...]
    lows: tuple[LowRun, ...]

    @classmethod
    def of(cls, syncs: "PartitionSyncs", progress: Progress = Progress()) -> "Segments":  # noqa: B008 - it can't change
        """Make the segments of ``syncs``, at least one; see ``low_runs_of``."""
        return cls(
            upstream=syncs.upstream,
            downstream=syncs.downstream,
            brackets=tuple(_bracket_runs(syncs)),
            lows=tuple(low_runs_of(syncs, progress)),
        )

    @property
    def has_caught_up(self) -> bool:
        """Whether the newest epoch has copied again all records that have older copies."""
        last = self.lows[-1]
        return last.low is None and last.begin <= self.upstream[-1]

    def bracket(self, position: int) -> SyncBracket:
        """Return the syncs around a position, of the newest epoch that reaches down to it."""
        run = self.brackets[bisect_right(self.brackets, position, key=_begin) - 1]
        at = bisect_right(self.upstream, position, run.start, run.stop) - 1
        return self.bracket_after(at, run, position)

    def bracket_after(self, at: int, run: BracketRun, position: int) -> SyncBracket:
        """Return the bracket of a position; ``at`` is its earlier sync, start - 1 without one."""
        before = self._sync(at) if at >= run.start else None
        # Where only the target grew by more, the next sync is of another epoch.
        rises = at + 1 < len(self.upstream) and self.upstream[at + 1] > position
        after = self._sync(at + 1) if rises else None
        rewind = None
        if run.rewind is not None and run.rewind > at + 1:
            rewind = self._sync(run.rewind)
        recopied = rewind is not None and after is not None and after.upstream >= rewind.upstream
        return SyncBracket(position, before, after, rewind if recopied else None)

    def low(self, position: int) -> int:
        """Return the lower bound if extras are possible: a target offset, or BEGINNING."""
        return low_at(self.lows, self.upstream, self.downstream, position)

    def older_low(self, bracket: SyncBracket) -> int | None:
        """Return the lower bound if older copies count as well: a target offset, or BEGINNING.

        None if the bracket alone gives the lower bound: no older copy lies below it. Then evidence
        of the records between its syncs may raise the bound.
        """
        low = self.low(bracket.position)
        if bracket.is_sync or bracket.after is None:
            return None if low == bracket.low else low
        return None if low == bracket.low and self._is_settled(bracket.after) else low

    def search_range(self, bracket: SyncBracket) -> SearchRange | None:
        """Return the offsets to read around a position; None if no sync can end the range.

        They are those of the bracket, unless a record from the position on may have older copies
        only. Then the range begins where these may lie, and is longer.
        """
        has_older_copies = self.older_low(bracket) is not None
        if bracket.end is None and not has_older_copies:
            return None
        if bracket.end and not has_older_copies and self._is_settled(bracket.end):
            begin, end = bracket.begin, bracket.end
            may_hide = begins_epoch(*steps_between(begin, end))
            is_ordered = bracket.rewind is None and not may_hide
            return SearchRange(bracket.position, begin, end, is_ordered=is_ordered)
        return self._range_with_older_copies(bracket.position)

    def _range_with_older_copies(self, position: int) -> SearchRange | None:
        """Return the range from a position's lower bound to the next sync without older copies.

        None if there is no such sync after the position.
        """
        last = self._next_settled(position)
        if last is None:
            return None
        low = max(0, self.low(position))
        # A rewind in the range may have copied records from before the position.
        first = max(0, bisect_left(self.downstream, low) - 1)
        lowest = min(position, *self.upstream[first : last + 1])
        begin, end = SyncPoint(lowest, low), self._sync(last)
        is_newest = self.has_caught_up and self._is_newest(last)
        return SearchRange(position, begin, end, is_newest=is_newest)

    def _next_settled(self, position: int) -> int | None:
        """Return the index of the first sync after a position whose own offset bounds it.

        A sync whose record no newer epoch has copied again comes first.
        """
        older: int | None = None
        first = bisect_right(self.lows, position, key=_begin) - 1
        for number in range(first, len(self.lows)):
            run, following = self.lows[number], number + 1
            if run.low is None:
                end = self.lows[following].begin if following < len(self.lows) else END
                begin = max(run.begin, position + 1)
                at = bisect_left(self.upstream, begin, run.start, run.stop)
                if at < run.stop and self.upstream[at] < end:
                    if self._is_newest(at):
                        return at
                    older = at if older is None else older
        return older

    def _is_newest(self, at: int) -> bool:
        """Tell whether no newer epoch has copied the record of a sync again."""
        return self.bracket(self.upstream[at]).before == self._sync(at)

    def upstream_at(self, downstream: int) -> int | None:
        """Return the source offset of the sync at a target offset, if there is one."""
        at = bisect_left(self.downstream, downstream)
        is_sync = at < len(self.downstream) and self.downstream[at] == downstream
        return self.upstream[at] if is_sync else None

    def has_copied(self, offset: int) -> bool:
        """Tell whether the newest epoch around a source offset seems to have copied it."""
        bracket = self.bracket(offset)
        if bracket.is_sync:
            return True
        is_passed = bracket.before is not None and bracket.after is not None
        return is_passed and not lacks_records(*bracket.steps)

    def settled_from(self, offset: int) -> int:
        """Return the first source offset whose lower bound is ``offset`` or above; END without one.

        From there on, no record has its last copy below the target offset ``offset``.
        """
        ends = [*(run.begin for run in self.lows[1:]), END]
        for run, end in zip(self.lows, ends, strict=True):
            if self.low(run.begin) >= offset:
                return run.begin
            at = bisect_left(self.downstream, offset, run.start, run.stop)
            if run.low is None and at < run.stop and run.begin <= self.upstream[at] < end:
                return self.upstream[at]
        return END

    def settled_sync(self, offset: int) -> SyncPoint | None:
        """Return the sync at or after ``settled_from``, if the newest epoch has caught up."""
        run = self.lows[-1]
        at = bisect_left(self.upstream, self.settled_from(offset), run.start, run.stop)
        return self._sync(at) if self.has_caught_up and at < run.stop else None

    def _is_settled(self, sync: SyncPoint) -> bool:
        """Tell whether all records from a sync on have copies at its target offset or above."""
        return self.low(sync.upstream) >= sync.downstream

    def runs_from(self, at: int) -> tuple[object, ...]:
        """Return the runs of all positions from the sync with index ``at`` on.

        The archive compares these runs with those of the syncs from ``at`` on alone. If they are
        equal, no position needs an earlier sync. Dropping the earlier syncs moves all indexes, so
        the runs count indexes from the end: the last sync is -1.
        """
        position, count = self.upstream[at], len(self.upstream)
        brackets = [
            run._replace(
                start=max(run.start, at) - count,
                stop=run.stop - count,
                rewind=None if run.rewind is None else run.rewind - count,
            )
            for run in clipped(self.brackets, position, END)
        ]
        lows = [
            LowRun(run.begin, max(run.start, at) - count, run.stop - count)
            if run.low is None
            else run  # one bound for all its positions: it has no indexes
            for run in clipped(self.lows, position, END)
        ]
        return brackets, lows

    def _sync(self, at: int) -> SyncPoint:
        return SyncPoint(self.upstream[at], self.downstream[at])


def _bracket_runs(syncs: "PartitionSyncs") -> Iterator[BracketRun]:
    runs: list[BracketRun] = []
    begin, rewind = END, None
    for start, stop in reversed(syncs.epochs):
        if syncs.upstream[start] < begin:
            begin = syncs.upstream[start]
            runs.append(BracketRun(begin, start, stop, rewind))
            rewind = start
    # Before the first sync.
    runs.append(BracketRun(0, 0, 1, rewind or None))
    return reversed(runs)
