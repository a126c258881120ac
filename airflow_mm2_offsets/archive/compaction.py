"""Replaces many files by one, and drops old syncs; ``store`` calls it.

A sync is dropped only if it and a later sync of its partition are both older than the retention
time, and no position from the later one on needs it, by the rule of translation. Positions at or
after the first sync left keep their answers; earlier ones are refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_mm2_offsets.archive.codec import Segment, encode
from airflow_mm2_offsets.archive.columns import NUMBERS
from airflow_mm2_offsets.archive.filenames import FileName, covered
from airflow_mm2_offsets.archive.history import ArchivedSyncs, assemble
from airflow_mm2_offsets.archive.history_starts import cut_before
from airflow_mm2_offsets.archive.index_builder import groups
from airflow_mm2_offsets.archive.values import (
    ArchivedRun,
    Header,
    HistoryStart,
    Run,
    TopicIds,
    newer_ids,
    was_recreated,
)
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs

HOUR = 3_600_000
"""Milliseconds: of each hour, the last run's time and watermarks are kept."""
_TRIES = 20


def without_old_syncs(archived: ArchivedSyncs, *, since: int | None) -> ArchivedSyncs:
    """Return ``archived`` without the syncs that may be dropped.

    Args:
        archived: The contents of the archive.
        since: Syncs that were read before may be dropped; milliseconds since 1970. None keeps all.
    """
    if since is None:
        return archived
    starts = _starts_without_old_syncs(archived, since)
    return cut_before(archived, {**archived.history_starts, **starts})


def compacted(archived: ArchivedSyncs) -> Iterator[tuple[FileName, bytes]]:
    """Yield the name and the bytes of one file for each incarnation."""
    fused = list(_fused(archived.runs))
    for number, incarnation in enumerate(archived.incarnations):
        assert archived.pair is not None  # noqa: S101 - an incarnation has a file
        header = Header(
            pair=archived.pair,
            incarnation=incarnation,
            runs=tuple(run for each, run in fused if each == incarnation),
            history_starts=archived.history_starts,
        )
        times = pa.array(sorted({run.time for run in header.runs}), pa.int64())
        watermarks = archived.watermarks(incarnation)
        watermarks = watermarks.filter(pc.is_in(watermarks.column("time"), value_set=times))
        columns = archived.columns.take(archived.incarnation_index == number)
        data = encode(header, columns, watermarks)
        yield FileName.of(header, data), data


def difference(archived: ArchivedSyncs, written: Mapping[FileName, Segment]) -> str | None:
    """Return what differs between the archive and the files that a compaction wrote; None: nothing.

    Args:
        archived: The contents that the files must have.
        written: The files, read back.
    """
    compact = assemble(written, ())
    for what, expected, actual in (
        ("pair of clusters", archived.pair, compact.pair),
        ("incarnations", archived.incarnations, compact.incarnations),
        ("ids of topics", archived.topics, compact.topics),
        ("cut partitions", archived.history_starts, compact.history_starts),
        ("offsets covered", covered(archived.segments), covered(written)),
        ("complete partitions", archived.complete(), compact.complete()),
        ("syncs", _content(archived), _content(compact)),
    ):
        if expected != actual:
            return what
    return None


def _content(archived: ArchivedSyncs) -> list[tuple[TopicPartition, bytes]]:
    """Return the syncs of each partition as bytes, with the incarnation of each."""
    numbers = (archived.incarnation_index, *(getattr(archived.columns, name) for name in NUMBERS))
    return [
        (topic_partition, b"".join(column[start:stop].tobytes() for column in numbers))
        for topic_partition, start, stop in groups(archived.columns)
    ]


def _fused(
    runs: tuple[ArchivedRun, ...],
) -> Iterator[ArchivedRun]:
    """Yield ``runs`` with those of an hour fused; one that saw a topic recreated stays alone."""
    last_ids: dict[str, TopicIds] = {}
    changes = 0
    keyed = []
    for incarnation, run in runs:
        new_ids = {topic: ids for topic, ids in run.topics.items() if last_ids.get(topic) != ids}
        before = new_ids | {topic: last_ids[topic] for topic in new_ids.keys() & last_ids}
        changed = any(was_recreated(before[topic], ids) for topic, ids in new_ids.items())
        last_ids |= {topic: newer_ids(before[topic], ids) for topic, ids in new_ids.items()}
        changes += changed
        key = incarnation, run.time // HOUR, run.whole, changes
        keyed.append((key, replace(run, topics=new_ids)))
        changes += changed
    for (incarnation, *_), group in groupby(keyed, key=itemgetter(0)):
        of_hour = [run for _, run in group]
        # The watermarks kept must be those of a run that read every sync of the fused one.
        newest_read_furthest = of_hour[-1].time == max(run.time for run in of_hour)
        for run in [_fuse(of_hour)] if newest_read_furthest else of_hour:
            yield incarnation, run


def _fuse(runs: list[Run]) -> Run:
    topics: dict[str, TopicIds] = {}
    for run in runs:
        topics |= {
            topic: newer_ids(topics.get(topic, ids), ids) for topic, ids in run.topics.items()
        }
    last = max(runs, key=lambda run: run.time)
    first, stop = min(run.first for run in runs), max(run.stop for run in runs)
    return Run(first=first, stop=stop, time=last.time, whole=last.whole, topics=topics)


def _starts_without_old_syncs(
    archived: ArchivedSyncs, since: int
) -> dict[TopicPartition, HistoryStart]:
    """Return the new history start of each partition with syncs to drop."""
    is_old = _times(archived) < since
    columns, index = archived.columns, archived.index()
    starts = {}
    for topic_partition, begin, stop in groups(columns):
        old = is_old[begin:stop]
        count = stop - begin if old.all() else int(old.argmin())
        syncs = index.partitions[topic_partition]
        first = begin + _first_kept(syncs, count) if len(syncs) == stop - begin else begin
        if first > begin:
            starts[topic_partition] = HistoryStart(
                archived.incarnations[archived.incarnation_index[first]],
                int(columns.offset[first]),
                settled_below=int(columns.downstream[first]),
            )
    return starts


def _first_kept(syncs: PartitionSyncs, count: int) -> int:
    """Return the index of the last of the first ``count`` syncs that needs no earlier sync.

    Positions from there on keep their answers. Usually it is the last one. After a rewind, older
    syncs may be needed until MirrorMaker 2 has caught up, and all are kept.
    """
    segments = syncs.segments
    for at in range(count - 1, max(0, count - 1 - _TRIES), -1):
        pairs = zip(syncs.upstream[at:], syncs.downstream[at:], strict=True)
        beginning = Beginning(history=History.CUT, settled_below=syncs.downstream[at])
        rest = PartitionSyncs(pairs, beginning=beginning)
        if rest.segments.runs_from(0) == segments.runs_from(at):
            return at
    return 0


def _times(archived: ArchivedSyncs) -> NDArray[np.int64]:
    """Return when each sync was first read."""
    times = np.zeros(len(archived), dtype=np.int64)
    for number, incarnation in enumerate(archived.incarnations):
        runs = [run for each, run in archived.runs if each == incarnation]
        stops = np.array([run.stop for run in runs], dtype=np.int64)
        selection = archived.incarnation_index == number
        run_index = stops.searchsorted(archived.columns.offset[selection], side="right")
        times[selection] = np.array([run.time for run in runs], dtype=np.int64)[run_index]
    return times
