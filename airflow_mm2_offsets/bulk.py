"""Translates many positions of a partition at once, with numpy.

The answers are those of ``SyncIndex.translate``: core makes the rows (``core.rows``), numpy
searches them. Where only the two neighbouring syncs bound a position, for whole stretches of
syncs, the same functions of core take arrays in place of numbers.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from airflow_mm2_offsets.core import Extras, Status, Strategy, SyncIndex, TopicPartition, bounds
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.bracket_bounds import NEVER_RISES, BracketBounds, unsafe_offset
from airflow_mm2_offsets.core.coverage import END
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.positions import check_position
from airflow_mm2_offsets.core.rows import Row, WholeBrackets, parts_of

Offsets: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.intp]
_Parts: TypeAlias = tuple[Offsets, list[WholeBrackets]]

NONE = -1
"""Stands for None in arrays of offsets."""

STATUSES = (Status.EXACT, Status.BOUNDED, Status.REFUSED)
"""What the numbers in ``TranslationArrays.status`` mean."""

_REFUSED = STATUSES.index(Status.REFUSED)
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
        extras: See ``SyncIndex.translate``; for all positions alike.

    Raises:
        PositionError: One is negative, or they are not whole numbers of 64 bits.
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
    target, low, high = _Table.of(syncs, extras).look_up(positions)
    status = (low != high).view(np.int8)  # EXACT, BOUNDED
    refused = low == NONE
    if strategy is not Strategy.SAFE:
        target, before_first = _unsafe_targets(syncs, positions, strategy)
        refused |= before_first
    if refused.any():
        for column in (target, low, high):
            column[refused] = NONE
        status[refused] = _REFUSED
    return TranslationArrays(target=target, low=low, high=high, status=status)


def _unsafe_targets(
    syncs: PartitionSyncs, positions: Offsets, strategy: Strategy
) -> tuple[Offsets, npt.NDArray[np.bool_]]:
    """Return what a strategy that is not safe answers, and which positions it has no answer for."""
    _, *runs = syncs.segments.brackets
    ends = [run.begin for run in runs[1:]] + [END]
    known = [
        np.arange(run.start, bisect_left(syncs.upstream, end, run.start, run.stop))
        for run, end in zip(runs, ends, strict=True)
    ]
    upstream, downstream = (column[np.concatenate(known)] for column in _columns(syncs))
    at = np.searchsorted(upstream, positions, "right") - 1
    offset: Any = unsafe_offset  # It takes arrays, too.
    return offset(SyncPoint(upstream[at], downstream[at]), positions, strategy), at < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The rows of a partition as columns: one entry for a row, two where its begin differs."""

    begins: Offsets
    """The position where each entry begins, rising."""
    lows: Offsets
    """NONE where refused."""
    low_rises_from: Offsets
    highs: Offsets
    """NONE where refused, or where only the target's end bounds the answer."""
    high_rises_until: Offsets
    rises: bool
    """Whether any bound rises with the position."""

    @classmethod
    def of(cls, syncs: PartitionSyncs, extras: Extras) -> "_Table":
        """Write out the rows of ``syncs``."""
        entries, whole = _parts(syncs, extras)
        before = np.concatenate([np.empty(0, np.intp), *(np.arange(*part) for part in whole)])
        table = np.concatenate([entries, _whole_brackets(syncs, before, extras)], 1)
        table = table[:, np.argsort(table[0], kind="stable")]
        return cls(
            begins=table[0],
            lows=table[1],
            low_rises_from=table[2],
            highs=table[3],
            high_rises_until=table[4],
            rises=extras is Extras.NONE,
        )

    def look_up(self, positions: Offsets) -> tuple[Offsets, Offsets, Offsets]:
        """Return the safe target, the lower and the upper bound of each position."""
        at = self._entry(positions)
        low, high = self.lows[at], self.highs[at]
        if self.rises:
            low += np.maximum(0, positions - self.low_rises_from[at])
            high -= np.maximum(0, self.high_rises_until[at] - positions)
        return low.copy(), low, high

    def _entry(self, positions: Offsets) -> Rows:
        """Return the entry of each position: how many begin at or before it, less one."""
        if np.all(positions[1:] >= positions[:-1]):
            edges = np.searchsorted(positions, self.begins[1:])
            counts = np.diff(edges, prepend=0, append=len(positions))
            return np.repeat(np.arange(len(counts)), counts)
        return np.searchsorted(self.begins, positions, "right") - 1


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


def _whole_brackets(syncs: PartitionSyncs, whole: Rows, extras: Extras) -> Offsets:
    """Return the entries of whole brackets: for the earlier sync, and for the positions after it.

    Args:
        syncs: The syncs of the partition.
        whole: The index of the earlier sync of each bracket.
        extras: See ``translate_many``.
    """
    columns = _columns(syncs)
    before = SyncPoint(*(column[whole] for column in columns))
    after = SyncPoint(*(column[whole + 1] for column in columns))
    between: Any = BracketBounds.between(before, after, extras=True)
    rises_from, rises_until = between.low_rises_from, between.high_rises_until
    if extras is Extras.NONE:
        # Steps that prove extras keep the bounds that hold with them.
        steps: Any = (after.upstream - before.upstream, after.downstream - before.downstream)
        proven = bounds.proves_extras(*steps)
        rising = BracketBounds.between(before, after, extras=False)
        rises_from = np.where(proven, rises_from, rising.low_rises_from)
        rises_until = np.where(proven, rises_until, rising.high_rises_until)
    entries = np.empty((_COLUMNS, 2 * len(whole)), np.int64)
    for column, at_sync, past_sync in zip(
        entries,
        (before.upstream, before.downstream, NEVER_RISES, before.downstream, 0),
        (before.upstream + 1, between.low, rises_from, between.high, rises_until),
        strict=True,
    ):
        column[::2], column[1::2] = at_sync, past_sync
    keep = np.ones(2 * len(whole), np.bool_)
    keep[1::2] = after.upstream > before.upstream + 1  # else no position lies between the two
    return entries[:, keep]


def _columns(syncs: PartitionSyncs) -> Any:  # noqa: ANN401 - arrays where core takes ints
    """Return the upstream and the downstream offsets; numpy looks at the memory of the syncs."""
    return [np.frombuffer(column, np.int64) for column in (syncs.upstream, syncs.downstream)]
