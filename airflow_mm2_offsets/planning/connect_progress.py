"""Looks on the target for the records that Connect has committed as copied.

``EvidenceCollector`` calls it.
"""

from collections.abc import Mapping

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.bounds import lacks_records
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.kafka.ranges import OffsetRange, read_ranges
from airflow_mm2_offsets.planning.record_evidence import are_timed, contents
from airflow_mm2_offsets.planning.record_ranges import MAX_WINDOW


def find_unconfirmed(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[TopicPartition, Evidence],
    *,
    max_bytes: int,
) -> set[TopicPartition]:
    """Return the partitions that lack a committed record on the target after the last sync.

    Connect's offset may have been altered after a rewind. If others have written as many target
    offsets since, it looks as if MirrorMaker 2 had copied all records up to there again.
    """
    ranges = {
        key: ((key, ranges_since[0]), (pair.on_target(key), ranges_since[1]))
        for key, partition_evidence in evidence.items()
        if (ranges_since := _ranges_since(index.partitions.get(key), partition_evidence))
    }
    originals = read_ranges(
        pair.source, {key: source for key, (source, _) in ranges.items()}, max_bytes=max_bytes
    )
    copies = read_ranges(
        pair.target, {key: ranges[key][1] for key in originals}, max_bytes=max_bytes
    )
    unconfirmed = set()
    for key, records in originals.items():
        if (copied := copies.get(key)) is None:
            continue
        timed = are_timed(copied)
        on_target = {content for _, content in contents(copied, timed=timed)}
        if any(content not in on_target for _, content in contents(records, timed=timed)):
            unconfirmed.add(key)
    return unconfirmed


def _ranges_since(
    syncs: PartitionSyncs | None, evidence: Evidence
) -> tuple[OffsetRange, OffsetRange] | None:
    """Return the offsets after the last sync on both clusters; None if they prove nothing."""
    copied_to, target = evidence.copied_to, evidence.target
    if not syncs or copied_to is None or target is None or evidence.changed_records:
        return None
    last = syncs.last
    on_source = OffsetRange(last.upstream + 1, copied_to)
    on_target = OffsetRange(last.downstream + 1, target.high - 1)
    if not on_source.size or lacks_records(on_source.size, on_target.size):
        return None
    is_small = max(on_source.size, on_target.size) <= MAX_WINDOW
    return (on_source, on_target) if is_small else None
