"""Looks on the target for the records after the last sync: how far MirrorMaker 2 has come.

``EvidenceCollector`` calls it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, TopicPartition, Watermarks
from airflow_mm2_offsets.core.evidence import Content, WindowRecord
from airflow_mm2_offsets.core.rules import segments_with
from airflow_mm2_offsets.kafka.ranges import OffsetRange, PartitionRange, read_ranges
from airflow_mm2_offsets.planning.record_evidence import (
    are_timed,
    contents,
    read_source_ranges,
)
from airflow_mm2_offsets.planning.record_ranges import MAX_WINDOW


def find_progress(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[TopicPartition, Evidence],
    *,
    max_bytes: int,
) -> dict[TopicPartition, tuple[int, Watermarks]]:
    """Return up to which source offset each record after the last sync is on the target.

    Only where the syncs and Connect leave that open. What Connect has committed is checked, too:
    its offset may have been altered, and other writers' offsets may pass for the copies.

    Returns:
        By partition the source offset, at least that of the last sync, and the target's watermarks
        when its records were read: after the source's end that ``evidence`` names.
    """
    ends = dict(_open_ends(index, evidence))
    watermarks = pair.target.watermarks(map(pair.on_target, ends))
    ranges: dict[TopicPartition, PartitionRange] = {}
    for key, end in ends.items():
        last, high = index.partitions[key].last, watermarks[pair.on_target(key)].high
        on_target = OffsetRange(last.downstream + 1, high - 1)
        if max(on_target.size, end - 1 - last.upstream) <= MAX_WINDOW:
            ranges[key] = pair.on_target(key), on_target
    copies = read_ranges(pair.target, ranges, max_bytes=max_bytes)
    on_source = {
        key: (key, OffsetRange(index.partitions[key].last.upstream + 1, ends[key] - 1))
        for key in copies
    }
    progress = {}
    for key, (read, originals) in read_source_ranges(pair, on_source, max_bytes=max_bytes).items():
        timed = are_timed(copies[key])
        copied = Counter(content for _, content in contents(copies[key], timed=timed))
        missing = _missing(contents(originals, timed=timed), copied)
        progress[key] = next(missing, read.last + 1) - 1, watermarks[pair.on_target(key)]
    return progress


def _missing(originals: Iterable[WindowRecord], copied: Counter[Content]) -> Iterator[int]:
    """Yield the offsets of the originals that have no copy; of equal ones, as many as lack one."""
    for at, content in originals:
        copied[content] -= 1
        if copied[content] < 0:
            yield at


def _open_ends(
    index: SyncIndex, evidence: Mapping[TopicPartition, Evidence]
) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the source's end of each partition where older copies of a record may count."""
    for key, known in evidence.items():
        syncs = index.partitions.get(key)
        if not syncs or known.source_end is None or known.changed_records or known.drained:
            continue
        if known.committed is not None or not segments_with(syncs, known).has_caught_up:
            yield key, known.source_end
