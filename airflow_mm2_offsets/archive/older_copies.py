"""Bounds by the source's end what was copied before a first sync; ``history`` calls it.

A run reads the syncs first and the watermarks of the source afterwards. If it has seen a sync, the
source's end that it noted was read after the sync was written, and after all that was copied before
it: those records lie below that end. A later run says the same, with a higher end. So the order of
clocks does not count, and neither does a compaction that keeps only some runs.

No id need be compared here. The syncs of a recreated topic are cut, and each run counted here comes
after the cut.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_mm2_offsets.archive.codec import Segment
from airflow_mm2_offsets.archive.index_builder import groups
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.core.lows import has_room_before

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs


def with_source_ends(index: SyncIndex, archived: "ArchivedSyncs") -> SyncIndex:
    """Return the index of an archive, with ``Beginning.source_end`` where it counts.

    Only then are watermarks read.
    """
    ends = _source_ends(archived, _first_offsets(index, archived))
    if not ends:
        return index
    with_end = {each: index.partitions[each].with_source_end(end) for each, end in ends.items()}
    return SyncIndex.of_partitions({**index.partitions, **with_end})


def _first_offsets(
    index: SyncIndex, archived: "ArchivedSyncs"
) -> dict[TopicPartition, tuple[int, int]]:
    """Return where the first sync of each partition with older copies is.

    That is the index of its incarnation of the syncs topic, and its offset there.
    """
    columns, offsets = archived.columns, {}
    for topic_partition, start, stop in groups(columns):
        syncs = index.partitions[topic_partition]
        if has_room_before(syncs):
            # A sync may be repeated, or be like one of a target topic that was recreated.
            upstream, downstream = columns.upstream[start:stop], columns.downstream[start:stop]
            same = (upstream == syncs.first.upstream) & (downstream == syncs.first.downstream)
            at = start + int(np.flatnonzero(same)[-1])
            offsets[topic_partition] = (
                int(archived.incarnation_index[at]),
                int(columns.offset[at]),
            )
    return offsets


def _source_ends(
    archived: "ArchivedSyncs", firsts: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, int]:
    """Return the source's end that the earliest run noted after it had read a partition's sync."""
    ends: dict[TopicPartition, int] = {}
    incarnations = {archived.incarnations[number]: number for number, _ in firsts.values()}
    for name in sorted(archived.segments):
        number = incarnations.get(name.incarnation)
        offsets = {
            each: offset
            for each, (of, offset) in firsts.items()
            if of == number and offset < name.stop and each not in ends
        }
        for topic_partition, end in _ends_in(archived.segments[name], offsets):
            # Two runs may have begun in the same millisecond.
            ends[topic_partition] = max(end, ends.get(topic_partition, 0))
    return ends


def _ends_in(
    segment: Segment, offsets: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the source's end by the first run of a file that has read beyond an offset."""
    if not offsets:
        return
    runs = sorted(segment.header.runs, key=lambda run: (run.stop, run.time))
    stops = [run.stop for run in runs]
    times = {each: runs[bisect_right(stops, at)].time for each, at in offsets.items()}
    table = segment.watermarks().select(["topic", "partition", "time", "source_high"])
    needed = pc.is_in(table.column("time"), value_set=pa.array(sorted({*times.values()})))
    rows = table.filter(needed).to_pydict()
    for topic, partition, time, end in zip(*rows.values(), strict=True):
        topic_partition = TopicPartition(topic, partition)
        if end is not None and times.get(topic_partition) == time:
            yield topic_partition, end
