"""Where records may have been copied again before a sync shows it.

MirrorMaker 2 sends the sync of a restart's first record as a rule, but a newer sync overwrites
it while the producer has no room. The copies from the true start of that epoch to its first sync
then lie unseen between the last sync before and that one.

How much lies there is bounded by the target offsets between the two syncs. How many records the
source has on a way is told by the syncs of an epoch that copied it: offsets without a record make
the source's steps the larger ones, target offsets that copy none the target's, so the smaller of
the two is taken for the number of records. This decides how much is claimed or read, never how
low an answer is.
"""

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs

_begin = attrgetter("begin")


class Rewinds(NamedTuple):
    """From ``begin`` on, records may have been copied again before a rewind."""

    begin: int
    rewind: SyncPoint | None
    """The newest one, by the sync that shows it."""


def rewinds_of(syncs: "PartitionSyncs") -> list[Rewinds]:
    """Return before which rewind each position may have been copied again, rising from 0 on."""
    spans = sorted(
        (recopied_from(syncs, number), syncs.starts[number])
        for number in range(1, len(syncs.starts))
    )
    ends = {syncs.upstream[start] for _, start in spans}
    found = [Rewinds(0, None)]
    newest_first: list[int] = []
    at = 0
    for position in sorted({begin for begin, _ in spans} | ends):
        while at < len(spans) and spans[at][0] <= position:
            heappush(newest_first, -spans[at][1])
            at += 1
        while newest_first and syncs.upstream[-newest_first[0]] <= position:
            heappop(newest_first)
        rewind = syncs[-newest_first[0]] if newest_first else None
        if rewind != found[-1].rewind:
            found.append(Rewinds(position, rewind))
    return found


def rewind_after(syncs: "PartitionSyncs", position: int) -> SyncPoint | None:
    """Return the newest rewind before which records from ``position`` on may be copied again."""
    if len(syncs.starts) == 1:
        return None
    return syncs.rewinds[bisect_right(syncs.rewinds, position, key=_begin) - 1].rewind


def recopied_from(syncs: "PartitionSyncs", number: int) -> int:
    """Return the lowest source offset that may have been copied again before an epoch's first sync.

    Args:
        syncs: The syncs of the partition.
        number: The epoch's number; not that of the first.
    """
    before, start = syncs.starts[number - 1], syncs.starts[number]
    begin = syncs.upstream[start]
    room = syncs.downstream[start] - syncs.downstream[start - 1] - 1
    at = bisect_left(syncs.upstream, begin, before, start) - 1
    while room > 0 and at >= before:
        records = _records(syncs, at) - (syncs.upstream[at + 1] - begin)
        if records >= room:
            return syncs.upstream[at] + records - room
        room -= max(1, records)
        begin = syncs.upstream[at]
        at -= 1
    return max(0, begin - room)


def last_possible_duplicate(
    syncs: "PartitionSyncs", bracket: SyncBracket, *, within: int
) -> SyncPoint | None:
    """Return the last sync before which records of a bracket may be copied again unseen.

    Args:
        syncs: The syncs of the partition.
        bracket: The newest bracket of a position.
        within: How many target offsets after the bracket are of interest.
    """
    if bracket.end is None:
        return None
    found = None
    first = bisect_left(syncs.downstream, bracket.end.downstream)
    records = _least(bracket)
    for at in range(first, len(syncs) - 1):
        if syncs.downstream[at + 1] - bracket.end.downstream > within:
            break
        step = syncs.upstream[at + 1] - syncs.upstream[at]
        room = syncs.downstream[at + 1] - syncs.downstream[at] - 1
        # After a rewind, only what lies before its sync must have been copied unseen.
        records = max(0, records + min(0, step))
        if 0 < room >= records:
            found = syncs[at + 1]
        records += _records(syncs, at) if step > 0 else 1
    return found


def _records(syncs: "PartitionSyncs", at: int) -> int:
    """Return about how many records lie from a sync to the next one of its epoch."""
    return min(
        syncs.upstream[at + 1] - syncs.upstream[at],
        syncs.downstream[at + 1] - syncs.downstream[at],
    )


def _least(bracket: SyncBracket) -> int:
    """Return about how many records lie from the position to the bracket's end, at least."""
    before, after = bracket.before, bracket.after
    if before is None or after is None or bracket.end is None:
        return 1
    steps = after.upstream - before.upstream, after.downstream - before.downstream
    outside = bracket.position - before.upstream + after.upstream - bracket.end.upstream
    return 1 + max(0, min(steps) - outside)
