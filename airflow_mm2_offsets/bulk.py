"""Translates many positions of a partition at once, with numpy.

The answers are those of ``SyncIndex.translate``: they are looked up in the same ``core.segments``,
written out as arrays. A table has one row for each sync and one for the positions before, between
and after two of them.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from airflow_mm2_offsets.core import (
    Extras,
    Status,
    Strategy,
    SyncIndex,
    TopicPartition,
    bounds,
)
from airflow_mm2_offsets.core.bracket import BEGINNING
from airflow_mm2_offsets.core.coverage import END
from airflow_mm2_offsets.core.duplicates import recopied_from
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.lows import Lows
from airflow_mm2_offsets.core.positions import MAX_OFFSET, check_position
from airflow_mm2_offsets.core.segments import NO_KNEE

Offsets: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.intp]

rule: Any = bounds
"""The bounds of two neighbouring syncs, number by number."""

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
    syncs = index.partitions.get(TopicPartition(topic, partition))
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
    table = _Brackets.of(syncs)
    rows = table.rows(wanted)
    low, high = table.low(rows, wanted, extras), table.high(rows, wanted, extras)
    refused = rows == 0
    if not syncs.segments.is_plain:
        older = _lows(syncs, wanted)
        own = np.where(refused, BEGINNING, table.low(rows, wanted, Extras.POSSIBLE))
        # Both sides of a bracket must be settled: see ``Segments.older_low``.
        settled = (table.highs == NONE) | (_lows(syncs, table.ups) >= table.downs)
        counts = (older != own) | (_interleave(settled.astype(np.int64), 1)[rows] == 0)
        np.minimum(low, np.maximum(older, 0), out=low, where=counts)
        if syncs.history.is_cut:
            refused |= (older == BEGINNING) & counts
    for number in range(1, len(syncs.starts)):
        rewind = syncs[syncs.starts[number]]
        begin = recopied_from(syncs, number)
        again = (wanted >= begin) & (wanted < rewind.upstream) & (high != NONE)
        np.maximum(high, rewind.downstream, out=high, where=again)
    status = (low != high).view(np.int8)  # EXACT, BOUNDED
    target = low if strategy is Strategy.SAFE else table.unsafe(rows, wanted, strategy)
    if syncs.history.is_cut or strategy is not Strategy.SAFE:
        for column in (target, low, high):
            column[refused] = NONE
        status[refused] = _REFUSED
    return Translations(target=target, low=low, high=high, status=status)


def _lows(syncs: PartitionSyncs, positions: Offsets) -> Offsets:
    """Return ``Segments.low`` of each position."""
    lows = syncs.segments.lows
    ends = [run.begin for run in lows[1:]] + [END]
    parts = [_low_rows(syncs, run, end) for run, end in zip(lows, ends, strict=True)]
    begins, at_begin, after = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    rows = np.searchsorted(begins, positions, "right") - 1
    found: Offsets = np.where(begins[rows] == positions, at_begin[rows], after[rows])
    return found


def _low_rows(syncs: PartitionSyncs, run: Lows, end: int) -> tuple[Offsets, Offsets, Offsets]:
    """Return where rows begin, what bounds their first position, and what bounds the others."""
    if run.low is not None:
        begin, low = np.array([run.begin]), np.array([run.low])
        return begin, low, low
    first = bisect_right(syncs.upstream, run.begin, run.start, run.stop) - 1
    last = bisect_left(syncs.upstream, end, run.start, run.stop)
    begins = np.array(syncs.upstream[first:last])
    at_begin = np.array(syncs.downstream[first:last])
    after = rule.lower_bound(at_begin)
    if begins[0] < run.begin:
        begins[0], at_begin[0] = run.begin, after[0]
    return begins, at_begin, after


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brackets:
    """Row 2k + 1 is for the position of sync k, row 2k for those between it and the one before."""

    positions: Offsets
    """The positions of the syncs that can be the earlier one of a bracket, rising."""
    targets: Offsets
    """The target offset of each."""
    ups: Offsets
    """For the positions before, between and after them: the source offset of the later sync."""
    downs: Offsets
    """Its target offset."""
    highs: Offsets
    """The target offset that bounds the answer: ``downs``, that of a newer copy, or NONE."""

    @classmethod
    def of(cls, syncs: PartitionSyncs) -> "_Brackets":
        """Write out the brackets of ``syncs``."""
        upstream = np.frombuffer(syncs.upstream, np.int64)
        downstream = np.frombuffer(syncs.downstream, np.int64)
        first, *runs = syncs.segments.brackets
        ends = [run.begin for run in runs[1:]] + [END]
        cuts = [
            bisect_left(syncs.upstream, end, run.start, run.stop)
            for run, end in zip(runs, ends, strict=True)
        ]
        before = np.concatenate(
            [np.arange(run.start, cut) for run, cut in zip(runs, cuts, strict=True)]
        )
        # The first has no earlier sync; where an epoch's last has no later one, any will do.
        after = np.append(0, np.minimum(before + 1, len(syncs) - 1))
        ups, downs = upstream[after], downstream[after]
        highs = downs.copy()
        row = 0
        for run, cut in zip([first, *runs], [0, *cuts], strict=True):
            row += cut - run.start
            if cut == run.stop:
                highs[row] = NONE
            elif run.rewind is not None and ups[row] >= syncs.upstream[run.rewind]:
                highs[row] = syncs.downstream[run.rewind]
        return cls(
            positions=upstream[before],
            targets=downstream[before],
            ups=ups,
            downs=downs,
            highs=highs,
        )

    def rows(self, positions: Offsets) -> Rows:
        """Return the row of each position: how many rows begin at or before it, less one."""
        begins = _interleave(np.append(0, self.positions + 1), self.positions)[1:]
        if self.positions[-1] == MAX_OFFSET:
            begins = begins[:-1]  # It has overflowed, and no position comes after that sync.
        if np.all(positions[1:] >= positions[:-1]):
            edges = np.searchsorted(positions, begins)
            counts = np.diff(edges, prepend=0, append=len(positions))
            return np.repeat(np.arange(len(counts)), counts)
        return np.searchsorted(begins, positions, "right")

    def low(self, rows: Rows, positions: Offsets, extras: Extras) -> Offsets:
        """Return the lower bounds of positions that have ``rows``."""
        lows = np.append(0, rule.lower_bound(self.targets))
        low: Offsets = _interleave(lows, self.targets)[rows]
        if extras is Extras.NONE:
            knees = rule.lower_knee(lows, self.ups, self.downs)
            knees = np.where(self._has_no_extras(), knees, NO_KNEE)
            low += np.maximum(0, positions - _interleave(knees, NO_KNEE)[rows])
        return low

    def high(self, rows: Rows, positions: Offsets, extras: Extras) -> Offsets:
        """Return the upper bounds of positions that have ``rows``."""
        high: Offsets = _interleave(self.highs, self.targets)[rows]
        if extras is Extras.NONE:
            knees = rule.upper_knee(self.positions, self.targets, self.downs[1:])
            # A newer copy bounds by itself.
            follows = self._has_no_extras() & (self.highs == self.downs)
            knees = np.where(follows, np.append(0, knees), 0)
            high -= np.maximum(0, _interleave(knees, 0)[rows] - positions)
        return high

    def unsafe(self, rows: Rows, positions: Offsets, strategy: Strategy) -> Offsets:
        """Return what a strategy that is not safe answers; row 0 has no answer."""
        if strategy is Strategy.KAFKA:
            return self.low(rows, positions, Extras.POSSIBLE)
        shifts = self.targets - self.positions
        return positions + _interleave(np.append(0, shifts), shifts)[rows]

    def _has_no_extras(self) -> npt.NDArray[np.bool_]:
        """Tell of each bracket whether it has a later sync, and nothing proves extras in it."""
        proven = rule.proves_extras(self.ups[1:] - self.positions, self.downs[1:] - self.targets)
        free: npt.NDArray[np.bool_] = ~np.append(False, proven) & (self.highs != NONE)
        return free


def _interleave(brackets: Offsets, syncs: Offsets | int) -> Offsets:
    """Return the rows of a table: bracket, sync, bracket, and so on."""
    rows = np.empty(2 * len(brackets) - 1, np.int64)
    rows[::2], rows[1::2] = brackets, syncs
    return rows
