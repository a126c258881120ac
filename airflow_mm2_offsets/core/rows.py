"""The answers for all positions of a partition, written out as rows.

The functions that answer one position make the rows, too: ``bracket_bounds``, ``segments``,
``lows``, ``duplicates``. The Spark job searches ``rows_of``. ``bulk`` takes ``parts_of``, and makes
the rows of whole brackets with numpy.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from airflow_mm2_offsets.core.bounds import begins_epoch
from airflow_mm2_offsets.core.bracket import BEGINNING, END, SyncBracket, SyncPoint, steps_between
from airflow_mm2_offsets.core.bracket_bounds import NEVER_RISES, BracketBounds
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import Extras
from airflow_mm2_offsets.core.lows import LowRun
from airflow_mm2_offsets.core.result import Basis
from airflow_mm2_offsets.core.segments import BracketRun


class Row(NamedTuple):
    """The answers for the positions from ``begin`` to ``end``.

    If ``at_low`` is set, the answer for ``begin`` is ``at_low`` to ``at_high``. The answer for
    each other position p is
    ``low + max(0, p - low_rises_from)`` to ``high - max(0, high_rises_until - p)``.
    """

    begin: int
    end: int
    at_low: int | None
    at_high: int | None
    low: int | None
    """None if the positions are refused."""
    low_rises_from: int
    high: int | None
    """None if only the target's end bounds the answer, or if it is refused."""
    high_rises_until: int
    basis: Basis
    """If ``at_low`` is set, the basis at ``begin`` is SYNC, unless this is COPYING_AGAIN."""


class WholeBrackets(NamedTuple):
    """Brackets whose two syncs bound their positions, perhaps with one bound of older copies.

    Their earlier syncs are ``[start, stop)``; the later sync of each is the next one.
    """

    start: int
    stop: int
    low: int | None
    """The lower bound by older copies, of all positions: a target offset, or BEGINNING. None if no
    older copy counts."""


def rows_of(syncs: PartitionSyncs, *, extras: Extras = Extras.POSSIBLE) -> Iterator[Row]:
    """Yield the answers for all positions, rising from 0 on.

    Args:
        syncs: The syncs of the partition; without any there are no rows.
        extras: See ``SyncIndex.translate``.
    """
    for part in parts_of(syncs, extras=extras):
        if isinstance(part, Row):
            yield part
        else:
            yield from _rows_of_whole(syncs, part, extras=extras is not Extras.NONE)


def parts_of(
    syncs: PartitionSyncs, *, extras: Extras = Extras.POSSIBLE
) -> Iterator[Row | WholeBrackets]:
    """Yield the answers as ``rows_of`` does, but the rows of whole brackets as one part."""
    if not syncs:
        return
    brackets = {run.begin: run for run in syncs.segments.brackets}
    lows = {run.begin: run for run in syncs.segments.lows}
    rewinds = {run.begin: run.rewind for run in syncs.rewinds}
    run, low_run, rewind = brackets[0], lows[0], rewinds[0]
    begins = sorted({begin for begin in (*brackets, *lows, *rewinds) if begin < END})
    for begin, end in pairwise([*begins, END]):
        run, low_run = brackets.get(begin, run), lows.get(begin, low_run)
        rewind = rewinds.get(begin, rewind)
        may_have_extras = extras is not Extras.NONE
        yield from _Region(begin, end, syncs, run, low_run, rewind, may_have_extras).parts()


def _rows_of_whole(syncs: PartitionSyncs, part: WholeBrackets, *, extras: bool) -> Iterator[Row]:
    before = syncs[part.start]
    for at in range(part.start + 1, part.stop + 1):
        after = syncs[at]
        begin, down = before
        here = BracketBounds.fixed(down, down, Basis.SYNC).lowered(part.low)
        if begin + 1 == after.upstream:
            yield _row(begin, begin, None, here)
        else:
            has_extras = extras or begins_epoch(*steps_between(before, after))
            bounds = BracketBounds.between(before, after, extras=has_extras).lowered(part.low)
            yield _row(begin, after.upstream - 1, here, bounds)
        before = after


