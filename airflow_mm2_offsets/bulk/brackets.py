"""The brackets of a partition as arrays: one row for each sync, and one between two of them."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from airflow_mm2_offsets.core import Extras, Strategy, bounds
from airflow_mm2_offsets.core.coverage import END
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.segments import NO_KNEE

Offsets: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.intp]

rule: Any = bounds
"""The bounds of two neighbouring syncs, number by number."""

NONE = -1
"""Stands for None in arrays of offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BracketTable:
    """The brackets of a partition's syncs, as a table.

    Row 2k + 1 is for the position of sync k, row 2k for those between it and the one before.
    """

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
    def of(cls, syncs: PartitionSyncs) -> "BracketTable":
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
        begins = interleave(np.append(0, self.positions + 1), self.positions)[1:]
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
        low: Offsets = interleave(lows, self.targets)[rows]
        if extras is Extras.NONE:
            knees = rule.lower_knee(lows, self.ups, self.downs)
            knees = np.where(self._has_no_extras(), knees, NO_KNEE)
            low += np.maximum(0, positions - interleave(knees, NO_KNEE)[rows])
        return low

    def high(self, rows: Rows, positions: Offsets, extras: Extras) -> Offsets:
        """Return the upper bounds of positions that have ``rows``."""
        high: Offsets = interleave(self.highs, self.targets)[rows]
        if extras is Extras.NONE:
            knees = rule.upper_knee(self.positions, self.targets, self.downs[1:])
            # A newer copy bounds by itself.
            follows = self._has_no_extras() & (self.highs == self.downs)
            knees = np.where(follows, np.append(0, knees), 0)
            high -= np.maximum(0, interleave(knees, 0)[rows] - positions)
        return high

    def unsafe(self, rows: Rows, positions: Offsets, strategy: Strategy) -> Offsets:
        """Return what a strategy that is not safe answers; row 0 has no answer."""
        if strategy is Strategy.KAFKA:
            return self.low(rows, positions, Extras.POSSIBLE)
        shifts = self.targets - self.positions
        return positions + interleave(np.append(0, shifts), shifts)[rows]

    def _has_no_extras(self) -> npt.NDArray[np.bool_]:
        """Tell of each bracket whether it has a later sync, and nothing proves extras in it."""
        proven = rule.proves_extras(self.ups[1:] - self.positions, self.downs[1:] - self.targets)
        free: npt.NDArray[np.bool_] = ~np.append(False, proven) & (self.highs != NONE)
        return free


def interleave(brackets: Offsets, syncs: Offsets | int) -> Offsets:
    """Return the rows of a table: bracket, sync, bracket, and so on."""
    rows = np.empty(2 * len(brackets) - 1, np.int64)
    rows[::2], rows[1::2] = brackets, syncs
    return rows
