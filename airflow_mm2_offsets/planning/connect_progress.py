"""Looks for the records that Connect has committed as copied; a plan asks for it."""

from collections.abc import Mapping

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.bounds import lacks_records
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.kafka.ranges import OffsetRange, read_ranges
from airflow_mm2_offsets.planning.record_evidence import MAX_WINDOW, are_timed, contents


def find_unconfirmed(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[TopicPartition, Evidence],
    *,
    max_bytes: int,
) -> set[TopicPartition]:
    """Return the partitions of which a committed record is not on the target after the last sync.

    Connect's offset may have been altered after MirrorMaker 2 went back. If others have written as
    many target offsets since, it looks as if all up to there had been copied again.
    """
    ranges = {
        key: both
        for key, each in evidence.items()
        if (both := _ranges_since(index.partitions.get(key), each))
    }
    originals = read_ranges(
        pair.source, {key: source for key, (source, _) in ranges.items()}, max_bytes=max_bytes
    )
    copies = read_ranges(
        pair.target,
        {pair.on_target(key): ranges[key][1] for key in originals},
        max_bytes=max_bytes,
    )
    unconfirmed = set()
    for key, records in originals.items():
        if (found := copies.get(pair.on_target(key))) is None:
            continue
        timed = are_timed(found)
        there = {content for _, content in contents(found, timed=timed)}
        if any(content not in there for _, content in contents(records, timed=timed)):
            unconfirmed.add(key)
    return unconfirmed


def _ranges_since(
    syncs: PartitionSyncs | None, evidence: Evidence
) -> tuple[OffsetRange, OffsetRange] | None:
    """Return the offsets after the last sync on both clusters, where Connect's offset counts."""
    copied_to, target = evidence.copied_to, evidence.target
    if not syncs or copied_to is None or target is None or evidence.changed_records:
        return None
    last = syncs.last
    source = OffsetRange(last.upstream + 1, copied_to)
    since = OffsetRange(last.downstream + 1, target.high - 1)
    if not source.size or lacks_records(source.size, since.size):
        return None
    return (source, since) if max(source.size, since.size) <= MAX_WINDOW else None
