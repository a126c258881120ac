"""The inverse translation: a position on B back to A, by the syncs of MirrorMaker 2 from A to B.

The job was moved from A, where it had processed every record before p0, to B, where it began at
q0. Now it stands on B at q. A record of A is *needed* if it lies at p0 or after it, MirrorMaker 2
copies it, and no copy of it lies in ``[q0, q)``. A copy below q0 does not count: the job has not
read it. The truth ``h(q)`` is the first needed record, or A's end. An answer above it loses
records; below it, records are read again. ``planning`` calls ``translate_back``.

Let (u, d) be the last sync with ``q0 <= d < q``. Then ``u + 1 <= h(q)``, unless MirrorMaker 2 went
back after q to before u + 1. The reasons:

- The first move's answer q0 is proven: of each record from p0 on that had a copy at that time, the
  highest copy lies at q0 or after it. Records copied later lie behind q0 anyway.
- MirrorMaker 2 copies in order and goes back only to what it has passed. So when it wrote d, every
  record up to u had a copy. Of an older epoch that has copied further, nothing is needed to know:
  the last sync's own epoch alone decides.
- A rewind after q may hold the highest copies of records before u. If it was there at the first
  move, the copies that the job passed may lie below q0. Then only p0 is known.

A sync (u, q) says the same of every record before u. Offsets that were altered by REST to skip
records (a *jump*) change nothing: what was skipped for good has no copy, and B's job could not read
it either; what only an older epoch has copied was copied at q0 or after it, by the first reason.
Of a *second life* the copies of the first one lie below q0 or were read: they are never needed.
One assumption is left: one request in flight (Connect's default) or idempotence. Where Connect and
both clusters' records could be read, the answer does not rest on it.
"""

from bisect import bisect_left
from dataclasses import replace

from airflow_mm2_offsets.core.bounds import begins_epoch
from airflow_mm2_offsets.core.bracket import SyncPoint, steps_between
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.inverse_content import ContentBounds, bound_by_content
from airflow_mm2_offsets.core.inverse_evidence import InverseEvidence
from airflow_mm2_offsets.core.inverse_refusals import (
    refuse_another_writer,
    refuse_before,
    refuse_outside_home,
)
from airflow_mm2_offsets.core.positions import MAX_OFFSET, TopicPartition
from airflow_mm2_offsets.core.result import Basis, Status, Translation

NO_SYNCS = PartitionSyncs()


def translate_back(
    syncs: PartitionSyncs | None,
    partition: TopicPartition,
    position: int,
    evidence: InverseEvidence,
) -> Translation:
    """Translate one position on B to A.

    Args:
        syncs: The syncs of the partition, from A to B.
        partition: By B's name.
        position: The next offset to read on B.
        evidence: What is known beside the syncs.
    """
    blank = Translation(
        topic=partition.topic,
        partition=partition.partition,
        position=position,
        status=Status.REFUSED,
        basis=Basis.FIRST_PLAN,
        reason="",
    )
    refusal = refuse_another_writer(blank, evidence) or refuse_before(blank, evidence)
    if refusal is not None:
        return refusal
    if position == evidence.begin:
        answer = _answer(blank, evidence.base, evidence.base, Basis.FIRST_PLAN)
        return refuse_outside_home(answer, evidence)
    bounds = bound_by_content(_by_syncs(position, syncs or NO_SYNCS, evidence), position, evidence)
    answer = _answer(blank, bounds.low, max(bounds.low, bounds.high), bounds.basis)
    return refuse_outside_home(answer, evidence)


def search_from(
    syncs: PartitionSyncs | None, position: int, evidence: InverseEvidence
) -> tuple[int, int]:
    """Return from where on A and on B to read the records that can settle a position."""
    bounds = _by_syncs(position, syncs or NO_SYNCS, evidence)
    return bounds.low, bounds.read_from


def _by_syncs(position: int, syncs: PartitionSyncs, evidence: InverseEvidence) -> ContentBounds:
    """Return the bounds that the syncs prove, or those of the first move."""
    at = bisect_left(syncs.downstream, position)
    after = syncs[at] if at < len(syncs) else None
    is_sync = after is not None and after.downstream == position
    has_before = at > 0 and syncs.downstream[at - 1] >= evidence.begin
    last = at if is_sync else at - 1
    if not is_sync and not has_before:
        return _by_first_move(syncs, at, evidence)
    low = syncs.upstream[last] + (not is_sync)
    if any(start > last and syncs.upstream[start] < low for start in syncs.starts):
        return _by_first_move(syncs, at, evidence)
    high, is_monotone = evidence.home.high, _is_monotone(syncs, at, evidence)
    if is_monotone and after and not (has_before and _has_extras(syncs[at - 1], after)):
        high = min(high, after.upstream)
    return ContentBounds(
        low=max(low, evidence.base),
        high=high,
        basis=Basis.SYNC if is_sync else Basis.BETWEEN_SYNCS,
        read_from=syncs.downstream[last - 1] + 1 if is_sync and has_before else _from(syncs, last),
        is_monotone=is_monotone,
        next_sync=_next_sync(syncs, at, low),
    )


def _next_sync(syncs: PartitionSyncs, at: int, low: int) -> int:
    """Return a record that the job has not read, nor any after it, by the sync ``at``."""
    is_rewind = at in syncs.starts[1:]
    return MAX_OFFSET if at == len(syncs) or is_rewind else max(low, syncs.upstream[at])


def _from(syncs: PartitionSyncs, last: int) -> int:
    return syncs.downstream[last] + 1


def _is_monotone(syncs: PartitionSyncs, stop: int, evidence: InverseEvidence) -> bool:
    """Tell whether nothing shows that the job has read records twice before the sync ``stop``."""
    begin = bisect_left(syncs.downstream, evidence.begin)
    if any(begin < start <= stop for start in syncs.starts):
        return False
    if begin == len(syncs):
        return True
    # The job began here, with the record at ``base`` if nothing was to be read again.
    return not _has_extras(SyncPoint(evidence.base, evidence.begin), syncs[begin])


def _has_extras(before: SyncPoint, after: SyncPoint) -> bool:
    return begins_epoch(*steps_between(before, after))


def _by_first_move(syncs: PartitionSyncs, at: int, evidence: InverseEvidence) -> ContentBounds:
    return ContentBounds(
        low=evidence.base,
        high=evidence.home.high,
        basis=Basis.FIRST_PLAN,
        read_from=evidence.begin,
        next_sync=_next_sync(syncs, at, evidence.base),
        can_walk=at < len(syncs) or not evidence.home.low,
    )


def _answer(blank: Translation, low: int, high: int, basis: Basis) -> Translation:
    words = f"the answer is {low}" if low == high else f"the answer is from {low} to {high}"
    match basis:
        case Basis.FIRST_PLAN:
            reason = f"by the plan of the first move, everything before {low} was processed"
        case Basis.CONTENT:
            reason = "the records that the job has read were found on the cluster it returns to"
        case _:
            reason = "by the syncs around it, everything before was copied and read"
    return replace(
        blank,
        status=Status.EXACT if low == high else Status.BOUNDED,
        basis=basis,
        reason=f"{reason}: {words}",
        target=low,
        low=low,
        high=high,
    )
