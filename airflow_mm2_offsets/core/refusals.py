"""Refuses positions, with the reason and the next step; ``rules`` calls it."""

from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import Evidence, Watermarks
from airflow_mm2_offsets.core.reasons import step_past_older_copies
from airflow_mm2_offsets.core.result import Basis, Translation


def refuse_outside_source(
    blank: Translation, syncs: PartitionSyncs | None, source: Watermarks | None
) -> Translation | None:
    """Refuse a position outside the source's watermarks that MirrorMaker 2 did not copy."""
    if source is None or source.low <= blank.position <= source.high:
        return None
    if blank.position > source.high:
        return blank.refused(
            Basis.OUTSIDE_SOURCE,
            f"position {blank.position} lies beyond the source's end {source.high}: it is of "
            f"another cluster or topic, or the topic was recreated",
        )
    if syncs and syncs.first.upstream <= blank.position:
        return None
    return blank.refused(
        Basis.OUTSIDE_SOURCE,
        f"position {blank.position} lies below the source's first offset {source.low}: its "
        f"records were deleted before MirrorMaker 2 copied them",
    )


def refuse_differing_records(blank: Translation, evidence: Evidence) -> Translation | None:
    """Refuse if records contradict a sync and no transform explains that."""
    if evidence.contradiction is None or evidence.changed_records:
        return None
    upstream, downstream = evidence.contradiction
    return blank.refused(
        Basis.RECORDS_DIFFER,
        f"the records of the sync {upstream} -> {downstream}, or those before it, are not the same "
        f"on both clusters: the target topic is not a copy of this one (check the "
        f"replication policy, its separator, offset_syncs_topic_location, and whether a topic was "
        f"recreated), or a transform changes records on the way (then set changed_records)",
    )


def refuse_before_history(blank: Translation, syncs: PartitionSyncs) -> Translation:
    """Refuse a position before the first known sync."""
    first = "{} -> {}".format(*syncs.first) if syncs else "the next sync"
    if not syncs.beginning.history.is_cut:
        return blank.refused(
            Basis.BEFORE_FIRST_SYNC,
            f"position {blank.position} lies before the first known sync ({first}), where only "
            f"strategy safe has an answer",
        )
    return blank.refused(
        Basis.HISTORY_CUT,
        f"position {blank.position} lies before {first}, the first since its history was cut: the "
        f"topic was recreated on a cluster and the copies made before are gone, or an archive does "
        f"not hold older syncs",
    )


def refuse_copied_before_history(blank: Translation, syncs: PartitionSyncs) -> Translation:
    """Refuse if the only copies of records may lie before the first known sync."""
    return blank.refused(
        Basis.COPYING_AGAIN,
        "MirrorMaker 2 may not have copied again all records that it copied before {1} -> {2}, the "
        "first sync since its history was cut; the copies of some from position {0} on may lie "
        "before that: {3}".format(blank.position, *syncs.first, step_past_older_copies(syncs)),
    )


def refuse_outside_target(
    answer: Translation, last: SyncPoint, target: Watermarks | None
) -> Translation:
    """Return the answer; a refusal if it lies outside the target's watermarks."""
    if target is None or answer.target is None:
        return answer
    if answer.target < target.low or (answer.low or 0) < target.low:
        older = f"; {answer.reason}" if answer.basis is Basis.COPYING_AGAIN else ""
        return answer.refused(
            Basis.EXPIRED,
            f"the answer {answer.target} lies below the target's first offset {target.low}: "
            f"the target has deleted records that the job has yet to read{older}",
        )
    if answer.target > target.high:
        return answer.refused(
            Basis.NOT_REPLICATED_YET,
            f"the answer {answer.target} lies above the target's end {target.high}: wait until "
            f"MirrorMaker 2 has copied as far, or check whether the target was truncated",
        )
    if last.downstream >= target.high:
        return answer.refused(
            Basis.NOT_REPLICATED_YET,
            f"the sync {last.upstream} -> {last.downstream} names an offset above the target's end "
            f"{target.high}: the target topic was truncated or recreated",
        )
    return answer
