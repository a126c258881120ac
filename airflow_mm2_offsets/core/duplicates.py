"""Where records may have been copied again before a sync shows it.

When MirrorMaker 2 restarts, it goes back on the source and sends a sync of the first record that
it copies again. A newer sync can overwrite that one before it is sent. Then the first sync of the
new epoch comes late: the duplicate copies made before it lie unseen on the target, between the
last sync of the old epoch and the first one of the new.

The free target offsets between those two syncs bound how many duplicates fit. The number of
records between two syncs is estimated as the smaller one of their steps, as in ``lows``; where
duplicates may lie between them, by the fewest records in steps nearby. The estimate decides
how high an answer's upper bound is and how far evidence is read. It never decides how low an answer
is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bounds import begins_epoch
from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs

_begin = attrgetter("begin")
_STEPS = 20
"""The records for each source offset are estimated from so many steps together."""


class RewindRun(NamedTuple):
    """Positions from ``begin`` on, up to the next run, with the newest rewind that matters."""

    begin: int
    rewind: SyncPoint | None
    """The first sync of an epoch before which records of these positions may have been copied
    again; None without any."""


def rewind_runs_of(syncs: "PartitionSyncs") -> list[RewindRun]:
    """Return the rewinds for all positions, rising from 0 on."""
    spans = sorted(
        (recopied_from(syncs, number), syncs.starts[number])
        for number in range(1, len(syncs.starts))
    )
    ends = {syncs.upstream[start] for _, start in spans}
    runs = [RewindRun(0, None)]
    newest_first: list[int] = []
    at = 0
    for position in sorted({begin for begin, _ in spans} | ends):
        while at < len(spans) and spans[at][0] <= position:
            heappush(newest_first, -spans[at][1])
            at += 1
        while newest_first and syncs.upstream[-newest_first[0]] <= position:
            heappop(newest_first)
        rewind = syncs[-newest_first[0]] if newest_first else None
        if rewind != runs[-1].rewind:
            runs.append(RewindRun(position, rewind))
    return runs


def densities_of(syncs: "PartitionSyncs") -> list[float]:
    """Return the fewest copies for each source offset in each few steps, at most 1."""
    return [
        min(
            (down / up for up, down in _steps(syncs, first) if not begins_epoch(up, down)),
            default=1.0,
        )
        for first in range(0, len(syncs), _STEPS)
    ]


def _steps(syncs: "PartitionSyncs", first: int) -> Iterator[tuple[int, int]]:
    few = slice(first, first + _STEPS + 1)
    points = zip(syncs.upstream[few], syncs.downstream[few], strict=True)
    for (up0, down0), (up, down) in pairwise(points):
        yield up - up0, down - down0


def rewind_after(syncs: "PartitionSyncs", position: int, end: int) -> SyncPoint | None:
    """Return the newest sync before which records from ``position`` on may be copied again.

    Args:
        syncs: The syncs of the partition.
        position: The next offset to read on the source.
        end: The target's end if duplicate copies may lie after the last sync, else 0; its last
            offset counts as a sync.
    """
    if rewind := _rewind_in_tail(syncs, position, end):
        return rewind
    if len(syncs.starts) == 1:
        return None
    return syncs.rewinds[bisect_right(syncs.rewinds, position, key=_begin) - 1].rewind


def recopied_from(syncs: "PartitionSyncs", number: int) -> int:
    """Return the lowest source offset that may have been copied again before an epoch's first sync.

    Example: the syncs 0 -> 0, 100 -> 100, then the rewind 50 -> 121. Between 100 and 121 the
    target has 20 free offsets. So copying may have begun again 20 records before 50, at 30.

    Args:
        syncs: The syncs of the partition.
        number: The epoch's number, from 1 on.
    """
    before, start = syncs.starts[number - 1], syncs.starts[number]
    free_offsets = syncs.downstream[start] - syncs.downstream[start - 1] - 1
    return _back_from(syncs, syncs.upstream[start], before, start, free_offsets)


def _rewind_in_tail(syncs: "PartitionSyncs", position: int, end: int) -> SyncPoint | None:
    last, free_offsets = syncs.last, end - 1 - syncs.last.downstream
    if position > last.upstream or free_offsets <= 0:
        return None
    begin = _back_from(syncs, last.upstream, syncs.starts[-1], len(syncs), free_offsets - 1)
    return SyncPoint(last.upstream, end - 1) if position >= begin else None


def _back_from(
    syncs: "PartitionSyncs", begin: int, before: int, stop: int, free_offsets: int
) -> int:
    """Return the source offset about so many records before ``begin``, in one epoch."""
    density = _density(syncs, stop)
    at = bisect_left(syncs.upstream, begin, before, stop) - 1
    while free_offsets > 0 and at >= before:
        records = _records(syncs, at) - (syncs.upstream[at + 1] - begin)
        if at + 1 == stop:
            # Duplicates may lie in this step: its numbers do not show its records.
            records = int(records * density)
        if records >= free_offsets:
            return syncs.upstream[at] + records - free_offsets
        free_offsets -= max(1, records)
        begin = syncs.upstream[at]
        at -= 1
    return max(0, begin - int(free_offsets / density))


def _density(syncs: "PartitionSyncs", stop: int) -> float:
    """Return the fewest copies for each source offset in the steps around a sync, at most 1."""
    at = stop // _STEPS
    return min(syncs.densities[max(0, at - 1) : at + 2], default=1.0)


def last_possible_duplicate(
    syncs: "PartitionSyncs", bracket: SyncBracket, *, within: int, end: int
) -> SyncPoint | None:
    """Return the last sync before which a bracket's records may have been copied again.

    No sync shows these duplicate copies. They lie on the free target offsets between two syncs.
    MirrorMaker 2 copies in order: if it went back to the position there, it has also copied again
    all records from the position up to the earlier one of the two syncs. So a step between two
    syncs can hold duplicate copies only if it has a free offset for each of these records.

    Args:
        syncs: The syncs of the partition.
        bracket: The syncs around a position; of the newest epoch that reaches down to it.
        within: How many target offsets after the bracket to search.
        end: The target's end; its last offset counts as a sync.
    """
    if bracket.end is None:
        return None
    last_sync = None
    first = bisect_left(syncs.downstream, bracket.end.downstream)
    # About how many records lie from the position to the sync ``at``, both included.
    records = _records_to_end(bracket)
    for at in range(first, len(syncs) - 1):
        if syncs.downstream[at + 1] - bracket.end.downstream > within:
            break
        source_step = syncs.upstream[at + 1] - syncs.upstream[at]
        free_offsets = syncs.downstream[at + 1] - syncs.downstream[at] - 1
        if source_step < 0:
            # A rewind. Only the records before its sync need free offsets here: that sync shows
            # where MirrorMaker 2 has copied the others again.
            records = max(0, records + source_step - 1)
        if 0 < free_offsets >= records:
            last_sync = syncs[at + 1]
        records += _records(syncs, at) if source_step > 0 else 1
    else:
        is_near = end - 1 - bracket.end.downstream <= within
        if is_near and 0 < end - 1 - syncs.last.downstream >= records:
            return SyncPoint(syncs.last.upstream, end - 1)
    return last_sync


def _records(syncs: "PartitionSyncs", at: int) -> int:
    """Return about how many records lie between a sync and the next one of its epoch."""
    return min(
        syncs.upstream[at + 1] - syncs.upstream[at],
        syncs.downstream[at + 1] - syncs.downstream[at],
    )


def _records_to_end(bracket: SyncBracket) -> int:
    """Return at least about how many records lie between the position and the bracket's end."""
    before, after = bracket.before, bracket.after
    if before is None or after is None or bracket.end is None:
        return 1
    outside = bracket.position - before.upstream + after.upstream - bracket.end.upstream
    return 1 + max(0, min(bracket.steps) - outside)
