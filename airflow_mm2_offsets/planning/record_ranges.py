"""Tells which ranges hold the records that settle a position; ``record_evidence`` reads them."""

from bisect import bisect_left
from operator import attrgetter

from airflow_mm2_offsets.core import Basis, Evidence, SyncIndex, Translation, Watermarks
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.duplicates import (
    last_possible_duplicate,
    recopied_from,
    rewind_after,
)
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.rules import segments_with, suspect_tail
from airflow_mm2_offsets.core.search_ranges import search_range, settled_sync, step_range
from airflow_mm2_offsets.core.segments import Segments
from airflow_mm2_offsets.kafka.ranges import OffsetRange

MAX_WINDOW = 100_000
"""The most offsets of one partition that are read on either side."""

_downstream = attrgetter("downstream")
_MAY_BE_READ = frozenset(
    {
        Basis.SYNC,
        Basis.BETWEEN_SYNCS,
        Basis.BEFORE_FIRST_SYNC,
        Basis.AFTER_LAST_SYNC,
        Basis.COPYING_AGAIN,
    }
)


def find_range_to_end(
    index: SyncIndex, answer: Translation, evidence: Evidence
) -> OffsetRange | None:
    """Return what to read of the source up to its end; None if nothing helps or it is too much."""
    source, read = evidence.source, evidence.source_window
    if answer.low == answer.high or source is None or read is None:
        return None
    if answer.basis is not Basis.CONTENT:
        # What was written since the records were read.
        to_end = OffsetRange(read.first, source.high - 1)
        return to_end if read.last < to_end.last and to_end.size <= MAX_WINDOW else None
    # All of it, if that is little: a rewind that no sync shows may go back anywhere.
    to_end = OffsetRange(source.low, source.high - 1)
    if to_end.size > MAX_WINDOW:
        first = _first_source_offset(index.partitions[answer.topic_partition], answer, evidence)
        to_end = OffsetRange(first, source.high - 1)
    return to_end if to_end.size <= MAX_WINDOW else None


def _first_source_offset(syncs: PartitionSyncs, answer: Translation, evidence: Evidence) -> int:
    """Return the lowest source offset of which a copy may have been read on the target."""
    segments = segments_with(syncs, evidence)
    window = search_range(segments, segments.bracket(answer.position))
    if window is None or evidence.target_window is None:
        return 0
    rewinds = (
        recopied_from(syncs, number)
        for number in range(1, len(syncs.starts))
        if window.begin.downstream
        <= syncs.downstream[syncs.starts[number]]
        <= evidence.target_window.last
    )
    return min((window.begin.upstream, *rewinds))


def find_ranges(
    index: SyncIndex, answer: Translation, evidence: Evidence
) -> tuple[OffsetRange | None, OffsetRange] | None:
    """Return what to read on source and target; None if nothing helps or it is too much."""
    syncs = index.partitions.get(answer.topic_partition)
    if syncs is None or answer.basis not in _MAY_BE_READ:
        return None
    segments = segments_with(syncs, evidence)
    bracket = segments.bracket(answer.position)
    step = step_range(syncs, bracket)
    window = search_range(segments, bracket) or step
    if window is None:
        return _ranges_to_ends(syncs, answer, evidence)
    is_bounded = answer.low != answer.high
    end = suspect_tail(syncs, evidence)
    first = bracket.before or SyncPoint(0, 0)
    duplicate = rewind_after(syncs, answer.position, end)
    if window is not step and segments.older_low(bracket) is not None:
        first = window.begin
    else:
        later = last_possible_duplicate(syncs, bracket, within=MAX_WINDOW, end=end)
        duplicate = max(filter(None, (duplicate, later)), key=_downstream, default=None)
        if bracket.is_sync and step:
            window = step
        elif not is_bounded and duplicate is None:
            return None
    if evidence.source:
        for last in _ends(segments, window.end, duplicate):
            # Older copies count for what later steps lack: both sides show it.
            source_end = max(last, window.end, key=attrgetter("upstream")) if step else window.end
            source = _range(first, source_end, 0, evidence.source)
            target = _range(first, last, 1, evidence.target)
            if source and target:
                return source, target
    if evidence.sole_writer and bracket.after and is_bounded:
        target = _range(first, bracket.after, 1, evidence.target)
        return (None, target) if target else None
    return None


def _ranges_to_ends(
    syncs: PartitionSyncs, answer: Translation, evidence: Evidence
) -> tuple[OffsetRange, OffsetRange] | None:
    """Return what to read if no sync ends the range: from the lower bound up to both ends."""
    source, target = evidence.source, evidence.target
    if source is None or target is None or answer.low is None:
        return None
    at = bisect_left(syncs.downstream, answer.low) - 1
    # Before the first sync, the copies may be of any source offset.
    first = (
        SyncPoint(min(syncs.upstream[at:]), syncs.downstream[at]) if at >= 0 else SyncPoint(0, 0)
    )
    last = SyncPoint(source.high - 1, target.high - 1)
    on_source, on_target = _range(first, last, 0, source), _range(first, last, 1, target)
    return (on_source, on_target) if on_source and on_target else None


def _ends(segments: Segments, end: SyncPoint, duplicate: SyncPoint | None) -> list[SyncPoint]:
    """Return up to where the target may be read, the furthest first.

    ``end`` ends the range that holds a position's copy; it may be a settled sync beyond the last
    possible ``duplicate``, before which records of the range may be copied again.
    """
    if duplicate is None:
        return [end]
    furthest = max(duplicate, end, key=_downstream)
    # What follows the position may be copied again up to there.
    settled = settled_sync(segments, furthest.downstream) or furthest
    return [max(settled, furthest, key=_downstream), furthest, end]


def _range(
    first: SyncPoint, last: SyncPoint, side: int, watermarks: Watermarks | None
) -> OffsetRange | None:
    """Return the offsets of one side; None if too many of them can be read.

    ``side`` is 0 for the source and 1 for the target.
    """
    offsets = OffsetRange(first[side], last[side])
    readable = OffsetRange(max(offsets.first, low_of(watermarks)), offsets.last)
    return offsets if readable.size <= MAX_WINDOW else None


def low_of(watermarks: Watermarks | None) -> int:
    """Return the first offset that a partition holds; 0 where it is not known."""
    return watermarks.low if watermarks else 0
