"""Finds out by their records whether a topic on the target is a copy of the source's.

``EvidenceCollector`` calls it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, TopicPartition, Translation
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import Content, RecordWindow
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.kafka.ranges import OffsetRange, RangeRecord, read_ranges
from airflow_mm2_offsets.planning.record_evidence import are_timed, contents

_PROBED_BYTES = 64 * 2**20
"""The most bytes of single records that are read of either cluster."""


def find_contradictions(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[PartitionPosition, Evidence],
) -> dict[PartitionPosition, SyncPoint]:
    """Return a sync for each position whose record differs between the clusters.

    Two syncs are compared for each position. The first is of the newest incarnation of the target
    topic: a sync around the position, else the last one or an older one. The second is the oldest
    sync whose record both clusters still hold: if the target topic was recreated and its new log
    has grown past the old syncs, their offsets exist there, before those of the new syncs.
    """
    newest = _newest(index, evidence)
    contradictions = _differing(_compare(pair, newest))
    oldest = {
        key: _oldest_on_both(index.partitions[key.topic_partition], evidence[key]) for key in newest
    }
    others = {
        key: syncs
        for key, syncs in oldest.items()
        if key not in contradictions and syncs[:1] != newest[key][:1]
    }
    return contradictions | _differing(_compare(pair, others))


def find_stale_lows(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[PartitionPosition, Evidence],
    answers: Iterable[Translation],
) -> dict[PartitionPosition, SyncPoint]:
    """Return the sync that an answer's lower bound rests on, where its record differs.

    Where MirrorMaker 2 went back, or the target was truncated, older syncs answer for what the
    newer ones have not copied. The target may hold another record at their offsets by now.
    """
    at_offsets: dict[TopicPartition, dict[int, SyncPoint]] = {}
    candidates: dict[PartitionPosition, list[SyncPoint]] = {}
    for answer in answers:
        key = answer.topic_partition
        syncs = index.partitions.get(key)
        if answer.low is None or not syncs or len(syncs.starts) == 1:
            continue
        known = at_offsets.setdefault(key, _by_target(syncs))
        position = PartitionPosition(key, answer.position)
        near = filter(None, map(known.get, (answer.low - 1, answer.low)))
        candidates[position] = [each for each in near if _is_on_both(each, evidence[position])]
    return _differing(_compare(pair, candidates))


def _by_target(syncs: PartitionSyncs) -> dict[int, SyncPoint]:
    points = map(SyncPoint, syncs.upstream, syncs.downstream)
    return {each.downstream: each for each in points}


def find_confirmation(
    pair: ClusterPair, index: SyncIndex, evidence: Mapping[PartitionPosition, Evidence]
) -> PartitionPosition | None:
    """Return a position around which a sync has the same record on both clusters, if any has."""
    compared = _compare(pair, _newest(index, evidence))
    return next((key for key, (_, is_same) in compared.items() if is_same), None)


def _differing(
    compared: Mapping[PartitionPosition, tuple[SyncPoint, bool]],
) -> dict[PartitionPosition, SyncPoint]:
    return {key: sync for key, (sync, is_same) in compared.items() if not is_same}


def _compare(
    pair: ClusterPair, candidates: Mapping[PartitionPosition, list[SyncPoint]]
) -> dict[PartitionPosition, tuple[SyncPoint, bool]]:
    """Return for each position the first sync that both clusters deliver, and if it is the same."""
    compared: dict[PartitionPosition, tuple[SyncPoint, bool]] = {}
    untested = {key: [*syncs] for key, syncs in candidates.items()}
    while untested := {key: syncs for key, syncs in untested.items() if syncs}:
        next_syncs = {key: syncs.pop(0) for key, syncs in untested.items()}
        for key, (originals, copies) in _read_syncs(pair, next_syncs).items():
            if originals and copies:
                untested[key] = []
                timed = are_timed(copies)
                is_same = _content(originals, timed=timed) == _content(copies, timed=timed)
                compared[key] = next_syncs[key], is_same
    return compared


def _read_syncs(
    pair: ClusterPair, syncs: Mapping[PartitionPosition, SyncPoint]
) -> dict[PartitionPosition, tuple[Sequence[RangeRecord], Sequence[RangeRecord]]]:
    """Return each sync's record on source and target: one record or no record on each side.

    A sync's record was copied, even if its transaction is open or aborted: it is read all the same.
    """
    copies = read_ranges(
        pair.target,
        {
            key: (pair.on_target(key.topic_partition), _single(sync.downstream))
            for key, sync in syncs.items()
        },
        max_bytes=_PROBED_BYTES,
        isolation="read_uncommitted",
    )
    originals = read_ranges(
        pair.source,
        {key: (key.topic_partition, _single(sync.upstream)) for key, sync in syncs.items()},
        max_bytes=_PROBED_BYTES,
        isolation="read_uncommitted",
    )
    return {key: (originals.get(key, ()), copies.get(key, ())) for key in syncs}


def _single(offset: int) -> OffsetRange:
    return OffsetRange(offset, offset)


def find_contradiction_in(
    source: RecordWindow, target: RecordWindow, syncs: PartitionSyncs, position: int
) -> SyncPoint | None:
    """Return a sync that is contradicted by the records around a position."""
    before = syncs.segments.bracket(position).before
    if before and _copies_another_record(before, source, target):
        return before
    # After the last sync, MirrorMaker 2 may not have copied any record yet.
    is_synced = position <= syncs.last.upstream
    return syncs.last if is_synced and _have_no_record_in_common(source, target) else None


def _have_no_record_in_common(source: RecordWindow, target: RecordWindow) -> bool:
    """Tell whether both windows hold records, and no record of one is in the other."""
    originals, copies = ({content for _, content in side.records} for side in (source, target))
    return bool(originals and copies) and originals.isdisjoint(copies)


def _copies_another_record(sync: SyncPoint, source: RecordWindow, target: RecordWindow) -> bool:
    """Tell whether the record at a sync's target offset is the copy of a later source record.

    Both windows begin at the sync. The sync's own record is gone from the source, so the two can't
    be compared. The record at the target offset occurs once in each window.
    """
    content = target.content_at(sync.downstream)
    if content is None or source.content_at(sync.upstream) is not None:
        return False
    return all(
        sum(other == content for _, other in window.records) == 1 for window in (source, target)
    )


def _newest(
    index: SyncIndex, evidence: Mapping[PartitionPosition, Evidence]
) -> dict[PartitionPosition, list[SyncPoint]]:
    return {
        key: _newest_on_both(syncs, key.position, each)
        for key, each in evidence.items()
        if (syncs := index.partitions.get(key.topic_partition))
    }


def _newest_on_both(syncs: PartitionSyncs, position: int, evidence: Evidence) -> list[SyncPoint]:
    bracket = syncs.segments.bracket(position)
    # A cluster may have deleted the records of these: a few older syncs, from the whole log.
    older = (syncs[max(0, len(syncs) - 2**power)] for power in range(len(syncs).bit_length() + 1))
    candidates = filter(None, (bracket.before, bracket.rewind, bracket.after, *older))
    return [sync for sync in dict.fromkeys(candidates) if _is_on_both(sync, evidence)]


def _oldest_on_both(syncs: PartitionSyncs, evidence: Evidence) -> list[SyncPoint]:
    source, target = evidence.source, evidence.target
    if source is None or target is None:
        return []
    first = bisect_left(syncs.downstream, target.low)
    for start, stop in syncs.epochs:
        at = bisect_left(syncs.upstream, source.low, max(first, start), max(first, stop))
        if at < stop:
            # Compaction may have removed its record on one side: a few newer ones, from everywhere.
            newer = (syncs[at + 2**power - 1] for power in range((len(syncs) - at).bit_length()))
            return [sync for sync in newer if _is_on_both(sync, evidence)]
    return []


def _is_on_both(sync: SyncPoint, evidence: Evidence) -> bool:
    """Tell whether a sync's record lies within the watermarks of both clusters."""
    source, target = evidence.source, evidence.target
    if source is None or target is None:
        return False
    return source.low <= sync.upstream < source.high and target.low <= sync.downstream < target.high


def _content(records: Sequence[RangeRecord], *, timed: bool) -> list[Content]:
    return [content for _, content in contents(records, timed=timed)]
