"""The lower bounds of all positions, built up epoch by epoch from the oldest to the newest.

Each copy that a newer epoch made lies above those of the older epochs. So an epoch answers the
positions from its first sync on, except where a record may have its only copy in an older epoch.
There, the older epochs answer, lower. Such records lie in the *uncovered* ranges of an epoch: up
to the *reach* of the older epochs, the last source offset that they may have copied,

- the source offsets after the epoch's last sync: it has not come as far yet;
- those between two of its syncs where the source grew by more: MirrorMaker 2 may have skipped
  records, as its offsets can be altered (KIP-875).

An epoch may have made as many copies after its last sync as there are target offsets up to the next
epoch's first sync (``OlderCopies``). Their reach is known once newer syncs have passed as many
records; until then it is the source's end. Before the first sync, all target offsets below it may
hold copies, of any record. No record is copied before it exists: what was copied lies below the end
that the source had afterwards.

An example: the syncs 0 -> 0 and 100 -> 100, then a rewind 50 -> 121. The first epoch may have
copied 20 records after 100. The second epoch has come to 50 only, and is uncovered from 51 on.
Position 50 gets the bound 1, the older epoch's answer for 51, and so do the positions up to 99.
Once a sync 150 -> 221 shows that the second epoch has caught up, position 50 gets 121.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter, sub
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_mm2_offsets.core.bounds import lacks_records, lower_bound
from airflow_mm2_offsets.core.bracket import BEGINNING, END, SyncPoint, steps_between

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


class Progress(NamedTuple):
    """How far MirrorMaker 2 has come, as the clusters and Connect say beyond the syncs."""

    source_end: int = END
    """No record from this source offset on existed when the syncs were read."""
    committed: int = -1
    """The last source offset that Connect has committed as copied; -1 without any."""
    gained: int = 0
    """How many offsets the target had gained since the newest sync."""


NO_PROGRESS = Progress()


class OlderCopies(NamedTuple):
    """Records that may have been copied without a sync that shows it."""

    upstream: int
    """The records lie after this source offset."""
    copies: int
    """So many copies at most are left that newer syncs do not account for."""
    reach: int
    """The records lie up to about this source offset, if they lie as thinly as those before."""
    since: int
    """The index of the sync up to which newer syncs are counted."""
    until: int = END
    """The records lie below this source offset."""


def low_runs_of(syncs: "PartitionSyncs", progress: Progress = NO_PROGRESS) -> list[LowRun]:
    """Return the lower bounds of all positions, rising from 0 on; there is at least one sync."""
    lows = _Lows(syncs, progress)
    for start, stop in syncs.epochs:
        lows.add_epoch(start, stop)
    end = min(syncs.beginning.source_end, progress.source_end)
    if lows.last >= end - 1 or not has_room_before(syncs):
        return lows.runs
    # Before the first sync, any record below the end may have been copied.
    return [LowRun(0, 0, 0, BEGINNING), *clipped(lows.runs, end, END)]


class _Lows:
    """The lower bounds by the epochs so far, from the oldest on."""

    def __init__(self, syncs: "PartitionSyncs", progress: Progress) -> None:
        self._syncs, self._progress = syncs, progress
        self.runs = [LowRun(0, 0, 0, BEGINNING)]
        self.last = -1
        """The last source offset that the newest epoch has surely copied."""
        self._older = list(_before_history(syncs))
        self._rise = 0
        """The index of the sync from which on source offsets rise."""
        self._passed = False
        """Whether older copies were passed that records skipped before them may hide behind."""

    def add_epoch(self, start: int, stop: int) -> None:
        """Add the bounds by the syncs ``[start, stop)``."""
        syncs, progress, ups = self._syncs, self._progress, self._syncs.upstream
        if start and ups[start] <= ups[start - 1]:
            self._rise, self._passed = start, False
            self._older = [copies._replace(since=start) for copies in self._older]
        synced = self.last = ups[stop - 1]
        gained = 0
        if stop == len(ups) and not lacks_records(progress.committed - synced, progress.gained):
            self.last, gained = max(synced, progress.committed), progress.gained
        self._older = [_counted(copies, syncs, stop) for copies in self._older]
        own = LowRun(ups[start], start, stop)
        _overlay(self.runs, syncs, own, self._uncovered(own, gained))
        if stop < len(ups):
            self._older = [each for each in self._older if _reach(each, synced, synced, 0) > synced]
            self._older.append(_unsynced(syncs, self._rise, stop))

    def _uncovered(self, own: LowRun, gained: int) -> list[tuple[int, int]]:
        """Return where the older epochs answer and not the new one, rising."""
        synced = self._syncs.upstream[own.stop - 1]
        reaches = (_reach(copies, synced, self.last, gained) for copies in self._older)
        reach = min(max(reaches, default=-1), self._progress.source_end - 1)
        self._passed = self._passed or bool(self._older)
        uncovered = _skipped(self._syncs, own, reach, passed=self._passed)
        self._passed = self._passed and not any(synced > begin > reach for begin, _ in uncovered)
        if self.last < reach:
            uncovered.append((self.last + 1, reach + 1))
        return uncovered


def low_at(lows: Sequence[LowRun], ups: Sequence[int], downs: Sequence[int], position: int) -> int:
    """Return the lower bound of a position, or BEGINNING."""
    run = lows[bisect_right(lows, position, key=_begin) - 1]
    if run.low is not None:
        return run.low
    at = bisect_right(ups, position, run.start, run.stop) - 1
    return downs[at] if ups[at] == position else lower_bound(downs[at])


def has_room_before(syncs: "PartitionSyncs") -> bool:
    """Tell whether the target has offsets for copies before the first known sync."""
    return syncs.first.downstream > syncs.beginning.settled_below


def _before_history(syncs: "PartitionSyncs") -> Iterator[OlderCopies]:
    """Yield what may have been copied before the first known sync, and skipped later."""
    if has_room_before(syncs):
        first, (_, stop) = syncs.first, syncs.epochs[0]
        copies = first.downstream - syncs.beginning.settled_below
        thin = _source_offsets(copies, first, syncs[stop - 1])
        until = syncs.beginning.source_end
        yield OlderCopies(first.upstream, copies, first.upstream + thin, 0, until)


def _unsynced(syncs: "PartitionSyncs", rise: int, stop: int) -> OlderCopies:
    """Return what an epoch may have copied between its last sync and the next epoch's first.

    Each copy needs a target offset between the two. If the next sync lies further on the source,
    its own record is one of those that were copied twice.
    """
    last, after = syncs[stop - 1], syncs[stop]
    copies = after.downstream - last.downstream - 1
    begin = max(last.upstream, after.upstream - 1)
    thin = _source_offsets(copies, syncs[rise], last)
    return OlderCopies(begin, copies, begin + thin, stop)


def _source_offsets(copies: int, first: SyncPoint, last: SyncPoint) -> int:
    """Return how many source offsets copies take, as thinly as they lie between two syncs."""
    source_step, target_step = steps_between(first, last)
    return copies * max(source_step, target_step, 1) // max(target_step, 1)


def _counted(older: OlderCopies, syncs: "PartitionSyncs", stop: int) -> OlderCopies:
    """Return older copies without those that the syncs up to ``stop`` account for.

    The number of records between two syncs is estimated as the smaller one of their steps: source
    offsets without a record make the source's step larger, extras the target's.
    """
    ups, downs = syncs.upstream, syncs.downstream
    at, copies = bisect_left(ups, older.upstream, older.since, stop), older.copies
    if at == stop:
        return older
    if ups[at] > older.upstream:
        step = 0
        if at > older.since:
            step = min(ups[at] - ups[at - 1], downs[at] - downs[at - 1])
            step -= older.upstream - ups[at - 1]
        copies -= max(1, step)  # the sync's own record at least
    while copies > 0 and at + 1 < stop:
        copies -= min(ups[at + 1] - ups[at], downs[at + 1] - downs[at])
        at += 1
    return older._replace(upstream=ups[at], copies=max(0, copies), since=at)


def _reach(older: OlderCopies, synced: int, last: int, gained: int) -> int:
    """Return the last source offset of older copies, as far as the newer ones show.

    Args:
        older: The older copies that the newer syncs do not account for.
        synced: The last source offset of the newer syncs.
        last: The last one that was surely copied.
        gained: How many offsets the target has gained since the newer syncs.
    """
    reach = max(older.upstream, older.reach)
    is_open = older.copies > min(gained, last - synced) or last < reach
    return min(END if is_open else reach, older.until - 1)


def clipped(runs: Sequence[_Run], begin: int, end: int) -> Iterator[_Run]:
    """Yield the runs of the positions ``[begin, end)``; ``runs`` rise from 0 on."""
    if begin < end:
        first = bisect_right(runs, begin, key=_begin) - 1
        last = bisect_left(runs, end, key=_begin)
        yield runs[first]._replace(begin=begin)
        yield from runs[first + 1 : last]


def _overlay(
    lows: list[LowRun], syncs: "PartitionSyncs", own: LowRun, uncovered: Iterable[tuple[int, int]]
) -> None:
    """Replace the lower bounds of the older epochs, ``lows``, where an epoch answers."""
    position = own.begin
    at = bisect_left(lows, position, key=_begin)
    older = lows[max(0, at - 1) :]
    del lows[at:]
    for begin, end in uncovered:
        if position < begin:
            low = low_at(older, syncs.upstream, syncs.downstream, begin)
            lows.append(LowRun(position, 0, 0, low))
        lows += clipped(older, begin, end)
        position = end
    lows.append(own._replace(begin=position))


def _skipped(
    syncs: "PartitionSyncs", own: LowRun, reach: int, *, passed: bool
) -> list[tuple[int, int]]:
    """Return where an epoch may have skipped records that have older copies, rising.

    That is up to the older copies' reach. With ``passed`` it is also in the next step that lacks
    records: as many may have been skipped before the older copies were made, which no sync shows.
    """
    ups, downs = syncs.upstream, syncs.downstream
    stop = bisect_left(ups, reach, own.start, own.stop - 1)
    if own.start == stop and not passed:
        return []
    source, target = (side[own.start : own.stop] for side in (ups, downs))
    steps = (map(sub, islice(side, 1, None), side) for side in (source, target))
    skipped = []
    for at, lacks in enumerate(map(lacks_records, *steps), own.start):
        if at >= stop and not passed:
            break
        if lacks:
            skipped.append((ups[at] + 1, ups[at + 1]))
            passed = passed and at < stop
    return skipped
