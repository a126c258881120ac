"""The lower bounds of all positions, built up epoch by epoch from the oldest to the newest.

An epoch answers the positions from its first sync on, except where it may lack a record that has
an older copy (``coverage``). For a position before such an uncovered range, the older epochs'
answer to the range's first position is the lower bound: what the newer epoch has not copied lies
there or above. Within the range, the older epochs answer.

An example: the syncs 0 -> 0 and 100 -> 100, then a rewind 50 -> 121. The second epoch has come to
50 only, so it is uncovered from 51 on. Position 50 gets the bound 1 (the older epoch's answer for
51, a position after 0 -> 0), and so do the positions up to 99. Once a sync 150 -> 221 shows that
the second epoch has caught up, position 50 gets 121.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter, sub
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_mm2_offsets.core.bounds import (
    is_rewind,
    lacks_records,
    lower_bound,
    may_hide_rewind,
)
from airflow_mm2_offsets.core.bracket import BEGINNING, SyncPoint, steps_between
from airflow_mm2_offsets.core.coverage import END, ConnectProgress, Epoch, OlderCopies

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs
    from airflow_mm2_offsets.core.segments import BracketRun

_begin = attrgetter("begin")
_Run = TypeVar("_Run", "BracketRun", "LowRun")


class LowRun(NamedTuple):
    """Positions from ``begin`` on, up to the next run, with what bounds them from below."""

    begin: int
    start: int
    """Without ``low``, the last sync of ``[start, stop)`` at or before the position bounds it."""
    stop: int
    low: int | None = None
    """One bound for all positions of the run: a target offset, or BEGINNING."""


def low_runs_of(syncs: "PartitionSyncs", progress: ConnectProgress | None = None) -> list[LowRun]:
    """Return the lower bounds of all positions, rising from 0 on.

    Args:
        syncs: At least one.
        progress: What Connect has committed, if that is all that the source holds.
    """
    lows = [LowRun(0, 0, 0, BEGINNING)]
    open_copies = copies_before_history(syncs)
    older_epochs: list[Epoch] = []
    for bounds in syncs.epochs:
        epoch = Epoch(
            syncs,
            bounds,
            older_copies=open_copies,
            older_epochs=older_epochs,
            progress=progress if bounds[1] == len(syncs) else None,
        )
        lows = _overlaid(lows, syncs, epoch)
        open_copies = [
            copies for copies in open_copies if epoch.covered_at(copies, epoch.start) is None
        ]
        open_copies += [rewind.copies for rewind in epoch.hidden_rewinds if rewind.end == END]
        # What it may have copied after its last sync, before the next epoch began.
        open_copies.append(epoch.unsynced)
        older_epochs.insert(0, epoch)
    return lows


def low_at(lows: Sequence[LowRun], ups: Sequence[int], downs: Sequence[int], position: int) -> int:
    """Return the lower bound of a position, or BEGINNING."""
    run = lows[bisect_right(lows, position, key=_begin) - 1]
    if run.low is not None:
        return run.low
    at = bisect_right(ups, position, run.start, run.stop) - 1
    return downs[at] if ups[at] == position else lower_bound(downs[at])


def copies_before_history(syncs: "PartitionSyncs") -> list[OlderCopies]:
    """Return what may have been copied before the first known sync was written.

    Two histories leave older copies. MirrorMaker 2 was reinstalled on a target that it had filled
    before: then its first sync is not at the target's beginning. Or the older syncs, which showed
    a rewind, were compacted away: then the target has gained more offsets than the source.

    An example: the first sync is 20 -> 30. If each source offset holds a record, records 0 to 19
    take 20 target offsets, and only the surplus of 10 can hold further copies. If the known syncs
    show that a source offset holds no record, all 30 target offsets can hold older copies.

    If the source topic was recreated, records of the new one may have been copied before its first
    known sync. If the last sync that was cut shows a rewind before the first one, records after
    the cut sync may have been copied. One offset is added in each case: a batch that the next one
    overtook shows only in the step after it.

    If an archive has read the source's end after the first sync was written, all these copies are
    of records below that end.
    """
    until = syncs.older_copies_until
    return [copies._replace(until=until) for copies in _copies_before_history(syncs)]


def _copies_before_history(syncs: "PartitionSyncs") -> list[OlderCopies]:
    upstream, downstream = syncs.first
    target_offsets = downstream - syncs.settled_below
    surplus = target_offsets - upstream
    if syncs.last_cut and _may_go_back(syncs.last_cut, syncs.first):
        copied_since = downstream - syncs.last_cut.downstream
        return [
            OlderCopies(-1, target_offsets + 1),
            OlderCopies(syncs.last_cut.upstream, copied_since + 1),
        ]
    if syncs.history.is_complete and target_offsets:
        return [OlderCopies(-1, target_offsets + 1, may_be_skipped=surplus > 0)]
    if surplus <= 0:
        return []
    if _lacks_any(syncs):
        return [OlderCopies(-1, target_offsets + 1)]
    return [OlderCopies(-1, surplus + 1, may_be_skipped=False)]


def _may_go_back(before: SyncPoint, after: SyncPoint) -> bool:
    """Tell whether MirrorMaker 2 went back between two syncs of one log, or may have."""
    steps = steps_between(before, after)
    return is_rewind(*steps) or may_hide_rewind(*steps)


def _lacks_any(syncs: "PartitionSyncs") -> bool:
    """Tell whether some source offset between two syncs was surely not copied between them."""
    sides = (map(sub, side[1:], side) for side in (syncs.upstream, syncs.downstream))
    return any(map(lacks_records, *sides))


def _overlaid(lows: list[LowRun], syncs: "PartitionSyncs", epoch: Epoch) -> list[LowRun]:
    """Return the lower bounds of the older epochs, ``lows``, replaced where an epoch answers."""
    position = syncs.upstream[epoch.start]
    overlaid = list(clipped(lows, 0, position))
    for begin, end in epoch.uncovered:
        if position < begin:
            low = low_at(lows, syncs.upstream, syncs.downstream, begin)
            overlaid.append(LowRun(position, 0, 0, low))
        overlaid += clipped(lows, begin, end)
        position = end
    return overlaid + list(_own_lows(epoch, position))


def clipped(runs: Sequence[_Run], begin: int, end: int) -> Iterator[_Run]:
    """Yield the runs of the positions ``[begin, end)``; ``runs`` rise from 0 on."""
    if begin < end:
        first = bisect_right(runs, begin, key=_begin) - 1
        last = bisect_left(runs, end, key=_begin)
        yield runs[first]._replace(begin=begin)
        yield from runs[first + 1 : last]


def _own_lows(epoch: Epoch, position: int) -> Iterator[LowRun]:
    """Yield an epoch's own lower bounds from a position on."""
    for rewind in epoch.hidden_rewinds:
        if rewind.end > position:
            begin = max(position, rewind.copies.upstream + 1)
            if position < begin:
                yield LowRun(position, epoch.start, epoch.stop)
            yield LowRun(begin, 0, 0, rewind.low)
            position = rewind.end
    if position < END:
        yield LowRun(position, epoch.start, epoch.stop)
