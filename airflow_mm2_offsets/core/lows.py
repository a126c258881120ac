"""The lower bounds of all positions: epoch by epoch, each laid on what the older ones say.

An epoch answers the positions from its first sync on, where it has copied every record that older
copies may exist of (``coverage``). Elsewhere the older epochs' answer to the next position that it
may not have copied is a lower bound: the job needs nothing that lies below it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter, sub
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_mm2_offsets.core.bounds import lacks_records, lower_bound
from airflow_mm2_offsets.core.bracket import BEGINNING
from airflow_mm2_offsets.core.coverage import END, Copied, Epoch, Threat

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs
    from airflow_mm2_offsets.core.segments import Brackets

_begin = attrgetter("begin")
_Run = TypeVar("_Run", "Brackets", "Lows")


class Lows(NamedTuple):
    """From ``begin`` on, this bounds the answer from below."""

    begin: int
    start: int
    """The last sync of ``[start, stop)`` at or before the position does, unless ``low`` is set."""
    stop: int
    low: int | None = None
    """This does, whatever the position: a target offset, or BEGINNING."""


def lows_of(syncs: "PartitionSyncs", copied: Copied | None = None) -> list[Lows]:
    """Return the lower bounds of all positions, rising from 0 on.

    Args:
        syncs: At least one.
        copied: What Connect has noted, if that is all that the source holds.
    """
    lows = [Lows(0, 0, 0, BEGINNING)]
    threats = _unknown_past(syncs)
    older: list[Epoch] = []
    for bounds in syncs.epochs:
        noted = copied if bounds[1] == len(syncs) else None
        epoch = Epoch(syncs, bounds, threats=threats, older=older, copied=noted)
        lows = _laid_on(lows, syncs, epoch)
        threats = [each for each in threats if epoch.reaches(each, epoch.start) is None]
        threats += [each.threat for each in epoch.hidden if each.end == END]
        # What it may have copied after its last sync, before the next epoch began.
        threats.append(Threat(epoch.last, epoch.unsynced))
        older.insert(0, epoch)
    return lows


def low_at(lows: Sequence[Lows], ups: Sequence[int], downs: Sequence[int], position: int) -> int:
    """Return the lower bound of a position, or BEGINNING."""
    run = lows[bisect_right(lows, position, key=_begin) - 1]
    if run.low is not None:
        return run.low
    at = bisect_right(ups, position, run.start, run.stop) - 1
    return downs[at] if ups[at] == position else lower_bound(downs[at])


def settled_from(
    lows: Sequence[Lows], ups: Sequence[int], downs: Sequence[int], offset: int
) -> int:
    """Return a position whose lower bound is a target offset or above it; END if there is none."""
    ends = [*(run.begin for run in lows[1:]), END]
    for run, end in zip(lows, ends, strict=True):
        if low_at(lows, ups, downs, run.begin) >= offset:
            return run.begin
        at = bisect_left(downs, offset, run.start, run.stop)
        if run.low is None and at < run.stop and run.begin <= ups[at] < end:
            return ups[at]
    return END


def _unknown_past(syncs: "PartitionSyncs") -> list[Threat]:
    """Return what the target may have held before the first known sync was written.

    MirrorMaker 2 may have been installed anew on a target that it filled before, and copy all of
    it again; then its first sync is not of the target's beginning. Or older syncs that show a
    rewind are compacted away; then the target has gained more offsets than the source. Where the
    syncs that are left show a copy of each source offset, there was one of each before, too, so
    only the surplus can lie beyond; where they do not, all of it can. Where the source topic
    was recreated, records of the new one may have been copied before the first sync that is surely
    of it. One record more must have been copied since: a batch that was overtaken by the next one
    shows in the step after it.
    """
    upstream, downstream = syncs.first
    held = downstream - syncs.settled_below
    surplus = held - upstream
    if syncs.history.is_complete and held:
        return [Threat(-1, held + 1, may_be_jumped=surplus > 0)]
    if surplus <= 0:
        return []
    if _lacks_any(syncs):
        return [Threat(-1, held + 1)]
    return [Threat(-1, surplus + 1, may_be_jumped=False)]


def _lacks_any(syncs: "PartitionSyncs") -> bool:
    """Tell whether some source offset between two syncs was surely not copied between them."""
    sides = (map(sub, side[1:], side) for side in (syncs.upstream, syncs.downstream))
    return any(map(lacks_records, *sides))


def _laid_on(lows: list[Lows], syncs: "PartitionSyncs", epoch: Epoch) -> list[Lows]:
    """Return the lower bounds of an epoch and of the older ones, which are ``lows``."""
    position = syncs.upstream[epoch.start]
    laid = list(clipped(lows, 0, position))
    for begin, end in epoch.exposed:
        if position < begin:
            low = low_at(lows, syncs.upstream, syncs.downstream, begin)
            laid.append(Lows(position, 0, 0, low))
        laid += clipped(lows, begin, end)
        position = end
    return laid + list(_own(epoch, position))


def clipped(runs: Sequence[_Run], begin: int, end: int) -> Iterator[_Run]:
    """Yield the runs of the positions ``[begin, end)``; ``runs`` rise from 0 on."""
    if begin < end:
        first = bisect_right(runs, begin, key=_begin) - 1
        last = bisect_left(runs, end, key=_begin)
        yield runs[first]._replace(begin=begin)
        yield from runs[first + 1 : last]


def _own(epoch: Epoch, position: int) -> Iterator[Lows]:
    """Yield an epoch's own lower bounds from a position on."""
    for each in epoch.hidden:
        if each.end > position:
            begin = max(position, each.threat.upstream + 1)
            if position < begin:
                yield Lows(position, epoch.start, epoch.stop)
            yield Lows(begin, 0, 0, each.low)
            position = each.end
    if position < END:
        yield Lows(position, epoch.start, epoch.stop)
