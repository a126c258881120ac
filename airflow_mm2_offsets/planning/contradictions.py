"""Finds out whether a topic on the target is a copy of the source's: their records tell."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.kafka.ranges import OffsetRange, RangeRecord, read_ranges
from airflow_mm2_offsets.planning.record_evidence import contents

_PROBED_BYTES = 64 * 2**20
"""How many bytes of single records are read on either side at most."""


def find_contradictions(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[TopicPartition, Evidence],
    positions: Mapping[TopicPartition, int],
) -> dict[TopicPartition, SyncPoint]:
    """Return the partitions of which a sync's record is not the same on both clusters.

    Of each partition two syncs are compared. One is of the newest incarnation of the target topic:
    one around the position, else the last one or some older one. The other is the oldest that both
    clusters still hold: if the target topic was recreated and its new log has grown past the old
    syncs, these fit by number and precede all that are of the new log.
    """
    syncs = {
        key: (partition, position)
        for key, position in positions.items()
        if (partition := index.partitions.get(key))
    }
    newest = {key: _newest_held(*each, evidence[key]) for key, each in syncs.items()}
    found = _find_differing(pair, newest)
    oldest = {key: _oldest_held(each[0], evidence[key]) for key, each in syncs.items()}
    is_other = {key for key in set(syncs) - set(found) if oldest[key][:1] != newest[key][:1]}
    return found | _find_differing(pair, {key: oldest[key] for key in is_other})


def _find_differing(
    pair: ClusterPair, candidates: Mapping[TopicPartition, list[SyncPoint]]
) -> dict[TopicPartition, SyncPoint]:
    """Return the syncs that differ: of each partition the first one that both clusters deliver."""
    found: dict[TopicPartition, SyncPoint] = {}
    left = {key: [*syncs] for key, syncs in candidates.items()}
    while left := {key: syncs for key, syncs in left.items() if syncs}:
        syncs = {key: each.pop(0) for key, each in left.items()}
        for key, (originals, copies) in _read_syncs(pair, syncs).items():
            if originals and copies:
                left[key] = []
                if _differ(originals, copies):
                    found[key] = syncs[key]
    return found


def _read_syncs(
    pair: ClusterPair, syncs: Mapping[TopicPartition, SyncPoint]
) -> dict[TopicPartition, tuple[Sequence[RangeRecord], Sequence[RangeRecord]]]:
    """Return what both clusters deliver of a sync: one record, or none.

    Also of a transaction that is open or aborted: MirrorMaker 2 has copied it all the same.
    """
    names = {key: pair.on_target(key) for key in syncs}
    copies = read_ranges(
        pair.target,
        {names[key]: OffsetRange(sync.downstream, sync.downstream) for key, sync in syncs.items()},
        max_bytes=_PROBED_BYTES,
        isolation="read_uncommitted",
    )
    originals = read_ranges(
        pair.source,
        {key: OffsetRange(sync.upstream, sync.upstream) for key, sync in syncs.items()},
        max_bytes=_PROBED_BYTES,
        isolation="read_uncommitted",
    )
    return {key: (originals.get(key, ()), copies.get(names[key], ())) for key in syncs}


def find_contradiction_in(
    source: RecordWindow, target: RecordWindow, syncs: PartitionSyncs, position: int
) -> SyncPoint | None:
    """Return a sync that the records which were read around a position contradict."""
    before = syncs.segments.bracket(position).before
    if before and _is_of_another(before, source, target):
        return before
    return syncs.last if _are_strangers(source, target) else None


def _are_strangers(source: RecordWindow, target: RecordWindow) -> bool:
    """Tell whether both hold records from one sync to another, and none of them in common."""
    originals, copies = ({content for _, content in each.records} for each in (source, target))
    return bool(originals and copies) and originals.isdisjoint(copies)


def _is_of_another(sync: SyncPoint, source: RecordWindow, target: RecordWindow) -> bool:
    """Tell whether the copy at a sync is of a record that the source has elsewhere.

    Both windows begin at the sync. Its own record is gone from the source, so that nothing can be
    compared; the record at its target offset is the only one there that equals a later record of
    the source, which has it once.
    """
    content = target.content_at(sync.downstream)
    if content is None or source.content_at(sync.upstream) is not None:
        return False
    times = ([each for _, each in window.records].count(content) for window in (source, target))
    return all(each == 1 for each in times)


def _newest_held(syncs: PartitionSyncs, position: int, evidence: Evidence) -> list[SyncPoint]:
    bracket = syncs.segments.bracket(position)
    # Where a cluster has no record of these any more, older ones tell: few, from everywhere.
    older = (syncs[max(0, len(syncs) - 2**power)] for power in range(len(syncs).bit_length() + 1))
    near = (bracket.before, bracket.rewind, bracket.after, *older)
    return [sync for sync in dict.fromkeys(filter(None, near)) if _is_held(sync, evidence)]


def _oldest_held(syncs: PartitionSyncs, evidence: Evidence) -> list[SyncPoint]:
    source, target = evidence.source, evidence.target
    if source is None or target is None:
        return []
    first = bisect_left(syncs.downstream, target.low)
    for start, stop in syncs.epochs:
        at = bisect_left(syncs.upstream, source.low, max(first, start), max(first, stop))
        if at < stop:
            # Compaction may have removed its record on one side: few, from everywhere.
            newer = (at + 2**power - 1 for power in range((len(syncs) - at).bit_length()))
            return [syncs[each] for each in newer if _is_held(syncs[each], evidence)]
    return []


def _is_held(sync: SyncPoint, evidence: Evidence) -> bool:
    source, target = evidence.source, evidence.target
    if source is None or target is None:
        return False
    return source.low <= sync.upstream < source.high and target.low <= sync.downstream < target.high


def _differ(originals: Sequence[RangeRecord], copies: Sequence[RangeRecord]) -> bool:
    timed = not any(each.is_append_time for each in copies)
    one, other = (
        [content for _, content in contents(side, timed=timed)] for side in (originals, copies)
    )
    return one != other
