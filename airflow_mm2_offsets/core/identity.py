"""Translates a position where the copy keeps offsets, by the proof that it does.

``planning.identity_collector`` reads the evidence. The rules, and their sources:

- The answer is the position (KIP-1279, Cluster Linking). Below the target's ``low`` it is refused:
  unread records are deleted. Above ``high`` it is refused while the source is asked: they are not
  copied yet. Without the source it becomes ``high``: nothing more comes, and the next record that a
  producer writes to the target gets that offset.
- It is EXACT only if records around it were compared (``ComparedRecords.proves``). The copying
  keeps the order: one fetcher appends the source's batches to a partition, as a follower does.
- A record that differs, or an end of the copy beyond the end of its original, disproves the copy.
  The low watermarks prove nothing: retention works on each cluster by itself, and a copy may have
  begun later.
- Transactions: their end is a marker in the log, copied like a record (KIP-98). A copy that ends
  before the marker leaves the transaction open: read_committed stops there (the last stable
  offset), and nothing on the target ends it but an operator who aborts it. So a position counts as
  copied only when the target has decided all that the source has decided before it.
"""

from dataclasses import dataclass, field, replace

from airflow_mm2_offsets.core.compared_records import ComparedRecords
from airflow_mm2_offsets.core.evidence import Watermarks
from airflow_mm2_offsets.core.positions import TopicPartition
from airflow_mm2_offsets.core.result import Basis, Status, Translation

ABORT_STEP = "kafka-transactions.sh find-hanging and abort end it"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEvidence:
    """What was read of one partition."""

    source: Watermarks | None
    """None: the source was not asked."""
    target: Watermarks
    source_stable: int | None
    """The source's last stable offset, read before the target's."""
    target_stable: int
    compared: ComparedRecords = field(default_factory=ComparedRecords)
    difference: str | None = None
    """In words: the offset at which the clusters do not hold the same record, and what differs."""
    sole_writer: bool = False
    """The user's word that nothing but the copying has written to the copy."""
    is_way_home: bool = False
    """The target holds the originals, the source the copies."""

    @property
    def open_from(self) -> int | None:
        """Where the first open transaction begins on the target; None without one."""
        return self.target_stable if self.target_stable < self.target.high else None


def translate_same_offset(
    topic_partition: TopicPartition, position: int, evidence: IdentityEvidence
) -> Translation:
    """Return the answer for a position, or its refusal."""
    blank = Translation(
        topic=topic_partition.topic,
        partition=topic_partition.partition,
        position=position,
        status=Status.REFUSED,
        basis=Basis.NOT_COMPARED,
        reason="",
    )
    refusal = _refuse(blank, evidence)
    if refusal is not None:
        return refusal
    if evidence.source is None:
        return _without_source(blank, evidence)
    return (
        _refuse_not_copied(blank, evidence)
        or _proven(blank, evidence, evidence.source)
        or _unproven(blank, evidence, position)
    )


def _refuse(blank: Translation, evidence: IdentityEvidence) -> Translation | None:
    """Refuse a position of another log, a copy that differs, and what the target has deleted."""
    source, target = evidence.source, evidence.target
    if source is not None and blank.position > source.high:
        return blank.refused(
            Basis.OUTSIDE_SOURCE,
            f"position {blank.position} lies beyond the source's end {source.high}: it is of "
            f"another cluster or topic, or the topic was recreated",
        )
    if evidence.difference is not None:
        return blank.refused(
            Basis.NOT_IDENTICAL,
            f"the topics are not identical copies: {evidence.difference}. Check the mapping of "
            f"the connection (offset_syncs for MirrorMaker 2 and MSK Replicator), its replication "
            f"policy, and whether a topic was recreated, truncated or written to by others",
        )
    if source is not None and (refusal := _refuse_longer_copy(blank, evidence, source)):
        return refusal
    if blank.position < target.low:
        return blank.refused(
            Basis.EXPIRED,
            f"the answer {blank.position} lies below the target's first offset {target.low}: "
            f"the target has deleted records that the job has yet to read, or its copy began later",
        )
    return None


def _refuse_longer_copy(
    blank: Translation, evidence: IdentityEvidence, source: Watermarks
) -> Translation | None:
    """Refuse a copy that ends after its original; its end was read first."""
    if evidence.is_way_home and source.high > evidence.target.high:
        return blank.refused(
            Basis.OTHER_WRITER,
            f"the cluster that the job leaves ends at {source.high}, after {evidence.target.high} "
            f"at home: what was written there since is not copied back. Copy it back with the "
            f"same offsets, and go home by the connection of that copying",
        )
    if not evidence.is_way_home and evidence.target.high > source.high:
        return blank.refused(
            Basis.NOT_IDENTICAL,
            f"the topics are not identical copies: the target ends at {evidence.target.high}, "
            f"after the source's end {source.high}: others have written to it, or the source has "
            f"lost records (an unclean leader election) or was recreated",
        )
    return None


