"""Finds a position on the target by the content of the records; ``rules`` calls it.

Both clusters were read between two syncs: the source from u1 to u2, the target from d1 to d2. The
truth is the earliest of the copies of the records from the position on; of a record that was copied
twice, the later copy counts.

- A copy is recognized by its content. If the target holds a content twice, the first place counts.
  That can only be too low: the second one may be the same record copied again, or an equal one.
- A target record is unknown if the source does not have its content (a transform changed it, the
  source has deleted it, or another writer wrote it), or if it is such a second one. It may be the
  copy of any source record that has no copy elsewhere, so the answer is not above it.
- If no rewind can lie in between, MirrorMaker 2 has copied in order. Then no record from the
  position on has a copy before that of an earlier record. If the target has more records up to such
  a copy than the source has offsets, the order is in doubt.

The target may have been read further, to where a later restart can have copied the same records
again unseen. A record missing from that range was not copied again. Copies in it count only if the
source was read to its end and has each content once: then equal content is the same record.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from operator import itemgetter

from airflow_mm2_offsets.core.evidence import (
    Content,
    SourceWindow,
    TargetWindow,
    WindowRecord,
    offsets_of_unique,
)
from airflow_mm2_offsets.core.last_copy import find_last_copy
from airflow_mm2_offsets.core.search_ranges import SearchRange
from airflow_mm2_offsets.core.segments import Segments
from airflow_mm2_offsets.core.window_records import (
    between,
    first_offsets,
    last_offsets,
)


def match_content(
    search: SearchRange,
    source: SourceWindow,
    target: TargetWindow,
    *,
    segments: Segments,
    source_end: int | None = None,
) -> tuple[int, int] | None:
    """Return the bounds of a position by content, or None if content proves nothing.

    It proves nothing if the windows do not reach the sync at the end of the range, or if that
    sync's record differs on the two clusters: then a transform changes records on the way.

    If the source was read from the range's begin, both bounds are one offset, the truth, in two
    cases:

    - The source was read to its end, and the last copy of the first record is proved to be the
      truth (``find_last_copy``).
    - No unknown target record lies before the first known copy, and both sides hold the record of
      that copy once.

    Args:
        search: The range that holds the copies of the records from the position on.
        source: The source's records from the position to the end of the range, or further.
        target: The target's records of the range, or further.
        segments: What the syncs say.
        source_end: The source's end offset, read after all records of ``target`` had been copied.
    """
    pair = _originals_and_copies(search, source, target)
    if pair is None:
        return None
    originals, copies = pair
    # The copies of the range, and what was read of the target beyond it.
    all_copies = between(search.begin.downstream, target.last, target.records)
    is_read_to_end = source_end is not None and source.last >= source_end - 1
    is_read_from_begin = source.first <= search.begin.upstream
    if is_read_from_begin and is_read_to_end:
        last = find_last_copy(search.position, source, copies, all_copies, segments)
        if last is not None:
            return last, last
    earliest, low = _lowest_copy(search, originals, copies)
    if is_read_from_begin and low == earliest and _is_unique(earliest, originals, all_copies):
        return earliest, earliest
    # The range's last record is at the position or after it: the truth is not above its last copy.
    end_content = originals[-1][1]
    return low, last_offsets(all_copies)[end_content]


def skip_read(position: int, source: SourceWindow, target: TargetWindow, low: int) -> int:
    """Return the first target offset from a lower bound on that the job may need.

    It needs no record whose content both sides hold once, if its original lies before the position.
    Then the lower bound holds whatever was copied before the first known sync. The originals must
    rise: where they step back, a transform may have made a later record equal to an earlier one.

    Args:
        position: The next offset to read on the source.
        source: Records of the source, also of before the position.
        target: Records of the target, from the lower bound on.
        low: The lower bound, a target offset.
    """
    begin = bisect_left(target.records, low, key=itemgetter(0))
    last = -1
    for offset, content in islice(target.records, begin, None):
        original = source.unique.get(content, position)
        if content not in target.unique or not last < original < position:
            return offset
        last = original
    return target.last + 1


def is_only_copy(offset: int, position: int, source: SourceWindow, target: TargetWindow) -> bool:
    """Tell whether a target offset holds the one copy of a record from the position on."""
    content = target.content_at(offset)
    return content in target.unique and source.unique.get(content, -1) >= position


def _is_unique(
    copy: int, originals: Sequence[WindowRecord], copies: Sequence[WindowRecord]
) -> bool:
    """Tell whether both sides hold the content of the copy at an offset once."""
    content = next(content for offset, content in copies if offset == copy)
    return content in offsets_of_unique(originals) and content in offsets_of_unique(copies)


def _lowest_copy(
    search: SearchRange, originals: Sequence[WindowRecord], copies: Sequence[WindowRecord]
) -> tuple[int, int]:
    """Return the first known copy of a record from the position on, and the lower bound.

    The bound is that copy, or an unknown target record before it.
    """
    unread = {content: None for offset, content in originals if offset >= search.position}
    on_source = {content for _, content in originals}
    first_copies = first_offsets([copy for copy in copies if copy[1] in on_source])
    earliest = min(first_copies[content] for content in unread if content in first_copies)
    if _is_complete(search, unread, first_copies):
        return earliest, earliest
    before: Sequence[WindowRecord] = [copy for copy in copies if copy[0] < earliest]
    if search.is_ordered:
        offsets = offsets_of_unique(originals)
        if _rise(offsets, copies) and _has_room(search.begin.upstream, offsets, before):
            before = _after_last_known(before, unread, first_copies)
    unknown = (offset for offset, content in before if first_copies.get(content) != offset)
    return earliest, min(unknown, default=earliest)


def _is_complete(
    search: SearchRange, unread: Collection[Content], first_copies: Mapping[Content, int]
) -> bool:
    """Tell whether each offset from the position on has a record, and each record a known copy.

    Then no unknown target record is needed.
    """
    offsets = search.end.upstream + 1 - search.position
    return len(unread) == offsets and all(content in first_copies for content in unread)


def _rise(offsets: Mapping[Content, int], copies: Sequence[WindowRecord]) -> bool:
    """Tell whether the known copies are in the source's order, each once."""
    originals = [offsets[content] for _, content in copies if content in offsets]
    return all(first < second for first, second in pairwise(originals))


