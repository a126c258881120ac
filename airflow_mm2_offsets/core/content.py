"""Finds a position on the target by what the records hold.

Both clusters were read between two syncs: the source from u1 to u2, the target from d1 to d2.
MirrorMaker 2 copies in order, so the truth is the earliest of the (highest) copies of the records
from the position on. A copy is known by its content; a content that the target holds twice
counts where it is first, which can only be too low: the second may be the same record copied
again, or an equal one. A target record whose content the source does not have (changed by a
transform, deleted since, or another writer's), or which is such a second one, may be the copy of
any source record that was not found, so the answer stays below it.
"""

from collections.abc import Sequence

from airflow_mm2_offsets.core.bounds import Bounds
from airflow_mm2_offsets.core.evidence import Content, SourceWindow, TargetWindow, WindowRecord
from airflow_mm2_offsets.core.stretch import Stretch, SyncPoint


def match_content(stretch: Stretch, source: SourceWindow, target: TargetWindow) -> Bounds | None:
    """Return where the stretch's position is by content, or None where that proves nothing.

    It proves nothing where a window does not reach the sync at the stretch's end, or the record
    of that sync is not the same on both sides: then a transform changes records on the way.
    """
    begin, end = stretch.begin, stretch.end
    if end is None:
        return None
    if source.first > stretch.position or source.last < end.upstream:
        return None
    if not target.covers(begin.downstream, end.downstream):
        return None
    originals = _between(begin.upstream, end.upstream, source.records)
    copies = _between(begin.downstream, end.downstream, target.records)
    if not _meet(end, originals, copies):
        return None
    known = {content for _, content in originals}
    wanted = {content for offset, content in originals if offset >= stretch.position}
    counted = {content: offset for offset, content in reversed(copies) if content in known}
    found = min(counted[content] for content in wanted if content in counted)
    low = _below_unknown(found, wanted, counted, copies)
    proven = low == found and source.first <= begin.upstream and _single(found, originals, copies)
    return Bounds(low=low, high=found if proven else end.downstream)


def _between(first: int, last: int, records: Sequence[WindowRecord]) -> list[WindowRecord]:
    return [record for record in records if first <= record[0] <= last]


def _meet(end: SyncPoint, originals: list[WindowRecord], copies: list[WindowRecord]) -> bool:
    """Tell whether the sync's record was read on both sides and is the same."""
    if not originals or not copies:
        return False
    (upstream, original), (downstream, copy) = originals[-1], copies[-1]
    return (upstream, downstream) == end and original == copy


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


def _single(found: int, originals: list[WindowRecord], copies: list[WindowRecord]) -> bool:
    """Tell whether both sides hold the content of the record at ``found`` once."""
    content = next(content for offset, content in copies if offset == found)
    return all(sum(each == content for _, each in side) == 1 for side in (originals, copies))
