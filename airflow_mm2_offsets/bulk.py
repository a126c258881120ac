"""Translates many positions of a partition at once, with numpy.

The syncs of a partition are knots on the line of source positions; what is known is the same
sort of thing for all positions between two knots. So a table has one row for each knot and one
for each stretch before, between and after them, and a position is answered by its row. Rules and
answers are those of ``SyncIndex.translate``; see ``core.bounds`` and ``PartitionSyncs.stretches``.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from airflow_mm2_offsets.core import Extras, Status, Strategy, SyncIndex
from airflow_mm2_offsets.core.epochs import Epoch, PartitionSyncs
from airflow_mm2_offsets.core.positions import MAX_OFFSET, check_position
from airflow_mm2_offsets.core.recopies import rewind_begin
from airflow_mm2_offsets.core.stretch import SyncPoint

Offsets: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.intp]

NONE = -1
"""Stands for None in arrays of offsets."""

STATUSES = (Status.EXACT, Status.BOUNDED, Status.REFUSED)
"""What the numbers in ``Translations.status`` mean."""

_REFUSED = STATUSES.index(Status.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translations:
    """The answers for many positions, in their order; see ``Translation`` for each column."""

    target: Offsets
    """NONE where refused."""
    low: Offsets
    """NONE where refused."""
    high: Offsets
    """NONE where refused, or where only the target's end bounds the answer."""
    status: npt.NDArray[np.int8]
    """Indexes of ``STATUSES``."""


def translate_many(
    index: SyncIndex,
    topic: str,
    partition: int,
    positions: npt.ArrayLike,
    *,
    strategy: Strategy | str = Strategy.SAFE,
    extras: Extras | str = Extras.POSSIBLE,
) -> Translations:
    """Translate many source positions of one partition; rising ones are the fastest.

    Args:
        index: The syncs.
        topic: The topic's name on the source.
        partition: Its partition.
        positions: The next offsets to read on the source, in any order.
        strategy: See ``SyncIndex.translate``.
        extras: See ``SyncIndex.translate``; for all positions alike.

    Raises:
        PositionError: One is negative, or they are not whole numbers of 64 bits.
        ValueError: ``strategy`` or ``extras`` is unknown.
    """
    wanted = _checked(topic, partition, positions)
    strategy, extras = Strategy(strategy), Extras(extras)
    syncs = index.partitions.get((topic, partition))
    if not syncs:
        nothing = np.full(wanted.shape, NONE, np.int64)
        refused = np.full(wanted.shape, _REFUSED, np.int8)
        return Translations(target=nothing, low=nothing, high=nothing, status=refused)
    return _translate(syncs, wanted, strategy, extras)


def _checked(topic: str, partition: int, positions: npt.ArrayLike) -> Offsets:
    given = np.ravel(positions)
    if not given.size:
        return given.astype(np.int64)
    if given.dtype.kind not in "iu":
        check_position(topic, partition, given.dtype)
    for extreme in (given.min(), given.max()):
        check_position(topic, partition, int(extreme))
    return given.astype(np.int64, copy=False)


def _translate(
    syncs: PartitionSyncs, wanted: Offsets, strategy: Strategy, extras: Extras
) -> Translations:
    levels = _levels(syncs)
    _, epochs = next(levels)
    newest = _Table.of(syncs, epochs)
    rows = newest.rows(wanted)
    low, high = newest.low(rows, wanted, extras), newest.high(rows, wanted, extras)
    unknown = rows == 0
    # What MirrorMaker 2 has yet to copy again exists only in older epochs and in detours.
    for begin, epochs in levels:
        older, later = _Table.of(syncs, epochs), np.maximum(wanted, begin)
        older_rows = older.rows(later)
        np.minimum(low, older.low(older_rows, later, extras), out=low)
        if syncs.history_cut:
            unknown |= older_rows == 0
    for detour in syncs.detours:
        floor = syncs[detour]
        np.minimum(low, floor.downstream + 1, out=low, where=wanted > floor.upstream)
    for begin, first in _rewinds(syncs):
        again = (wanted >= begin) & (wanted < first.upstream) & (high != NONE)
        np.maximum(high, first.downstream, out=high, where=again)
    status = (low != high).view(np.int8)  # EXACT, BOUNDED
    target = low if strategy is Strategy.SAFE else newest.guess(rows, wanted, strategy)
    if syncs.history_cut or strategy is not Strategy.SAFE:
        for column in (target, low, high):
            column[unknown] = NONE
        status[unknown] = _REFUSED
    return Translations(target=target, low=low, high=high, status=status)


def _levels(syncs: PartitionSyncs) -> Iterator[tuple[int, tuple[Epoch, ...]]]:
    """Yield which epochs count, newest level first, and the lowest position for which they do."""
    begin = 0
    for count in range(len(syncs.epochs), 0, -1):
        epochs = syncs.epochs[:count]
        yield begin, epochs
        if epochs[-1].caught_up:
            break
        begin = max(begin, syncs.upstream[epochs[-1].stop - 1] + 1)


def _rewinds(syncs: PartitionSyncs) -> Iterator[tuple[int, SyncPoint]]:
    """Yield the first sync of each later epoch, after the first position copied again unseen."""
    for number in range(1, len(syncs.epochs)):
        yield rewind_begin(syncs, number), syncs[syncs.epochs[number].start]


