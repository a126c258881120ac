"""Counts records on the target, where nobody but MirrorMaker 2 writes."""

from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint
from airflow_mm2_offsets.core.evidence import Evidence, TargetWindow


def count_records(bracket: SyncBracket, low: int, evidence: Evidence) -> tuple[int, int] | None:
    """Return the bounds of a position by the records that the target delivers between the syncs.

    At most ``after.upstream - p`` records lie from p to the later sync, and at most
    ``p - before.upstream`` from the earlier one to p.

    Args:
        bracket: The syncs.
        low: The lower bound that they give.
        evidence: What was read.

    Returns:
        The bounds; None where counting is not allowed, or contradicts itself: then more records
        were copied than the source can have had, so the user's word is wrong.
    """
    window = evidence.target_window
    if bracket.after is None or window is None or not _can_count(bracket, window, evidence):
        return None
    before, after = bracket.before, bracket.after
    counted_low = window.back_from(after.downstream, after.upstream - bracket.position)
    high: int | None = None
    # A sync whose record was copied again within the window is no place to count from.
    if before and window.delivers(before.downstream):
        high = window.on_from(before.downstream, bracket.position - before.upstream)
    low = low if counted_low is None else max(low, counted_low)
    high = after.downstream if high is None else min(after.downstream, high)
    if low > high:
        return None
    return low, high if bracket.rewind is None else bracket.rewind.downstream


def _can_count(bracket: SyncBracket, window: TargetWindow, evidence: Evidence) -> bool:
    if not (evidence.sole_writer and bracket.after) or _differs(bracket.after, evidence):
        return False
    before: SyncPoint | None = bracket.before
    first = before.downstream if before else 0
    if evidence.target:
        first = max(first, evidence.target.low)
    return window.covers(first, bracket.after.downstream)


def _differs(sync: SyncPoint, evidence: Evidence) -> bool:
    """Tell whether the record of a sync was read on both sides, and is not the same.

    Where a transform changes records on the way, two copies of one record may differ.
    """
    sides = zip(sync, (evidence.source_window, evidence.target_window), strict=True)
    contents = {window and window.content_at(offset) for offset, window in sides}
    return None not in contents and len(contents) > 1
