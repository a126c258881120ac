"""Finds a position on the target by what the records hold.

Both clusters were read between two syncs: the source from u1 to u2, the target from d1 to d2.
The truth is the earliest of the (highest) copies of the records from the position on. A copy is
known by its content; a content that the target holds twice
counts where it is first, which can only be too low: the second may be the same record copied
again, or an equal one. A target record whose content the source does not have (changed by a
transform, deleted since, or another writer's), or which is such a second one, may be the copy of
any source record that was not found, so the answer stays below it. Where no rewind can lie in
between, MirrorMaker 2 has copied in order: then what lies before a known copy of a record before
the position is no copy of a later one.

The target may have been read on, to where a later restart can have copied the same records again
unseen. A record missing from that range was not copied again. What is there counts only if the
source was read to its end and has each content once: then equal content is the same record.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from airflow_mm2_offsets.core.evidence import Content, SourceWindow, TargetWindow, WindowRecord
from airflow_mm2_offsets.core.segments import Window


def match_content(
    window: Window,
    source: SourceWindow,
    target: TargetWindow,
    *,
    settled_from: Callable[[int], int],
    source_end: int | None = None,
) -> tuple[int, int] | None:
    """Return the bounds of a position by content, or None where that proves nothing.

    It proves nothing where what was read does not reach the sync at the window's end, or the
    record of that sync is not the same on both sides: then a transform changes records on the way.

    Args:
        window: Where the copies of the records from the position on are.
        source: What the source holds from the position to the window's end, or further.
        target: The same of the target.
        settled_from: Returns the source offset from which on no record has its last copy below a
            target offset; see ``Segments``.
        source_end: The end that the source had when all that ``target`` holds had been copied.
    """
    meeting = _meet(window, source, target)
    if meeting is None:
        return None
    originals, copies = meeting
    wanted = {content: None for offset, content in originals if offset >= window.position}
    read_on = _between(window.begin.downstream, target.last, target.records)
    lasts = {content: offset for offset, content in read_on}
    is_whole = source_end is not None and source.last >= source_end - 1
    if is_whole and source.first <= window.begin.upstream:
        last = _last_copy(window.position, source, copies, read_on, settled_from)
        if last is not None:
            return last, last
    known = {content for _, content in originals}
    counted = {content: offset for offset, content in reversed(copies) if content in known}
    found = min(counted[content] for content in wanted if content in counted)
    before: Sequence[WindowRecord] = [copy for copy in copies if copy[0] < found]
    if window.is_ordered:
        before = _after_last_known(before, wanted, counted)
    unknown = (offset for offset, content in before if counted.get(content) != offset)
    low = min(unknown, default=found)
    content = next(content for offset, content in copies if offset == found)
    if source.first <= window.begin.upstream and low == found:
        times = sum(each == content for _, each in originals)
        if times == sum(each == content for _, each in read_on) == 1:
            return found, found
    return low, lasts[originals[-1][1]]


def first_missing(window: Window, source: SourceWindow, target: TargetWindow) -> int | None:
    """Return the first source offset from the position on that was surely not copied in a window.

    None where all may have been: then the window's copies are of as many different records as the
    source has there. Target offsets that repeat a copy make the target grow all the same.
    """
    meeting = _meet(window, source, target)
    if meeting is None:
        return None
    originals, copies = ({content: offset for offset, content in side} for side in meeting)
    if len(copies) >= len(originals):
        return None
    missing = (offset for content, offset in originals.items() if content not in copies)
    return next((offset for offset in missing if offset >= window.position), None)


def _meet(
    window: Window, source: SourceWindow, target: TargetWindow
) -> tuple[list[WindowRecord], list[WindowRecord]] | None:
    """Return what both sides hold of a window, if the record at its end is the same on both."""
    position, begin, end, _ = window
    if source.first > position or source.last < end.upstream:
        return None
    if not target.covers(begin.downstream, end.downstream):
        return None
    originals = _between(begin.upstream, end.upstream, source.records)
    copies = _between(begin.downstream, end.downstream, target.records)
    if not originals or not copies:
        return None
    (upstream, original), (downstream, copy) = originals[-1], copies[-1]
    same = (upstream, downstream) == end and original == copy
    return (originals, copies) if same else None


def _last_copy(
    position: int,
    source: SourceWindow,
    copies: Sequence[WindowRecord],
    read_on: Sequence[WindowRecord],
    settled_from: Callable[[int], int],
) -> int | None:
    """Return the last copy of the first record that was copied, if it is the truth.

    Every record before it on the target must be the copy of one certain record of the source: an
    unknown one may be the only copy of a record that the source has deleted. And the copies of all
    the others must lie behind it, by the syncs or as they were read: a later copy of the first
    record alone may be another writer's, and MirrorMaker 2 may not have come as far again.
    """
    times = Counter(content for _, content in source.records)
    lasts = {content: offset for offset, content in read_on}
    firsts = {content: offset for offset, content in reversed(read_on)}
    wanted = [record for record in source.records if record[0] >= position and record[1] in lasts]
    content = wanted[0][1]
    first = lasts[content]
    before = (content for offset, content in copies if offset < first)
    if any(times[each] != 1 for each in (content, *before)):
        return None
    end = settled_from(first)
    # Of equal records, any copy may be the last one of any of them.
    behind = (
        lasts[each] if times[each] == 1 else firsts[each] for offset, each in wanted if offset < end
    )
    return first if min(behind, default=first) >= first else None


def _between(first: int, last: int, records: Sequence[WindowRecord]) -> list[WindowRecord]:
    return [record for record in records if first <= record[0] <= last]


def _after_last_known(
    copies: Sequence[WindowRecord], wanted: Collection[Content], counted: Mapping[Content, int]
) -> Sequence[WindowRecord]:
    """Return the copies after the last one that is known to be of a record before the position."""
    last = max(
        number
        for number, (offset, content) in enumerate([(-1, None), *copies])
        if number == 0 or (counted.get(content) == offset and content not in wanted)
    )
    return copies[last:]
