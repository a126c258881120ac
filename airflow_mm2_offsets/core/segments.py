"""What the syncs of one partition say of all positions: the rule of translation.

Everything looks up what is made here: ``rules`` one position, ``bulk`` many with numpy, the job's
side in Spark columns, and the archive which syncs no position needs any more.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bounds import (
    lower_bound,
    lower_knee,
    may_hide_rewind,
    proves_extras,
    upper_knee,
)
from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint
from airflow_mm2_offsets.core.coverage import END, Copied
from airflow_mm2_offsets.core.lows import Lows, clipped, low_at, lows_of, settled_from
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.result import Basis

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs

NO_KNEE = MAX_OFFSET
"""The knee of a lower bound that does not rise with the position."""
_begin = attrgetter("begin")


class BracketBounds(NamedTuple):
    """What is known of a position, or of all positions of a bracket that are no sync.

    ``low + max(0, p - low_knee) <= g(p) <= high - max(0, high_knee - p)``, see ``bounds``.
    """

    low: int
    """A target offset, or BEGINNING by older copies."""
    low_knee: int
    high: int | None
    """None where only the target's end bounds the answer."""
    high_knee: int
    basis: Basis

    @classmethod
    def of(cls, bracket: SyncBracket, *, extras: bool) -> "BracketBounds":
        """Return what the syncs of a bracket say.

        Args:
            bracket: The syncs, and the position or one of those that are no sync.
            extras: Offsets that copy no new record are possible between them on the target.
        """
        _, before, after, rewind = bracket
        if before and bracket.is_sync:
            return cls(before.downstream, NO_KNEE, before.downstream, 0, Basis.SYNC)
        # Where the target has deleted its beginning, 0 becomes a refusal: the copy may be gone.
        low = lower_bound(before.downstream) if before else 0
        if after is None:
            return cls(low, NO_KNEE, None, 0, Basis.AFTER_LAST_SYNC)
        low_knee, high, high_knee = NO_KNEE, after.downstream, 0
        if not extras and not (before and proves_extras(*bracket.steps)):
            low_knee = lower_knee(low, after.upstream, after.downstream)
            if before:
                high_knee = upper_knee(before.upstream, before.downstream, after.downstream)
        if rewind:
            # The record of ``after`` was copied again: only the newer copy bounds from above.
            high, high_knee = rewind.downstream, 0
        basis = Basis.BETWEEN_SYNCS if before else Basis.BEFORE_FIRST_SYNC
        return cls(low, low_knee, high, high_knee, basis)

    @classmethod
    def fixed(cls, low: int, high: int | None, basis: Basis) -> "BracketBounds":
        """Return bounds that are the same for all positions."""
        return cls(low, NO_KNEE, high, 0, basis)

    def lowered(self, older: int | None) -> "BracketBounds":
        """Return the bounds where the lower one by older copies counts as well, if there is one."""
        if older is None:
            return self
        # What exists in older copies only may as well have been copied again since the last sync.
        low = min(self.low, older)
        return BracketBounds(low, NO_KNEE, self.high, self.high_knee, Basis.COPYING_AGAIN)

    def raised(self, rewind: SyncPoint | None) -> "BracketBounds":
        """Return the bounds where records may be copied again unseen before a rewind, if any."""
        if rewind is None or self.high is None or self.high > rewind.downstream:
            return self
        return self._replace(high=rewind.downstream, high_knee=0)

    def at(self, position: int) -> tuple[int, int | None]:
        """Return the lower and the upper bound of one position."""
        low = max(0, self.low) + max(0, position - self.low_knee)
        return low, None if self.high is None else self.high - max(0, self.high_knee - position)


class Brackets(NamedTuple):
    """From ``begin`` on, the bracket of a position lies among the syncs ``[start, stop)``."""

    begin: int
    start: int
    stop: int
    rewind: int | None
    """The first sync of the newer epoch that goes on from there."""


