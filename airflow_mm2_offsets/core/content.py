"""Finds a position on the target by what the records hold.

Both clusters were read between two syncs: the source from u1 to u2, the target from d1 to d2.
MirrorMaker 2 copies in order, so the truth is the earliest of the (highest) copies of the records
from the position on. A copy is known by its content; a content that the target holds twice
counts where it is first, which can only be too low: the second may be the same record copied
again, or an equal one. A target record whose content the source does not have (changed by a
transform, deleted since, or another writer's), or which is such a second one, may be the copy of
any source record that was not found, so the answer stays below it.

The target may have been read on, to where a later restart can have copied the same records again
unseen. What is not there was not. What is there counts only if the source was read to its end and
has that content once: then it is the same record, and MirrorMaker 2 went on from it in order.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from airflow_mm2_offsets.core.bounds import Bounds
from airflow_mm2_offsets.core.evidence import Content, SourceWindow, TargetWindow, WindowRecord
from airflow_mm2_offsets.core.stretch import Stretch


def match_content(
    stretch: Stretch, source: SourceWindow, target: TargetWindow, *, source_end: int | None = None
) -> Bounds | None:
    """Return where the stretch's position is by content, or None where that proves nothing.

    It proves nothing where a window does not reach the sync at the stretch's end, or the record
    of that sync is not the same on both sides: then a transform changes records on the way.

    Args:
        stretch: The newest stretch of the position, where MirrorMaker 2 has caught up.
        source: What the source holds from the position to the stretch's end, or further.
        target: The same of the target.
        source_end: The end that the source had when all that ``target`` holds had been copied.
    """
    meeting = _meet(stretch, source, target)
    if meeting is None:
        return None
    originals, copies = meeting
    begin, position = stretch.begin, stretch.position
    known = {content for _, content in originals}
    wanted = {content for offset, content in originals if offset >= position}
    counted = {content: offset for offset, content in reversed(copies) if content in known}
    found = min(counted[content] for content in wanted if content in counted)
    low = _below_unknown(found, wanted, counted, copies)
    read_on = _between(begin.downstream, target.last, target.records)
    content = next(content for offset, content in copies if offset == found)
    if source.first <= begin.upstream:
        if low == found and _count(content, originals) == _count(content, read_on) == 1:
            return Bounds(low=found, high=found)
        first = next(each for at, each in source.records if at >= position and each in counted)
        read_whole = source_end is not None and source.last >= source_end - 1
        if read_whole and first == content and _again(content, position, source.records, read_on):
            last = _last(content, read_on)
            return Bounds(low=last, high=last)
    return Bounds(low=low, high=_last(originals[-1][1], read_on))


def _meet(
    stretch: Stretch, source: SourceWindow, target: TargetWindow
) -> tuple[list[WindowRecord], list[WindowRecord]] | None:
    """Return what both sides hold of the stretch, if the record at its end is the same on both."""
    begin, end = stretch.begin, stretch.end
    if end is None or source.first > stretch.position or source.last < end.upstream:
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


def _again(
    content: Content,
    position: int,
    originals: Sequence[WindowRecord],
    copies: Sequence[WindowRecord],
) -> bool:
    """Tell whether the highest copy of the first record is known, and all are there after it.

    It is in doubt where the source has its content twice; after a record which it has not once,
    and which may so be the copy of one between the position and the first that was found; and
    where one of the records up to the last that was read on the target is not there after it.
    """
    times = Counter(each for _, each in originals)
    offsets = {each: offset for offset, each in originals}
    lasts = {each: offset for offset, each in copies}
    end = offsets.get(copies[-1][1], position)
    after = (
        lasts[each] for offset, each in originals if position <= offset <= end and each in lasts
    )
    befores = (before for (_, before), (_, each) in pairwise(copies) if each == content)
    known = all(times[each] == 1 for each in (content, *befores))
    return known and min(after, default=-1) == lasts[content]


def _last(content: Content, copies: Sequence[WindowRecord]) -> int:
    return max(offset for offset, each in copies if each == content)


def _count(content: Content, records: Iterable[WindowRecord]) -> int:
    return sum(each == content for _, each in records)


def _between(first: int, last: int, records: Sequence[WindowRecord]) -> list[WindowRecord]:
    return [record for record in records if first <= record[0] <= last]


def _below_unknown(
    found: int, wanted: set[Content], counted: dict[Content, int], copies: list[WindowRecord]
) -> int:
    """Return ``found``, or the first unknown record after the last known one before it."""
    low = found
    before = (copy for copy in reversed(copies) if copy[0] < found)
    for offset, content in before:
        if counted.get(content) != offset:
            low = offset
        elif content not in wanted:
            break
    return low
