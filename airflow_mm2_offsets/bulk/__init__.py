"""Translates many positions of a partition at once, with numpy.

The answers are those of ``SyncIndex.translate``: they are looked up in the same ``core.segments``,
written out as arrays.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from airflow_mm2_offsets.bulk.brackets import NONE, BracketTable, Offsets, interleave, rule
from airflow_mm2_offsets.core import Extras, Status, Strategy, SyncIndex
from airflow_mm2_offsets.core.bracket import BEGINNING
from airflow_mm2_offsets.core.coverage import END
from airflow_mm2_offsets.core.duplicates import recopied_from
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.lows import Lows
from airflow_mm2_offsets.core.positions import check_position

__all__ = ["NONE", "STATUSES", "Translations", "translate_many"]

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
    table = BracketTable.of(syncs)
    rows = table.rows(wanted)
    low, high = table.low(rows, wanted, extras), table.high(rows, wanted, extras)
    refused = rows == 0
    if not syncs.segments.is_plain:
        older = _lows(syncs, wanted)
        own = np.where(refused, BEGINNING, table.low(rows, wanted, Extras.POSSIBLE))
        # Both sides of a bracket must be settled: see ``Segments.older_low``.
        settled = (table.highs == NONE) | (_lows(syncs, table.ups) >= table.downs)
        counts = (older != own) | (interleave(settled.astype(np.int64), 1)[rows] == 0)
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
