"""Refuses positions on the way home, with the reason and the next step; ``inverse`` calls it."""

from airflow_mm2_offsets.core.inverse_evidence import InverseEvidence
from airflow_mm2_offsets.core.result import Basis, Translation

_REVERSE = "go home by the connection of a MirrorMaker 2 that copies back"


def refuse_before(blank: Translation, evidence: InverseEvidence) -> Translation | None:
    """Refuse a position that is not one of the job that was moved."""
    first, position = evidence.first, blank.position
    if evidence.contradiction is not None and not evidence.changed_records:
        return blank.refused(
            Basis.RECORDS_DIFFER,
            "the records of the sync {} -> {} differ between the clusters: a topic was "
            "recreated, or a transform changes records (then set "
            "changed_records)".format(*evidence.contradiction),
        )
    if position > evidence.away.high:
        return blank.refused(
            Basis.OUTSIDE_SOURCE,
            f"position {position} lies beyond the end {evidence.away.high} of the cluster that "
            f"the job leaves: it is of another cluster, or the topic was recreated",
        )
    if first is None:
        return blank.refused(
            Basis.FIRST_PLAN,
            f"the plan of the job's first move does not name {blank.topic_partition} or was not "
            f"given, so no record counts as read: give that plan (first_plan), {_REVERSE}, or "
            f"choose where to start (on_unmapped)",
        )
    if position < first.start:
        return blank.refused(
            Basis.FIRST_PLAN,
            f"position {position} lies below {first.start}, where the first plan started the job: "
            f"one of the two is of another job, or the job was started elsewhere. Give the plan "
            f"that it was started from (first_plan)",
        )
    if not first.is_proven:
        return blank.refused(
            Basis.FIRST_PLAN,
            f"the first plan started the partition at {first.start} because the user chose so, "
            f"not by a proof: what it skipped can't be told. Choose where to start again "
            f"(on_unmapped)",
        )
    return None


def refuse_another_writer(blank: Translation, evidence: InverseEvidence) -> Translation | None:
    """Refuse if a record that the job has yet to read on B may not exist on A.

    MirrorMaker 2 does not bring it home: it would be lost.
    """
    position, end = blank.position, evidence.away.high
    if position >= end or evidence.sole_writer:
        return None
    copies, originals = evidence.copies, evidence.originals
    rest = f"the offsets {position} to {end - 1} that the job has yet to read"
    if evidence.changed_records:
        return blank.refused(
            Basis.UNREAD_RECORDS,
            f"a transform changes records, so {rest} can't be compared with the cluster that the "
            f"job returns to: if only MirrorMaker 2 writes there, set sole_writer; otherwise "
            f"{_REVERSE}",
        )
    if copies is None or originals is None or not copies.covers(position, end - 1):
        return blank.refused(
            Basis.UNREAD_RECORDS,
            f"{rest} were not all read, so a producer may have written there: let the job catch "
            f"up, set sole_writer if only MirrorMaker 2 writes there, or {_REVERSE}",
        )
    known = evidence.original_contents | evidence.copied_contents(copies.first, position)
    for offset, content in copies.records:
        if offset >= position and content not in known:
            return blank.refused(
                Basis.OTHER_WRITER,
                f"the record at offset {offset}, which the job has yet to read, is not on the "
                f"cluster that it returns to: a producer writes here already, or that record was "
                f"deleted there. It would be lost: let the job read it first, or {_REVERSE}",
            )
    return None


def refuse_outside_home(answer: Translation, evidence: InverseEvidence) -> Translation:
    """Return the answer; a refusal if it lies outside A's watermarks."""
    if answer.target is None:
        return answer
    if answer.target < evidence.home.low:
        return answer.refused(
            Basis.EXPIRED,
            f"the answer {answer.target} lies below the first offset {evidence.home.low} of the "
            f"cluster that the job returns to: records that it has yet to read were deleted there",
        )
    if answer.target > evidence.home.high:
        return answer.refused(
            Basis.RECORDS_DIFFER,
            f"the answer {answer.target} lies above the end {evidence.home.high} of the cluster "
            f"that the job returns to: the topic there was truncated or recreated",
        )
    return answer