class _Piece(NamedTuple):
    """The syncs ``[start, cut)`` of an epoch ``[start, stop)``: a newer one goes on from there."""

    start: int
    cut: int
    stop: int


def _pieces(syncs: PartitionSyncs, epochs: tuple[Epoch, ...]) -> list[_Piece]:
    """Return, oldest first, the syncs that can be the floor of a position."""
    pieces: list[_Piece] = []
    begin = MAX_OFFSET + 1
    for start, stop in ((epoch.start, epoch.stop) for epoch in reversed(epochs)):
        if syncs.upstream[start] < begin:
            cut = bisect_left(syncs.upstream, begin, start, stop)
            pieces.append(_Piece(start, cut, stop))
            begin = syncs.upstream[start]
    return pieces[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Row 2k + 1 is for the position of knot k, row 2k for those between it and the one before."""

    knots: Offsets
    """The positions of the syncs that can be the floor of one, rising."""
    floors: Offsets
    """The target offset of each."""
    ups: Offsets
    """For each stretch, the source offset of its ceiling."""
    downs: Offsets
    """Its target offset."""
    highs: Offsets
    """The target offset that bounds the stretch: ``downs``, a newer copy's, or NONE."""

    @classmethod
    def of(cls, syncs: PartitionSyncs, epochs: tuple[Epoch, ...]) -> "_Table":
        """Make the table of the first epochs of ``syncs``."""
        upstream = np.frombuffer(syncs.upstream, np.int64)
        downstream = np.frombuffer(syncs.downstream, np.int64)
        pieces = _pieces(syncs, epochs)
        floor = np.concatenate([np.arange(each.start, each.cut) for each in pieces])
        # The first stretch has no floor; where an epoch's last has no ceiling, any will do.
        ceiling = np.append(0, np.minimum(floor + 1, len(syncs) - 1))
        ups, downs = upstream[ceiling], downstream[ceiling]
        highs = downs.copy()
        stretch = 0
        for start, cut, stop in pieces:
            rewind = syncs[start]
            if start > 0 and highs[stretch] != NONE and ups[stretch] >= rewind.upstream:
                highs[stretch] = rewind.downstream
            stretch += cut - start
            if cut == stop:
                highs[stretch] = NONE
        return cls(
            knots=upstream[floor], floors=downstream[floor], ups=ups, downs=downs, highs=highs
        )

    def rows(self, positions: Offsets) -> Rows:
        """Return the row of each position: how many rows begin at or before it, less one."""
        begins = _interleave(np.append(0, self.knots + 1), self.knots)[1:]
        if self.knots[-1] == MAX_OFFSET:
            begins = begins[:-1]  # It has overflowed, and no position comes after that knot.
        if np.all(positions[1:] >= positions[:-1]):
            edges = np.searchsorted(positions, begins)
            counts = np.diff(edges, prepend=0, append=len(positions))
            return np.repeat(np.arange(len(counts)), counts)
        return np.searchsorted(begins, positions, "right")

    def low(self, rows: Rows, positions: Offsets, extras: Extras) -> Offsets:
        """Return the lower bounds of positions that have ``rows``."""
        lows = np.append(0, self.floors + 1)
        low: Offsets = _interleave(lows, self.floors)[rows]
        if extras is Extras.NONE:
            # From the knee on, one record less on the source is one less on the target.
            knees = np.where(self._plain(), self.ups - (self.downs - lows), MAX_OFFSET)
            low += np.maximum(0, positions - _interleave(knees, MAX_OFFSET)[rows])
        return low

    def high(self, rows: Rows, positions: Offsets, extras: Extras) -> Offsets:
        """Return the upper bounds of positions that have ``rows``."""
        high: Offsets = _interleave(self.highs, self.floors)[rows]
        if extras is Extras.NONE:
            # Up to the knee, one record more on the source is one more on the target.
            knees = np.append(0, self.downs[1:] - self.floors + self.knots)
            knees = np.where(self._plain() & (self.highs == self.downs), knees, 0)
            high -= np.maximum(0, _interleave(knees, 0)[rows] - positions)
        return high

    def guess(self, rows: Rows, positions: Offsets, strategy: Strategy) -> Offsets:
        """Return what a strategy that is not safe answers; row 0 has no answer."""
        if strategy is Strategy.KAFKA:
            return self.low(rows, positions, Extras.POSSIBLE)
        shifts = self.floors - self.knots
        return positions + _interleave(np.append(0, shifts), shifts)[rows]

    def _plain(self) -> npt.NDArray[np.bool_]:
        """Tell of each stretch whether it has a ceiling, and grew by no more than the source."""
        grew = self.downs[1:] - self.floors > self.ups[1:] - self.knots
        plain: npt.NDArray[np.bool_] = ~np.append(False, grew) & (self.highs != NONE)
        return plain


def _interleave(stretches: Offsets, knots: Offsets | int) -> Offsets:
    """Return the rows of a table: stretch, knot, stretch, and so on."""
    rows = np.empty(2 * len(stretches) - 1, np.int64)
    rows[::2], rows[1::2] = stretches, knots
    return rows