class Window(NamedTuple):
    """What must be read of both clusters to find a position by content."""

    position: int
    begin: SyncPoint
    """The first offset on either side."""
    end: SyncPoint
    """A sync, from which on nothing is in doubt: the last offset on either side."""
    is_ordered: bool = False
    """No rewind can lie between the two: the copies are in the source's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """What the syncs of one partition say of all positions: runs of them, rising from 0 on."""

    upstream: Sequence[int]
    downstream: Sequence[int]
    brackets: tuple[Brackets, ...]
    lows: tuple[Lows, ...]

    @classmethod
    def of(cls, syncs: "PartitionSyncs", copied: Copied | None = None) -> "Segments":
        """Make the segments of ``syncs``, at least one; see ``lows_of``."""
        return cls(
            upstream=syncs.upstream,
            downstream=syncs.downstream,
            brackets=tuple(_brackets(syncs)),
            lows=tuple(lows_of(syncs, copied)),
        )

    @property
    def is_plain(self) -> bool:
        """No older copies count anywhere: each bracket gives the lower bound by itself."""
        _, *runs = self.brackets
        own = [(run.begin, run.start) for run in runs]
        before_first = [] if runs[0].begin == 0 else [0]
        return [(run.begin, run.start) for run in self.lows if run.low is None] == own and [
            run.begin for run in self.lows if run.low is not None
        ] == before_first

    @property
    def is_closed(self) -> bool:
        """The newest syncs have come as far as any before."""
        return self.lows[-1].low is None

    def bracket(self, position: int) -> SyncBracket:
        """Return the syncs around a position, of the newest epoch that reaches down to it."""
        run = self.brackets[bisect_right(self.brackets, position, key=_begin) - 1]
        at = bisect_right(self.upstream, position, run.start, run.stop) - 1
        return self.bracket_after(at, run, position)

    def bracket_after(self, at: int, run: Brackets, position: int) -> SyncBracket:
        """Return the bracket of a position at or after the sync ``at`` of a run, or before all."""
        before = self._sync(at) if at >= run.start else None
        after = self._sync(at + 1) if at + 1 < run.stop else None
        rewind = None if run.rewind is None else self._sync(run.rewind)
        recopied = rewind is not None and after is not None and after.upstream >= rewind.upstream
        return SyncBracket(position, before, after, rewind if recopied else None)

    def low(self, position: int) -> int:
        """Return the lower bound where extras are possible: a target offset, or BEGINNING."""
        return low_at(self.lows, self.upstream, self.downstream, position)

    def older_low(self, bracket: SyncBracket) -> int | None:
        """Return the lower bound where older copies count as well: an offset, or BEGINNING.

        None where the bracket gives it: what is known of the records between its syncs, which no
        older copy can undercut, may then raise it.
        """
        low = self.low(bracket.position)
        if bracket.is_sync or bracket.after is None:
            return None if low == bracket.low else low
        return None if low == bracket.low and self._is_settled(bracket.after) else low

    def window(self, bracket: SyncBracket) -> Window | None:
        """Return what to read around a position; None where no sync ends it."""
        is_own = self.older_low(bracket) is None
        if bracket.end is None and is_own:
            return None
        if bracket.end and is_own and self._is_settled(bracket.end):
            begin, end = bracket.begin, bracket.end
            steps = (later - first for first, later in zip(begin, end, strict=True))
            is_ordered = bracket.rewind is None and not may_hide_rewind(*steps)
            return Window(bracket.position, begin, end, is_ordered=is_ordered)
        settled = self.lows[-1]
        if settled.low is not None:
            return None
        low = max(0, self.low(bracket.position))
        last = bisect_left(self.upstream, settled.begin, settled.start, settled.stop)
        if last == settled.stop or self.upstream[last] <= bracket.position:
            return None
        first = max(0, bisect_left(self.downstream, low) - 1)
        lowest = min(bracket.position, *self.upstream[first : last + 1])
        return Window(bracket.position, SyncPoint(lowest, low), self._sync(last))

    def settled_from(self, offset: int) -> int:
        """Return the source offset from which on no record has its last copy below ``offset``."""
        return settled_from(self.lows, self.upstream, self.downstream, offset)

    def _is_settled(self, sync: SyncPoint) -> bool:
        """Tell whether no record from a sync's on may have copies below it only."""
        return self.low(sync.upstream) >= sync.downstream

    def since(self, at: int) -> tuple[object, ...]:
        """Return what is said of the positions from a sync on, its indexes counted from the end.

        Where it is the same without the syncs before that one, no answer needs them.
        """
        position, end = self.upstream[at], len(self.upstream)
        brackets = [
            run._replace(
                start=max(run.start, at) - end,
                stop=run.stop - end,
                rewind=None if run.rewind is None else run.rewind - end,
            )
            for run in clipped(self.brackets, position, END)
        ]
        lows = [
            run
            if run.low is not None
            else Lows(run.begin, max(run.start, at) - end, run.stop - end)
            for run in clipped(self.lows, position, END)
        ]
        return brackets, lows

    def _sync(self, at: int) -> SyncPoint:
        return SyncPoint(self.upstream[at], self.downstream[at])


def _brackets(syncs: "PartitionSyncs") -> Iterator[Brackets]:
    runs: list[Brackets] = []
    begin, rewind = END, None
    for start, stop in reversed(syncs.epochs):
        if syncs.upstream[start] < begin:
            begin = syncs.upstream[start]
            runs.append(Brackets(begin, start, stop, rewind))
            rewind = start
    # Before the first sync.
    runs.append(Brackets(0, 0, 1, rewind or None))
    return reversed(runs)
