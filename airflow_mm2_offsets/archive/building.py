"""Makes an index of columns: what ``core.epochs`` finds sync by sync, found in whole columns.

A partition whose target offsets always rise has rewinds and detours at most, and those are found
at once. The others, where a sync was repeated or overtaken or the target's offsets stepped back,
are left to ``PartitionSyncs``.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from airflow_mm2_offsets.archive.columns import Columns, Int64s
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.core.epochs import PartitionSyncs

_BLOCK = 1 << 16
"""So many syncs are looked at together: what is found on the way stays in the processor's cache."""


def build_index(columns: Columns, cut: Collection[TopicPartition]) -> SyncIndex:
    """Index ``columns``, which are sorted by partition.

    Args:
        columns: The syncs; those of each partition in log order.
        cut: The partitions whose history is cut; one may have no sync.
    """
    partitions = {place: PartitionSyncs.of_columns(history_cut=True) for place in cut}
    steps = _Steps(columns)
    for place, start, stop in groups(columns):
        partitions[place] = steps.partition(start, stop, history_cut=place in cut)
    return SyncIndex.of_partitions(partitions)


def groups(columns: Columns) -> list[tuple[TopicPartition, int, int]]:
    """Return each partition with the range of its syncs; ``columns`` are sorted by partition."""
    edges = columns.place.searchsorted(np.arange(len(columns.places) + 1)).tolist()
    ranges = zip(columns.places, pairwise(edges), strict=True)
    return [(place, start, stop) for place, (start, stop) in ranges if start < stop]


class _Steps:
    """Where, from one sync to the next, something else happens than both offsets rising alike."""

    def __init__(self, columns: Columns) -> None:
        self._up, self._down = columns.upstream, columns.downstream
        self._odd, self._rewinds, self._leaps = array("q"), array("q"), array("q")
        for first in range(0, len(columns) - 1, _BLOCK):
            block = slice(first, first + _BLOCK + 1)
            up, down = np.diff(columns.upstream[block]), np.diff(columns.downstream[block])
            within = np.diff(columns.place[block]) == 0
            _note(self._odd, first, within & (down <= 0))
            _note(self._rewinds, first, within & (up <= 0) & (down > 0))
            _note(self._leaps, first, within & (up > 0) & (down - 1 > up))

    def partition(self, start: int, stop: int, *, history_cut: bool) -> PartitionSyncs:
        up, down = self._up[start:stop], self._down[start:stop]
        if _between(self._odd, start, stop):
            return PartitionSyncs(
                zip(up.tolist(), down.tolist(), strict=True),
                after=PartitionSyncs.of_columns(history_cut=history_cut),
            )
        rewinds = _between(self._rewinds, start, stop)
        leaps = _between(self._leaps, start, stop)
        return PartitionSyncs.of_columns(
            up.tobytes(),
            down.tobytes(),
            starts=[0, *(rewind + 1 for rewind in rewinds)],
            detours=_detours(up, down, np.array(leaps)) if leaps else (),
            history_cut=history_cut,
        )


def _note(steps: "array[int]", first: int, which: NDArray[np.bool_]) -> None:
    """Add where ``which`` holds to ``steps``, an array: ``bisect`` finds a single one faster."""
    steps.frombytes((np.flatnonzero(which).astype(np.int64) + first).tobytes())


def _between(steps: "array[int]", start: int, stop: int) -> list[int]:
    """Return the steps from one sync of ``[start, stop)`` to another, counted from ``start``."""
    first, last = bisect_left(steps, start), bisect_left(steps, stop - 1)
    return [step - start for step in steps[first:last]]


def _detours(up: Int64s, down: Int64s, leaps: NDArray[np.intp]) -> list[int]:
    """Return the leaps that no later sync has come past.

    The syncs that start an epoch after a rewind do not count, as in ``PartitionSyncs``.
    """
    rising = np.where(np.diff(up, prepend=-1) > 0, up, -1)
    later = np.append(np.maximum.accumulate(rising[::-1])[::-1], -1)
    # The tip of a leap less where it starts: the sum of offsets might pass int64.
    beyond = down[leaps + 1] - down[leaps] - 1
    found: list[int] = leaps[beyond > later[leaps + 2] - up[leaps]].tolist()
    return found
