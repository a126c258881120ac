"""Proves that the last copy of a position's first record is the truth; ``content`` calls it.

The source was read from the range's begin to its end.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from airflow_mm2_offsets.core.evidence import Content, SourceWindow, WindowRecord
from airflow_mm2_offsets.core.search_ranges import has_copied, settled_from
from airflow_mm2_offsets.core.segments import Segments
from airflow_mm2_offsets.core.window_records import first_offsets, last_offsets


def find_last_copy(
    position: int,
    source: SourceWindow,
    copies: Sequence[WindowRecord],
    all_copies: Sequence[WindowRecord],
    segments: Segments,
) -> int | None:
    """Return the last copy of the first record from the position on, if it is the truth.

    Only records that were found on the target count: the others were not copied there. Two
    conditions prove it: each target record before that copy is certain (``_is_certain``), and the
    last copies of all later records lie after that copy: the syncs show it, or they were read
    there. Else another writer may have written that copy, and MirrorMaker 2 may not have copied the
    later records again.
    """
    unique_originals = source.unique
    first_copies, last_copies = first_offsets(all_copies), last_offsets(all_copies)
    from_position = [
        (offset, content)
        for offset, content in source.records
        if offset >= position and content in last_copies
    ]
    first_content = from_position[0][1]
    if first_content not in unique_originals:
        return None
    answer = last_copies[first_content]
    before = takewhile(lambda copy: copy[0] < answer, copies)
    if not all(_is_certain(copy, unique_originals, segments) for copy in before):
        return None
    # From here on, the syncs show that the last copies do not lie below the answer.
    settled = settled_from(segments, answer)
    # Equal records can't be told apart: the first copy of any may be the last copy of one.
    last_copies_read = (
        last_copies[content] if content in unique_originals else first_copies[content]
        for offset, content in from_position
        if offset < settled or not has_copied(segments, offset)
    )
    return answer if min(last_copies_read, default=answer) >= answer else None


def _is_certain(
    copy: WindowRecord, unique_originals: Mapping[Content, int], segments: Segments
) -> bool:
    """Tell whether a target record is the copy of one certain source record.

    An unknown one may be the only copy of a record that the source has deleted. So may one whose
    sync names another source offset than its content does.
    """
    offset, content = copy
    original = unique_originals.get(content)
    return original is not None and segments.upstream_at(offset) in {None, original}
