"""Which offsets to read on both clusters to find a position by the content of its records.

The syncs alone bound a position without this; ``content`` and ``planning`` need it.
"""

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import NamedTuple

from airflow_mm2_offsets.core.bounds import begins_epoch, lacks_records
from airflow_mm2_offsets.core.bracket import END, SyncBracket, SyncPoint, steps_between
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.core.segments import Segments

_begin = attrgetter("begin")


class SearchRange(NamedTuple):
    """The offsets to read on both clusters to find a position by content."""

    position: int
    begin: SyncPoint
    """The first offset to read on source and target."""
    end: SyncPoint
    """The last offset to read on each cluster.

    It is a sync of the bracket, or of the newest epoch that has caught up.
    """
    is_ordered: bool = False
    """Whether no rewind can lie in the range, so that the copies are in the source's order."""
    is_newest: bool = True
    """Whether no sync shows that the records were copied again after the range."""


def search_range(segments: Segments, bracket: SyncBracket) -> SearchRange | None:
    """Return the offsets to read around a position; None if no sync can end the range.

    They are those of the bracket, unless a record from the position on may have older copies
    only. Then the range begins where these may lie, and is longer.
    """
    has_older_copies = segments.older_low(bracket) is not None
    if bracket.end is None and not has_older_copies:
        return None
    if bracket.end and not has_older_copies and segments.is_settled(bracket.end):
        begin, end = bracket.begin, bracket.end
        may_hide = begins_epoch(*steps_between(begin, end))
        is_ordered = bracket.rewind is None and not may_hide
        return SearchRange(bracket.position, begin, end, is_ordered=is_ordered)
    return _range_with_older_copies(segments, bracket.position)


def _range_with_older_copies(segments: Segments, position: int) -> SearchRange | None:
    """Return the range from a position's lower bound to the next sync without older copies.

    None if there is no such sync after the position.
    """
    last = _next_settled(segments, position)
    if last is None:
        return None
    low = max(0, segments.low(position))
    # A rewind in the range may have copied records from before the position.
    first = max(0, bisect_left(segments.downstream, low) - 1)
    lowest = min(position, *segments.upstream[first : last + 1])
    begin, end = SyncPoint(lowest, low), segments.sync(last)
    is_newest = segments.has_caught_up and _is_newest(segments, last)
    return SearchRange(position, begin, end, is_newest=is_newest)


def _next_settled(segments: Segments, position: int) -> int | None:
    """Return the index of the first sync after a position whose own offset bounds it.

    A sync whose record no newer epoch has copied again comes first.
    """
    older: int | None = None
    first = bisect_right(segments.lows, position, key=_begin) - 1
    for number in range(first, len(segments.lows)):
        run, following = segments.lows[number], number + 1
        if run.low is None:
            end = segments.lows[following].begin if following < len(segments.lows) else END
            begin = max(run.begin, position + 1)
            at = bisect_left(segments.upstream, begin, run.start, run.stop)
            if at < run.stop and segments.upstream[at] < end:
                if _is_newest(segments, at):
                    return at
                older = at if older is None else older
    return older


def _is_newest(segments: Segments, at: int) -> bool:
    """Tell whether no newer epoch has copied the record of a sync again."""
    return segments.bracket(segments.upstream[at]).before == segments.sync(at)


def step_range(syncs: PartitionSyncs, bracket: SyncBracket) -> SearchRange | None:
    """Return the offsets to read between two syncs, to see which records were copied there.

    None if no older epoch has come as far: then no record there has an older copy.
    """
    before, after = bracket.before, bracket.after
    if before is None or after is None:
        return None
    lasts = (syncs[stop - 1] for _, stop in syncs.epochs)
    older = (last.upstream for last in lasts if last.downstream < before.downstream)
    if max(older, default=-1) <= bracket.position:
        return None
    return SearchRange(bracket.position, before, after)


def extend_range(
    syncs: PartitionSyncs, search: SearchRange, source: RecordWindow, target: RecordWindow
) -> SearchRange:
    """Extend a range to the last sync of its epoch that was read and is the same record."""
    at = bisect_left(syncs.downstream, search.end.downstream)
    epoch = bisect_right(syncs.starts, at)
    stop = syncs.starts[epoch] if epoch < len(syncs.starts) else len(syncs)
    stop = min(
        bisect_right(syncs.downstream, target.last, at, stop),
        bisect_right(syncs.upstream, source.last, at, stop),
    )
    for number in range(stop - 1, at, -1):
        content = source.content_at(syncs.upstream[number])
        if content is not None and content == target.content_at(syncs.downstream[number]):
            return search._replace(end=syncs[number])
    return search


def has_copied(segments: Segments, offset: int) -> bool:
    """Tell whether the newest epoch around a source offset seems to have copied it."""
    bracket = segments.bracket(offset)
    if bracket.is_sync:
        return True
    is_passed = bracket.before is not None and bracket.after is not None
    return is_passed and not lacks_records(*bracket.steps)


def settled_from(segments: Segments, offset: int) -> int:
    """Return the first source offset whose lower bound is ``offset`` or above; END without one.

    From there on, no record has its last copy below the target offset ``offset``.
    """
    ends = [*(run.begin for run in segments.lows[1:]), END]
    for run, end in zip(segments.lows, ends, strict=True):
        if segments.low(run.begin) >= offset:
            return run.begin
        at = bisect_left(segments.downstream, offset, run.start, run.stop)
        if run.low is None and at < run.stop and run.begin <= segments.upstream[at] < end:
            return segments.upstream[at]
    return END


def settled_sync(segments: Segments, offset: int) -> SyncPoint | None:
    """Return the sync at or after ``settled_from``, if the newest epoch has caught up."""
    run = segments.lows[-1]
    at = bisect_left(segments.upstream, settled_from(segments, offset), run.start, run.stop)
    return segments.sync(at) if segments.has_caught_up and at < run.stop else None
