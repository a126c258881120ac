"""The answers for all positions of a partition, written out as rows.

A row is made by the functions that answer one position (``segments``, ``lows``, ``duplicates``):
it says what they say of the syncs around its positions. Spark looks its answers up in these rows.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, TypeVar

from airflow_mm2_offsets.core.bracket import SyncBracket
from airflow_mm2_offsets.core.coverage import END
from airflow_mm2_offsets.core.duplicates import Rewinds
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import Extras
from airflow_mm2_offsets.core.lows import Lows
from airflow_mm2_offsets.core.result import Basis
from airflow_mm2_offsets.core.segments import NO_KNEE, BracketBounds, Brackets

_begin = attrgetter("begin")
_Run = TypeVar("_Run", Brackets, Lows, Rewinds)


class Row(NamedTuple):
    """The answers for the positions from ``begin`` to ``end``.

    That for ``begin`` is ``at_low`` to ``at_high``, where those are set. For each other position p
    it is ``low + max(0, p - low_knee)`` to ``high - max(0, high_knee - p)``.
    """

    begin: int
    end: int
    at_low: int | None
    at_high: int | None
    low: int | None
    """None where the positions are refused."""
    low_knee: int
    high: int | None
    """None where only the target's end bounds the answer, or where it is refused."""
    high_knee: int
    basis: Basis
    """Where ``at_low`` is set, that of ``begin`` is SYNC, unless this is COPYING_AGAIN."""

    def answer(self, position: int) -> tuple[int | None, int | None, Basis]:
        """Return lower bound, upper bound and basis of one of its positions."""
        if position == self.begin and self.at_low is not None:
            again = self.basis is Basis.COPYING_AGAIN
            return self.at_low, self.at_high, self.basis if again else Basis.SYNC
        if self.low is None:
            return None, None, self.basis
        bounds = BracketBounds(self.low, self.low_knee, self.high, self.high_knee, self.basis)
        return *bounds.at(position), self.basis


def rows_of(syncs: PartitionSyncs, *, extras: Extras = Extras.POSSIBLE) -> Iterator[Row]:
    """Yield the answers for all positions, rising from 0 on.

    Args:
        syncs: Those of the partition; without any there are no rows.
        extras: See ``SyncIndex.translate``.
    """
    if not syncs:
        return
    kinds = (syncs.segments.brackets, syncs.segments.lows, syncs.rewinds)
    begins = sorted({run.begin for runs in kinds for run in runs if run.begin < END})
    for begin, end in pairwise([*begins, END]):
        yield from _Region(syncs, begin, end, extras=extras is not Extras.NONE).rows()


class _Region:
    """Positions ``[begin, end)`` that are bounded by the same runs of syncs."""

    def __init__(self, syncs: PartitionSyncs, begin: int, end: int, *, extras: bool) -> None:
        self._segments = syncs.segments
        # Nearly no history is cut: a call for each row would cost more than the rest.
        self._refuses = syncs.history.refuses if syncs.history.is_cut else None
        self._begin, self._end, self._extras = begin, end, extras
        self._run = _at(syncs.segments.brackets, begin)
        self._lows = _at(syncs.segments.lows, begin)
        self._rewind = _at(syncs.rewinds, begin).rewind
        self._has_own_lows = self._lows == (self._lows.begin, self._run.start, self._run.stop, None)
        """No older copies count: each bracket gives the lower bound by itself."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows: one begins at each sync that bounds."""
        ups, run = self._segments.upstream, self._run
        begins = {self._begin, *self._syncs(run.start, run.stop)}
        if self._lows.low is None and not self._has_own_lows:
            begins.update(self._syncs(self._lows.start, self._lows.stop))
        at = bisect_left(ups, self._begin, run.start, run.stop) - 1
        for begin, end in pairwise([*sorted(begins), self._end]):
            if at + 1 < run.stop and ups[at + 1] == begin:
                at += 1
            yield from self._joined(at, begin, end - 1)

    def _syncs(self, start: int, stop: int) -> Sequence[int]:
        """Return the source offsets of those syncs ``[start, stop)`` that lie in the region."""
        ups = self._segments.upstream
        first, last = (bisect_left(ups, each, start, stop) for each in (self._begin, self._end))
        return ups[first:last]

    def _joined(self, at: int, begin: int, end: int) -> Iterator[Row]:
        """Yield the row of ``begin`` and of the positions after it: two, if one can't hold both."""
        bracket = self._segments.bracket_after(at, self._run, begin)
        here = after = self._bounds(bracket)
        if begin < end:
            after = self._bounds(SyncBracket(begin + 1, *bracket[1:]))
        if here == after:
            yield _row(begin, end, None, after)
        elif _fit_one_row(here, after):
            yield _row(begin, end, here, after)
        else:
            yield _row(begin, begin, None, here)
            yield _row(begin + 1, end, None, after)

    def _bounds(self, bracket: SyncBracket) -> BracketBounds | Basis:
        """Return the bounds of a position, or why it is refused."""
        if self._refuses and self._refuses(bracket.low):
            return Basis.HISTORY_CUT
        bounds = BracketBounds.of(bracket, extras=self._extras)
        if not self._has_own_lows:
            bounds = bounds.lowered(self._segments.older_low(bracket))
            if self._refuses and self._refuses(bounds.low):
                return bounds.basis
        return bounds.raised(self._rewind) if self._rewind else bounds


def _fit_one_row(here: BracketBounds | Basis, after: BracketBounds | Basis) -> bool:
    """Tell whether one row can hold both: what is copied again and what is not has its own."""
    if isinstance(here, Basis) or isinstance(after, Basis):
        return False
    return (here.basis is Basis.COPYING_AGAIN) == (after.basis is Basis.COPYING_AGAIN)


def _row(
    begin: int, end: int, here: BracketBounds | Basis | None, after: BracketBounds | Basis
) -> Row:
    if isinstance(after, Basis):
        return Row(begin, end, None, None, None, NO_KNEE, None, 0, after)
    at_low, at_high = here.at(begin) if isinstance(here, BracketBounds) else (None, None)
    return Row(begin, end, at_low, at_high, max(0, after.low), *after[1:])


def _at(runs: Sequence[_Run], position: int) -> _Run:
    return runs[bisect_right(runs, position, key=_begin) - 1]
