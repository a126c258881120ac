"""Finds out whether a topic on the target is a copy of the source's: their records tell."""

from collections.abc import Mapping, Sequence

from airflow_mm2_offsets.core import Evidence, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.kafka.ranges import OffsetRange, RangeRecord, read_ranges
from airflow_mm2_offsets.service.pair import ClusterPair
from airflow_mm2_offsets.service.windows import contents

_PROBED_BYTES = 64 * 2**20
"""How many bytes of single records are read on either side at most."""


def find_contradictions(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[TopicPartition, Evidence],
    positions: Mapping[TopicPartition, int],
) -> dict[TopicPartition, SyncPoint]:
    """Return the partitions of which a sync's record is not the same on both clusters.

    Of each partition the syncs around the position are looked at, the last one and some older ones:
    one of them after the other, until both clusters deliver a record.
    """
    found: dict[TopicPartition, SyncPoint] = {}
    left = {
        key: _held_syncs(index.partitions.get(key), position, evidence[key])
        for key, position in positions.items()
    }
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


def are_strangers(source: RecordWindow, target: RecordWindow) -> bool:
    """Tell whether both hold records from one sync to another, and none of them in common."""
    originals, copies = ({content for _, content in each.records} for each in (source, target))
    return bool(originals and copies) and originals.isdisjoint(copies)


def _held_syncs(syncs: PartitionSyncs | None, position: int, evidence: Evidence) -> list[SyncPoint]:
    source, target = evidence.source, evidence.target
    if not syncs or source is None or target is None:
        return []
    bracket = syncs.segments.bracket(position)
    # Where a cluster has no record of these any more, older ones tell: few, from everywhere.
    older = (syncs[max(0, len(syncs) - 2**power)] for power in range(len(syncs).bit_length() + 1))
    near = (bracket.before, bracket.rewind, bracket.after, *older)
    return [
        sync
        for sync in dict.fromkeys(filter(None, near))
        if source.low <= sync.upstream < source.high and target.low <= sync.downstream < target.high
    ]


def _differ(originals: Sequence[RangeRecord], copies: Sequence[RangeRecord]) -> bool:
    timed = not any(each.is_append_time for each in copies)
    one, other = (
        [content for _, content in contents(side, timed=timed)] for side in (originals, copies)
    )
    return one != other