def _has_room(begin: int, offsets: Mapping[Content, int], copies: Sequence[WindowRecord]) -> bool:
    """Tell whether the unknown copies between known ones fit into the source offsets between them.

    If there are more of them, one may be of a later record: a batch has landed after the next one.

    Args:
        begin: The first source offset that was read.
        offsets: The offsets of the source's records from there on, by content.
        copies: The target's records, from the first on.
    """
    known_copies = [
        (offsets[content], number)
        for number, (_, content) in enumerate(copies)
        if content in offsets
    ]
    steps = pairwise([(begin - 1, -1), *known_copies])
    return all(later[1] - first[1] <= later[0] - first[0] for first, later in steps)


def missing_records(
    search: SearchRange, source: SourceWindow, target: TargetWindow
) -> Iterator[int]:
    """Yield the source offsets from the position on whose records have no copy in a range.

    The steps of the syncs can hide that: markers, other writers' records and duplicate copies make
    the target grow as well.
    """
    sides = _originals_and_copies(search, source, target)
    if sides is None:
        return
    originals, _ = sides
    on_target = {
        content for _, content in between(search.begin.downstream, target.last, target.records)
    }
    for offset, content in originals:
        if offset >= search.position and content not in on_target:
            yield offset


def _originals_and_copies(
    search: SearchRange, source: SourceWindow, target: TargetWindow
) -> tuple[list[WindowRecord], list[WindowRecord]] | None:
    """Return the records of both clusters in a range; None if those at its end differ."""
    position, begin, end, *_ = search
    if source.first > position or source.last < end.upstream:
        return None
    if not target.covers(begin.downstream, end.downstream):
        return None
    originals = between(begin.upstream, end.upstream, source.records)
    copies = between(begin.downstream, end.downstream, target.records)
    if not originals or not copies:
        return None
    (upstream, original), (downstream, copy) = originals[-1], copies[-1]
    same = (upstream, downstream) == end and original == copy
    return (originals, copies) if same else None


def _after_last_known(
    copies: Sequence[WindowRecord], unread: Collection[Content], first_copies: Mapping[Content, int]
) -> Sequence[WindowRecord]:
    """Return the copies after the last known copy of a record before the position."""
    last = max(
        number
        for number, (offset, content) in enumerate([(-1, None), *copies])
        if number == 0 or (first_copies.get(content) == offset and content not in unread)
    )
    return copies[last:]
