"""Bounds a position by counting records on the target, if only MirrorMaker 2 writes there.

``rules`` calls it. An example: the syncs 100 -> 50 and 110 -> 70, and the target delivers records
at 50, 52, 54 and so on up to 70, with a marker after each. Position 107 lies at most 3 records
before the sync 110, so its lower bound is 64. It lies at most 7 records after the sync 100, so its
upper bound is 64: the answer is exact.
"""

from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint
from airflow_mm2_offsets.core.evidence import Evidence, TargetWindow


def count_records(bracket: SyncBracket, low: int, evidence: Evidence) -> tuple[int, int] | None:
    """Return the bounds of a position that follow from the records read between its syncs.

    At most ``after.upstream - p`` records lie from p to the later sync; counted back from that sync
    on the target, they give the lower bound. At most ``p - before.upstream`` records lie from the
    earlier sync to p; counted on from that sync, they give the upper bound.

    Args:
        bracket: The syncs.
        low: The lower bound by the syncs alone.
        evidence: What was read of both clusters.

    Returns:
        The bounds. None if counting is not allowed, or if the bounds contradict each other: then
        the target holds more copies than the source had records, so ``sole_writer`` is wrong.
    """
    window = evidence.target_window
    if bracket.after is None or window is None or not _can_count(bracket, window, evidence):
        return None
    before, after = bracket.before, bracket.after
    counted_low = window.back_from(after.downstream, after.upstream - bracket.position)
    high: int | None = None
    # Where the sync's record was copied again within the window, counting can't start there.
    if before and window.delivers(before.downstream):
        high = window.on_from(before.downstream, bracket.position - before.upstream)
    low = low if counted_low is None else max(low, counted_low)
    high = after.downstream if high is None else min(after.downstream, high)
    if low > high:
        return None
    return low, high if bracket.rewind is None else bracket.rewind.downstream


def _can_count(bracket: SyncBracket, window: TargetWindow, evidence: Evidence) -> bool:
    # Before the first known sync, the target may hold copies of still earlier records.
    if not (evidence.sole_writer and bracket.before and bracket.after):
        return False
    if _differs(bracket.after, evidence):
        return False
    first = bracket.before.downstream
    if evidence.target:
        first = max(first, evidence.target.low)
    return window.covers(first, bracket.after.downstream)


def _differs(sync: SyncPoint, evidence: Evidence) -> bool:
    """Tell whether the record of a sync differs on the two clusters.

    Then a transform changes records on the way, and two copies of one record may differ.
    """
    sides = zip(sync, (evidence.source_window, evidence.target_window), strict=True)
    contents = {window and window.content_at(offset) for offset, window in sides}
    return None not in contents and len(contents) > 1
