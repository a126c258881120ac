"""Makes few files of many, and forgets what is too old.

A sync is dropped only when it is older than what is kept, a later one of its partition is as old
too, and no position from that later one on needs it: the rule of translation says so. So positions
at or after the first sync left have the answers they had; earlier ones are refused.
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
from airflow_mm2_offsets.archive.floors import raise_floors
from airflow_mm2_offsets.archive.history import ArchivedSyncs, assemble
from airflow_mm2_offsets.archive.index_builder import groups
from airflow_mm2_offsets.archive.values import (
    Floor,
    Generation,
    Header,
    Run,
    TopicIds,
    newer_ids,
    was_recreated,
)
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.epochs import History, PartitionSyncs

HOUR = 3_600_000
"""Milliseconds: of each hour, the last run's time and watermarks are kept."""
_TRIES = 20


def kept(held: ArchivedSyncs, *, since: int | None) -> ArchivedSyncs:
    """Return what a compaction leaves of an archive.

    Args:
        held: All that the archive holds.
        since: Milliseconds since 1970; what was read before may be dropped. None keeps all.
    """
    if since is None:
        return held
    return raise_floors(held, {**held.floors, **_too_old(held, since)})


def compacted(held: ArchivedSyncs) -> Iterator[tuple[FileName, bytes]]:
    """Yield one file for each generation, with the name that it must be written under.

    Args:
        held: What the files must hold.
    """
    fused = list(_fused(held.runs))
    for number, generation in enumerate(held.generations):
        assert held.pair is not None  # noqa: S101 - what has a generation has a file
        header = Header(
            pair=held.pair,
            generation=generation,
            runs=tuple(run for each, run in fused if each == generation),
            floors=held.floors,
        )
        times = pa.array(sorted({run.time for run in header.runs}), pa.int64())
        marks = held.marks(generation)
        marks = marks.filter(pc.is_in(marks.column("time"), value_set=times))
        data = encode(header, held.columns.take(held.generation == number), marks)
        yield FileName.of(header, data), data


def difference(held: ArchivedSyncs, written: Mapping[FileName, Segment]) -> str | None:
    """Return what files that were read back lack of what they must hold; None: nothing.

    Args:
        held: What they must hold.
        written: What they hold.
    """
    there = assemble(written, ())
    for what, mine, its in (
        ("pair of clusters", held.pair, there.pair),
        ("generations", held.generations, there.generations),
        ("ids of topics", held.topics, there.topics),
        ("cut partitions", held.floors, there.floors),
        ("offsets covered", covered(held.segments), covered(written)),
        ("complete partitions", held.complete(), there.complete()),
        ("syncs", _content(held), _content(there)),
    ):
        if mine != its:
            return what
    return None


def _content(held: ArchivedSyncs) -> list[tuple[TopicPartition, bytes]]:
    """Return the syncs of each partition as bytes, with the generation of each."""
    numbers = (held.generation, *(getattr(held.columns, name) for name in NUMBERS))
    return [
        (place, b"".join(each[start:stop].tobytes() for each in numbers))
        for place, start, stop in groups(held.columns)
    ]


def _fused(runs: tuple[tuple[Generation, Run], ...]) -> Iterator[tuple[Generation, Run]]:
    """Yield ``runs`` with those of an hour as one; a run that saw a topic change stays alone."""
    known: dict[str, TopicIds] = {}
    changes = 0
    keyed = []
    for generation, run in runs:
        news = {topic: ids for topic, ids in run.topics.items() if known.get(topic) != ids}
        changed = any(was_recreated(known.get(topic, ids), ids) for topic, ids in news.items())
        known |= {topic: newer_ids(known.get(topic, ids), ids) for topic, ids in news.items()}
        changes += changed
        key = generation, run.time // HOUR, run.whole, changes
        keyed.append((key, replace(run, topics=news)))
        changes += changed
    for (generation, *_), group in groupby(keyed, key=itemgetter(0)):
        yield generation, _fuse([run for _, run in group])


def _fuse(runs: list[Run]) -> Run:
    topics: dict[str, TopicIds] = {}
    for run in runs:
        topics |= {
            topic: newer_ids(topics.get(topic, ids), ids) for topic, ids in run.topics.items()
        }
    last = max(runs, key=lambda run: run.time)
    first, stop = min(run.first for run in runs), max(run.stop for run in runs)
    return Run(first=first, stop=stop, time=last.time, whole=last.whole, topics=topics)


def _too_old(held: ArchivedSyncs, keep_since: int) -> dict[TopicPartition, Floor]:
    """Return the partitions of which something is to be dropped, and where they begin then."""
    old = _times(held) < keep_since
    floors = {}
    index = held.index()
    for place, start, stop in groups(held.columns):
        part = old[start:stop]
        count = stop - start if part.all() else int(part.argmin())
        syncs = index.partitions[place]
        kept = start + _first_kept(syncs, count) if len(syncs) == stop - start else start
        if kept > start:
            generation = held.generations[held.generation[kept]]
            columns = held.columns
            floors[place] = Floor(
                generation,
                int(columns.offset[kept]),
                settled_below=int(columns.downstream[kept]),
            )
    return floors


def _first_kept(syncs: PartitionSyncs, count: int) -> int:
    """Return the index of the last of the first ``count`` syncs that needs none of those before.

    Positions from there on keep their answers. Usually it is the last one; while MirrorMaker 2
    copies again, older ones may be needed, and all are kept until it is done.
    """
    segments = syncs.segments
    for at in range(count - 1, max(0, count - 1 - _TRIES), -1):
        pairs = zip(syncs.upstream[at:], syncs.downstream[at:], strict=True)
        rest = PartitionSyncs(pairs, history=History.CUT, settled_below=syncs.downstream[at])
        if rest.segments.since(0) == segments.since(at):
            return at
    return 0


def _times(held: ArchivedSyncs) -> NDArray[np.int64]:
    """Return when each sync was first read."""
    times = np.zeros(len(held), dtype=np.int64)
    for number, generation in enumerate(held.generations):
        runs = [run for each, run in held.runs if each == generation]
        stops = np.array([run.stop for run in runs], dtype=np.int64)
        mine = held.generation == number
        which = stops.searchsorted(held.columns.offset[mine], side="right")
        times[mine] = np.array([run.time for run in runs], dtype=np.int64)[which]
    return times
