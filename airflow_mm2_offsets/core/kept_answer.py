"""Tells whether an answer still holds once MirrorMaker 2 has copied more.

``planning`` checks the answers of an older plan with it.
"""

from bisect import bisect_left

from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.result import Basis, Status, Translation

_COPIES_GONE = frozenset(
    {
        Basis.COPYING_AGAIN,
        Basis.HISTORY_CUT,
        Basis.NOT_IDENTICAL,
        Basis.NOT_REPLICATED_YET,
        Basis.OTHER_WRITER,
    }
)
"""Why a position is refused if the target had its copies and has lost them; or, on the way home, if
a producer has written since to the cluster that the job leaves; or if a copy that keeps offsets is
none any more."""


def find_contradiction(
    kept: Translation, now: Translation, syncs: PartitionSyncs | None, *, is_complete: bool
) -> str | None:
    """Return why a kept answer is wrong now; None where nothing proves that.

    A new answer with narrower or wider bounds proves nothing.

    Args:
        kept: The answer when the plan was made.
        now: The current answer for the same position, by the strategy ``safe``.
        syncs: The partition's current syncs.
        is_complete: Whether the same clusters answered as for the kept answer. Otherwise a
            refusal may only mean that less is known.
    """
    if kept.low is None:
        return None
    if now.status is Status.REFUSED:
        return now.reason if is_complete and now.basis in _COPIES_GONE else None
    if now.high is not None and now.high < kept.low:
        return (
            f"the position is at {_place(now)} there now, so the job would lose records: the topic "
            f"was truncated and copied again since the plan was made"
        )
    rewind = _rewind_since(kept, now, syncs)
    if rewind is None:
        return None
    return (
        f"the position is at {_place(now)} there now: MirrorMaker 2 has gone back to "
        f"{rewind.upstream} on the source since the plan was made, and has copied again from "
        f"{rewind.downstream} on, so more would be read again than the {kept.max_reread} records "
        f"that the plan announced"
    )


def _rewind_since(
    kept: Translation, now: Translation, syncs: PartitionSyncs | None
) -> SyncPoint | None:
    """Return a rewind that copied records from before the position to after the kept answer.

    Without such a rewind, no record from before a position lies at or above its upper bound.
    """
    if kept.high is None or not syncs or (now.high is not None and now.high <= kept.high):
        return None
    is_past = now.low is not None and now.low > kept.high
    first = bisect_left(syncs.downstream, kept.high)
    rewinds = (
        syncs[start]
        for start in syncs.starts[1:]
        if start >= first and syncs.upstream[start] <= syncs.upstream[start - 1]
    )
    return next((sync for sync in rewinds if is_past or sync.upstream < kept.position), None)


def _place(answer: Translation) -> str:
    if answer.high is None:
        return f"{answer.low} or later"
    return str(answer.low) if answer.low == answer.high else f"{answer.low} to {answer.high}"
