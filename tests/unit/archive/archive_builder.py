"""Builds archives without a cluster, from a syncs topic that is a list."""

from collections.abc import Iterable, Mapping, Sequence

from airflow_mm2_offsets.archive import Generation, Header, PairIdentity, Run, SyncArchive, SyncRows
from airflow_mm2_offsets.archive.values import TopicIds
from airflow_mm2_offsets.core import SyncIndex, Watermarks

PAIR = PairIdentity(source="source-id", target="target-id", syncs_topic="mm2-offset-syncs")
FIRST = Generation(1, "first-life")
HOUR = 3_600_000

Sync = tuple[str, int, int, int]
"""Topic, partition, upstream and downstream offset."""


def rows_of(log: Sequence[Sync | None], first: int, stop: int) -> SyncRows:
    """Return the syncs of ``log[first:stop]``; None is a record that is gone."""
    rows = SyncRows()
    numbers: dict[tuple[str, int], int] = {}
    for offset, sync in enumerate(log[first:stop], first):
        if sync is None:
            continue
        topic, partition, upstream, downstream = sync
        if (topic, partition) not in numbers:
            numbers[topic, partition] = len(numbers)
            rows.places.append((topic, partition))
        rows.place.append(numbers[topic, partition])
        rows.offset.append(offset)
        rows.upstream.append(upstream)
        rows.downstream.append(downstream)
    return rows


def header_of(
    log: Sequence[Sync | None],
    first: int,
    stop: int,
    *,
    time: int = 0,
    generation: Generation = FIRST,
    topics: Mapping[str, TopicIds] | None = None,
    pair: PairIdentity = PAIR,
) -> Header:
    run = Run(
        first=first, stop=stop, time=time, whole=None not in log[first:stop], topics=topics or {}
    )
    return Header(pair=pair, generation=generation, runs=(run,))


def append(
    archive: SyncArchive,
    log: Sequence[Sync | None],
    first: int = 0,
    stop: int | None = None,
    **about: object,
) -> None:
    stop = len(log) if stop is None else stop
    archive.append(
        header=header_of(log, first, stop, **about),  # type: ignore[arg-type]
        rows=rows_of(log, first, stop),
        marks={("orders", 0): (Watermarks(low=0, high=stop), None)},
    )


def index_of(log: Iterable[Sync | None], *, complete: bool = True) -> SyncIndex:
    """Return what ``core`` makes of the log, which begins with the first sync ever written."""
    pairs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for sync in log:
        if sync:
            pairs.setdefault(sync[:2], []).append(sync[2:])
    return SyncIndex().extended(pairs, complete=pairs if complete else ())


def contents(index: SyncIndex) -> dict[tuple[str, int], tuple[object, ...]]:
    return {
        place: (syncs.upstream, syncs.downstream, syncs.starts, syncs.surplus_steps, syncs.history)
        for place, syncs in index.partitions.items()
    }
