"""The rule of translation: what the syncs of one partition say of each position.

All faces ask it: ``rules`` for one position; ``rows`` for all positions of a partition, which
``bulk`` (numpy) and the Spark job search; the archive, to see which syncs no position needs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bracket import END, SyncBracket, SyncPoint
from airflow_mm2_offsets.core.lows import (
    NO_PROGRESS,
    LowRun,
    Progress,
    clipped,
    low_at,
    low_runs_of,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """What the syncs of one partition say of all positions, as runs that rise from 0 on."""

    upstream: Sequence[int]
    downstream: Sequence[int]
    brackets: tuple[BracketRun, ...]
    lows: tuple[LowRun, ...]

    @classmethod
    def of(cls, syncs: "PartitionSyncs", progress: Progress = NO_PROGRESS) -> "Segments":
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
        before = self.sync(at) if at >= run.start else None
        # Where only the target grew by more, the next sync is of another epoch.
        rises = at + 1 < len(self.upstream) and self.upstream[at + 1] > position
        after = self.sync(at + 1) if rises else None
        rewind = None
        if run.rewind is not None and run.rewind > at + 1:
            rewind = self.sync(run.rewind)
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
        return None if low == bracket.low and self.is_settled(bracket.after) else low

    def upstream_at(self, downstream: int) -> int | None:
        """Return the source offset of the sync at a target offset, if there is one."""
        at = bisect_left(self.downstream, downstream)
        is_sync = at < len(self.downstream) and self.downstream[at] == downstream
        return self.upstream[at] if is_sync else None

    def is_settled(self, sync: SyncPoint) -> bool:
        """Tell whether all records from a sync on have copies at its target offset or above."""
        return self.low(sync.upstream) >= sync.downstream

    def sync(self, at: int) -> SyncPoint:
        """Return the sync with index ``at``."""
        return SyncPoint(self.upstream[at], self.downstream[at])

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
