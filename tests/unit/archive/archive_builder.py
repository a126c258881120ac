"""Builds archives without a cluster, from a syncs topic that is a list."""

from collections.abc import Iterable, Mapping, Sequence

from airflow_mm2_offsets.archive import Header, PairIdentity, Run, SyncArchive, TopicIncarnation
from airflow_mm2_offsets.archive.values import TopicIds
from airflow_mm2_offsets.core import (
    OffsetSync,
    SyncIndex,
    TopicPartition,
    Watermarks,
    encode_offset_sync,
)
from airflow_mm2_offsets.kafka.sync_log import SyncRecords

PAIR = PairIdentity(source="source-id", target="target-id", syncs_topic="mm2-offset-syncs")
FIRST = TopicIncarnation(1, "first-life")
HOUR = 3_600_000

Sync = tuple[str, int, int, int]
"""Topic, partition, upstream and downstream offset."""


def records_of(
    log: Sequence[Sync | None], first: int, stop: int
) -> dict[TopicPartition, SyncRecords]:
    """Return the syncs of ``log[first:stop]``; None is a record that is gone."""
    syncs: dict[TopicPartition, SyncRecords] = {}
    for offset, sync in enumerate(log[first:stop], first):
        if sync is None:
            continue
        topic, partition, upstream, downstream = sync
        _, value = encode_offset_sync(
            OffsetSync(topic=topic, partition=partition, upstream=upstream, downstream=downstream)
        )
        records = syncs.setdefault(TopicPartition(topic, partition), SyncRecords())
        records.offsets.append(offset)
        records.values.extend(value)
    return syncs


def header_of(
    log: Sequence[Sync | None],
    first: int,
    stop: int,
    *,
    time: int = 0,
    incarnation: TopicIncarnation = FIRST,
    topics: Mapping[str, TopicIds] | None = None,
    pair: PairIdentity = PAIR,
) -> Header:
    run = Run(
        first=first, stop=stop, time=time, whole=None not in log[first:stop], topics=topics or {}
    )
    return Header(pair=pair, incarnation=incarnation, runs=(run,))


def append(
    archive: SyncArchive,
    log: Sequence[Sync | None],
    first: int = 0,
    stop: int | None = None,
    *,
    source_end: int | None = None,
    **about: object,
) -> None:
    """Add a run; the source's end lies beyond all syncs, unless another is given."""
    stop = len(log) if stop is None else stop
    end = 1_000_000 if source_end is None else source_end
    archive.append(
        header=header_of(log, first, stop, **about),  # type: ignore[arg-type]
        syncs=records_of(log, first, stop),
        watermarks={TopicPartition("orders", 0): (Watermarks(low=0, high=end), None)},
    )


def index_of(log: Iterable[Sync | None], *, complete: bool = True) -> SyncIndex:
    """Return what ``core`` makes of the log, which begins with the first sync ever written."""
    pairs: dict[TopicPartition, list[tuple[int, int]]] = {}
    for sync in log:
        if sync:
            pairs.setdefault(TopicPartition(*sync[:2]), []).append(sync[2:])
    return SyncIndex().extended(pairs, complete=pairs if complete else ())


def contents(index: SyncIndex) -> dict[TopicPartition, tuple[object, ...]]:
    return {
        each: (syncs.upstream, syncs.downstream, syncs.starts, syncs.surplus_steps, syncs.history)
        for each, syncs in index.partitions.items()
    }