class _Region(NamedTuple):
    """Positions ``[begin, end)`` that are bounded by the same runs of syncs."""

    begin: int
    end: int
    syncs: PartitionSyncs
    run: BracketRun
    low_run: LowRun
    rewind: SyncPoint | None
    extras: bool

    def parts(self) -> Iterator[Row | WholeBrackets]:
        """Yield the rows: one begins at each sync that is a bound."""
        first, stop = self._within(self.run.start, self.run.stop)
        if self.rewind or stop - first < 2 or not self._is_whole(first):  # noqa: PLR2004 - a bracket
            yield from self._rows(first, [*self._begins(first, stop), self.end])
            return
        ups, last = self.syncs.upstream, stop - 1
        if self.begin < ups[first]:
            yield from self._rows(first, [self.begin, ups[first]])
        yield WholeBrackets(first, last, self.low_run.low)
        yield from self._rows(last, [ups[last], self.end])

    def _is_whole(self, first: int) -> bool:
        """Tell whether one lower bound, or none, joins those of the syncs from ``first`` on."""
        low = self.low_run.low
        if low is None:
            return (self.low_run.start, self.low_run.stop) == (self.run.start, self.run.stop)
        return low < self.syncs.downstream[first] and not self.syncs.beginning.history.refuses(low)

    def _within(self, start: int, stop: int) -> tuple[int, int]:
        """Return which of the syncs ``[start, stop)`` have a source offset in the region."""
        ups = self.syncs.upstream
        return (
            bisect_left(ups, self.begin, start, stop),
            bisect_left(ups, self.end, start, stop),
        )

    def _begins(self, first: int, stop: int) -> list[int]:
        """Return where the rows begin, rising."""
        ups = self.syncs.upstream
        begins = {self.begin, *ups[first:stop]}
        if self.low_run.low is None:
            low_first, low_stop = self._within(self.low_run.start, self.low_run.stop)
            begins.update(ups[low_first:low_stop])
        return sorted(begins)

    def _rows(self, following: int, begins: Sequence[int]) -> Iterator[Row]:
        """Yield the rows between neighbours of ``begins``; ``following`` is the next sync."""
        ups, at = self.syncs.upstream, following - 1
        for begin, end in pairwise(begins):
            if at + 1 < self.run.stop and ups[at + 1] == begin:
                at += 1
            yield from self._joined(at, begin, end - 1)

    def _joined(self, at: int, begin: int, end: int) -> Iterator[Row]:
        """Yield one row of ``begin`` and the positions after it; two if one can't hold both."""
        bracket = self.syncs.segments.bracket_after(at, self.run, begin)
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
        if bracket.before is None and self.syncs.beginning.history.refuses(BEGINNING):
            return Basis.HISTORY_CUT
        bounds = BracketBounds.of(bracket, extras=self.extras)
        bounds = bounds.lowered(self.syncs.segments.older_low(bracket))
        if self.syncs.beginning.history.refuses(bounds.low):
            return bounds.basis
        return bounds.raised(self.rewind)


def _fit_one_row(here: BracketBounds | Basis, after: BracketBounds | Basis) -> bool:
    """Tell whether one row can hold both: a row has one basis beside SYNC."""
    if isinstance(here, Basis) or isinstance(after, Basis):
        return False
    return (here.basis is Basis.COPYING_AGAIN) == (after.basis is Basis.COPYING_AGAIN)


def _row(
    begin: int, end: int, here: BracketBounds | Basis | None, after: BracketBounds | Basis
) -> Row:
    if isinstance(after, Basis):
        return Row(begin, end, None, None, None, NEVER_RISES, None, 0, after)
    at_low, at_high = here.at(begin) if isinstance(here, BracketBounds) else (None, None)
    return Row(begin, end, at_low, at_high, max(0, after.low), *after[1:])
