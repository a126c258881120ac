"""Translates many positions of a partition at once, with numpy; users call ``translate_many``.

The answers are those of ``SyncIndex.translate``. Core makes the rows (``core.rows``), numpy
searches them. Where only the two neighbouring syncs bound a position, core's functions take whole
columns of syncs as arrays.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from airflow_mm2_offsets.core import Extras, Status, Strategy, SyncIndex, TopicPartition, bounds
from airflow_mm2_offsets.core.bracket import END, SyncPoint
from airflow_mm2_offsets.core.bracket_bounds import NEVER_RISES, BracketBounds, unsafe_offset
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.positions import check_position
from airflow_mm2_offsets.core.rows import Row, WholeBrackets, parts_of

Offsets: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.intp]
_Parts: TypeAlias = tuple[Offsets, list[WholeBrackets]]

NONE = -1
"""Stands for None in arrays of offsets."""

STATUSES = (Status.EXACT, Status.BOUNDED, Status.REFUSED, Status.NOT_SAFE)
"""What the numbers in ``TranslationArrays.status`` mean."""

_REFUSED = STATUSES.index(Status.REFUSED)
_BOUNDED, _NOT_SAFE = STATUSES.index(Status.BOUNDED), STATUSES.index(Status.NOT_SAFE)
_COLUMNS = 5

_KEPT_PARTS: WeakKeyDictionary[PartitionSyncs, dict[Extras, _Parts]] = WeakKeyDictionary()
"""``_parts`` of the syncs that were asked about, for as long as those live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationArrays:
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
) -> TranslationArrays:
    """Translate many source positions of one partition; rising ones are the fastest.

    Args:
        index: The syncs.
        topic: The topic's name on the source.
        partition: Its partition.
        positions: The next offsets to read on the source, in any order.
        strategy: See ``SyncIndex.translate``.
        extras: See ``SyncIndex.translate``; it holds for all positions.

    Raises:
        PositionError: A position is negative or not a whole number of 64 bits.
        ValueError: ``strategy`` or ``extras`` is unknown.
    """
    requested = _checked(topic, partition, positions)
    strategy, extras = Strategy(strategy), Extras(extras)
    syncs = index.partitions.get(TopicPartition(topic, partition))
    if not syncs:
        none = np.full(requested.shape, NONE, np.int64)
        refused = np.full(requested.shape, _REFUSED, np.int8)
        return TranslationArrays(target=none, low=none, high=none, status=refused)
    return _translate(syncs, requested, strategy, extras)


def _checked(topic: str, partition: int, positions: npt.ArrayLike) -> Offsets:
    offsets = np.ravel(positions)
    if not offsets.size:
        return offsets.astype(np.int64)
    if offsets.dtype.kind not in "iu":
        check_position(topic, partition, offsets.dtype)
    for extreme in (offsets.min(), offsets.max()):
        check_position(topic, partition, int(extreme))
    return offsets.astype(np.int64, copy=False)


def _translate(
    syncs: PartitionSyncs, positions: Offsets, strategy: Strategy, extras: Extras
) -> TranslationArrays:
    begins, lows, low_rises_from, highs, high_rises_until = _table(syncs, extras)
    at = _entry_of(begins, positions)
    low, high = lows[at], highs[at]
    if extras is Extras.NONE:  # Otherwise no bound rises with the position. NONE never does.
        low += np.maximum(0, positions - low_rises_from[at])
        high -= np.maximum(0, high_rises_until[at] - positions)
    target = low.copy()
    status = (low != high).view(np.int8)  # EXACT, BOUNDED
    refused = low == NONE
    if strategy is not Strategy.SAFE:
        target, before_first = _unsafe_targets(syncs, positions, strategy)
        refused |= before_first
        status[target < low], status[target > low] = _BOUNDED, _NOT_SAFE
    if refused.any():
        for column in (target, low, high):
            column[refused] = NONE
        status[refused] = _REFUSED
    return TranslationArrays(target=target, low=low, high=high, status=status)


def _unsafe_targets(
    syncs: PartitionSyncs, positions: Offsets, strategy: Strategy
) -> tuple[Offsets, npt.NDArray[np.bool_]]:
    """Return the answers of strategy linear or kafka, and which positions have none.

    A position's answer follows from the last sync at or before it, of the newest epoch that reaches
    down to it. A position before the first sync has no answer.
    """
    _before_first, *runs = syncs.segments.brackets
    ends = [run.begin for run in runs[1:]] + [END]
    # Of each run only the syncs before the next run: from there on, a newer epoch answers.
    sync_numbers = np.concatenate(
        [
            np.arange(run.start, bisect_left(syncs.upstream, end, run.start, run.stop))
            for run, end in zip(runs, ends, strict=True)
        ]
    )
    upstream, downstream = (column[sync_numbers] for column in _columns(syncs))
    at = np.searchsorted(upstream, positions, "right") - 1
    offset_of: Any = unsafe_offset  # It takes arrays, too.
    return offset_of(SyncPoint(upstream[at], downstream[at]), positions, strategy), at < 0