def _refuse_not_copied(blank: Translation, evidence: IdentityEvidence) -> Translation | None:
    target, stable = evidence.target, evidence.source_stable
    if blank.position > target.high:
        return blank.refused(
            Basis.NOT_REPLICATED_YET,
            f"the answer {blank.position} lies above the target's end {target.high}: wait until "
            f"the copying has come as far. If it never will, set read_source=False: then the "
            f"target's end is the answer",
        )
    decided = blank.position if stable is None else min(blank.position, stable)
    if evidence.target_stable < decided:
        return blank.refused(
            Basis.OPEN_TRANSACTION,
            f"a transaction is open on the target from {evidence.target_stable} on, and the "
            f"source has decided all before {decided}: wait until the end of the transaction is "
            f"copied; if it never will be, {ABORT_STEP}",
        )
    return None


def _proven(
    blank: Translation, evidence: IdentityEvidence, source: Watermarks
) -> Translation | None:
    """Return the exact answer, if the compared records or both ends prove it."""
    position, compared = blank.position, evidence.compared
    if compared.proves(position):
        # The ranges are those that were asked for: they may end in offsets without a record.
        records = "1 record is" if compared.count == 1 else f"{compared.count} records are"
        reason = (
            f"the copy keeps offsets: {records} the same on both clusters by offset, key, value, "
            f"timestamp and headers, also around the position: the answer is {position}"
        )
        return _answer(blank, evidence, Basis.IDENTITY, reason, low=position, high=position)
    if position == source.high == evidence.target.high:
        reason = (
            f"the source has no record from it on, and both clusters end there: the answer is "
            f"{position}"
        )
        return _answer(blank, evidence, Basis.DRAINED, reason, low=position, high=position)
    return None


def _without_source(blank: Translation, evidence: IdentityEvidence) -> Translation:
    """Answer from the target alone: the position may lie above all that was copied."""
    end = evidence.target.high
    return _unproven(blank, evidence, min(blank.position, end))


def _unproven(blank: Translation, evidence: IdentityEvidence, target: int) -> Translation:
    """Answer by the user's word, else from the last offset that is known to lie before."""
    compared, end = evidence.compared, evidence.target.high
    why = _why_unproven(evidence)
    clamped = f", the target's end ({blank.position} is above it)" if blank.position > end else ""
    if evidence.sole_writer:
        reason = (
            f"not compared ({why}): by your word (sole_writer) the copy keeps offsets: the answer "
            f"is {target}{clamped}"
        )
        return _answer(blank, evidence, Basis.BY_WORD, reason, low=target, high=None)
    anchor = compared.anchor_before(target)
    step = (
        "give your word that only the copying has written to the target (sole_writer), or choose "
        "where to start (on_unmapped)"
    )
    if anchor is None and evidence.target.low > 0:
        return blank.refused(
            Basis.NOT_COMPARED,
            f"nothing proves that the copy keeps offsets ({why}), and the target has deleted its "
            f"records below {evidence.target.low}: {step}",
        )
    low = 0 if anchor is None else anchor + 1
    begin = "the target's beginning" if anchor is None else f"the last compared record {anchor}"
    basis = Basis.NOT_COMPARED if anchor is None else Basis.IDENTITY
    reason = f"lies after {begin} ({why}): the answer is {low} or later; {step} for a closer one"
    return _answer(blank, evidence, basis, reason, low=low, high=compared.anchor_from(target))


def _why_unproven(evidence: IdentityEvidence) -> str:
    if evidence.source is None:
        return "the source was not asked"
    if evidence.compared.count:
        return "equal records around it can't be told apart"
    return "no record was compared: see max_evidence_bytes, and whether both clusters hold records"


def _answer(
    blank: Translation,
    evidence: IdentityEvidence,
    basis: Basis,
    reason: str,
    *,
    low: int,
    high: int | None,
) -> Translation:
    open_from = evidence.open_from
    if open_from is not None:
        at_risk = evidence.target.high - max(low, open_from)
        reason += (
            f"; a transaction is open on the target from {open_from} on: a read_committed job "
            f"stops there until its end is copied"
        )
        if evidence.source is None:
            # No end comes any more, and an abort drops what the source may have committed.
            basis = Basis.OPEN_TRANSACTION
            reason += (
                f", which will not happen; {ABORT_STEP}, and a read_committed job then loses up "
                f"to {at_risk} offsets that the source may have committed"
            )
    return replace(
        blank,
        status=Status.EXACT if low == high else Status.BOUNDED,
        basis=basis,
        reason=reason,
        target=low,
        low=low,
        high=high,
    )