def _table(syncs: PartitionSyncs, extras: Extras) -> Offsets:
    """Return the rows of a partition as columns, by rising begin.

    There is one entry for a row, two where its begin has another answer. The columns are begin,
    low (NONE where refused), low_rises_from, high (NONE where refused, or where only the target's
    end bounds the answer) and high_rises_until; see ``Row``.
    """
    entries, whole = _parts(syncs, extras)
    table = np.concatenate([entries, _whole_brackets(syncs, whole, extras)], 1)
    sorted_table: Offsets = table[:, np.argsort(table[0], kind="stable")]
    return sorted_table


def _entry_of(begins: Offsets, positions: Offsets) -> Rows:
    """Return the entry of each position: the number of entries that begin up to it, less one."""
    if np.all(positions[1:] >= positions[:-1]):
        edges = np.searchsorted(positions, begins[1:])
        counts = np.diff(edges, prepend=0, append=len(positions))
        return np.repeat(np.arange(len(counts)), counts)
    return np.searchsorted(begins, positions, "right") - 1


def _parts(syncs: PartitionSyncs, extras: Extras) -> _Parts:
    """Return the entries of the rows that core makes one by one, and the whole brackets.

    They are kept: on a log with many rewinds or surplus steps they take core far longer than the
    rest takes numpy. A log that only rises has two or three such rows.
    """
    kept = _KEPT_PARTS.setdefault(syncs, {})
    if extras not in kept:
        entries: list[tuple[int, ...]] = []
        whole: list[WholeBrackets] = []
        for part in parts_of(syncs, extras=extras):
            if isinstance(part, Row):
                entries += _entries(part)
            else:
                whole.append(part)
        kept[extras] = np.array(entries, np.int64).reshape(-1, _COLUMNS).T, whole
    return kept[extras]


def _entries(row: Row) -> Iterator[tuple[int, ...]]:
    """Yield begin, low, low_rises_from, high and high_rises_until of a row's one or two entries."""
    begin = row.begin
    if row.at_low is not None:
        yield begin, row.at_low, NEVER_RISES, _or_none(row.at_high), 0
        begin += 1
    if begin <= row.end:
        low, high = _or_none(row.low), _or_none(row.high)
        yield begin, low, row.low_rises_from, high, row.high_rises_until


def _or_none(offset: int | None) -> int:
    return NONE if offset is None else offset


def _whole_brackets(syncs: PartitionSyncs, whole: list[WholeBrackets], extras: Extras) -> Offsets:
    """Return the entries of whole brackets: for the earlier sync, and for the positions after it.

    Args:
        syncs: The syncs of the partition.
        whole: The brackets.
        extras: See ``translate_many``.
    """
    columns = _columns(syncs)
    at = np.concatenate([np.empty(0, np.intp), *(np.arange(*part[:2]) for part in whole)])
    before = SyncPoint(*(column[at] for column in columns))
    after = SyncPoint(*(column[at + 1] for column in columns))
    # One below the earlier sync takes the place of all lower bounds; see ``BracketBounds.lowered``.
    lows = [NEVER_RISES if part.low is None else max(0, part.low) for part in whole]
    older = np.repeat(np.array(lows, np.int64), [part.stop - part.start for part in whole])
    between: Any = BracketBounds.between(before, after, extras=True)
    rises_from, rises_until = between.low_rises_from, between.high_rises_until
    if extras is Extras.NONE:
        # Steps that prove extras keep the bounds that hold with them.
        steps: Any = (after.upstream - before.upstream, after.downstream - before.downstream)
        proven = bounds.begins_epoch(*steps)
        rising = BracketBounds.between(before, after, extras=False)
        rises_from = np.where(proven, rises_from, rising.low_rises_from)
        rises_until = np.where(proven, rises_until, rising.high_rises_until)
    rises_from = np.where(older < between.low, NEVER_RISES, rises_from)
    at_low, low = (np.minimum(older, each) for each in (before.downstream, between.low))
    at_syncs: Any = (before.upstream, at_low, NEVER_RISES, before.downstream, 0)
    past_syncs: Any = (before.upstream + 1, low, rises_from, between.high, rises_until)
    entries = np.empty((_COLUMNS, 2 * len(at)), np.int64)
    for column, at_sync, past_sync in zip(entries, at_syncs, past_syncs, strict=True):
        column[::2], column[1::2] = at_sync, past_sync
    keep = np.ones(2 * len(at), np.bool_)
    keep[1::2] = after.upstream > before.upstream + 1  # else no position lies between the two
    return entries[:, keep]


def _columns(syncs: PartitionSyncs) -> Any:  # noqa: ANN401 - arrays where core takes ints
    """Return the upstream and the downstream offsets; numpy looks at the memory of the syncs."""
    return [np.frombuffer(column, np.int64) for column in (syncs.upstream, syncs.downstream)]
