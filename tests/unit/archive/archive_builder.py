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
from airflow_mm2_offsets.core.bracket import END
from airflow_mm2_offsets.kafka.sync_log import SyncRecords

PAIR = PairIdentity(source="source-id", target="target-id", syncs_topic="mm2-offset-syncs")
FIRST = TopicIncarnation(1, "first-life")
HOUR = 3_600_000
ORDERS = TopicPartition("orders", 0)
FAR_END = 1_000_000
"""The source's end that a run sees of ``ORDERS`` unless a test gives another: beyond all syncs."""

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
    source_end: int = FAR_END,
    **about: object,
) -> None:
    """Add a run that sees a source's end."""
    stop = len(log) if stop is None else stop
    archive.append(
        header=header_of(log, first, stop, **about),  # type: ignore[arg-type]
        syncs=records_of(log, first, stop),
        watermarks={ORDERS: (Watermarks(low=0, high=source_end), None)},
    )


def index_of(
    log: Iterable[Sync | None], *, complete: bool = True, source_end: int = END
) -> SyncIndex:
    """Return what ``core`` makes of the log, which begins with the first sync ever written.

    An archive notes ``source_end`` where copies may be older than the first sync of ``ORDERS``.
    """
    pairs: dict[TopicPartition, list[tuple[int, int]]] = {}
    for sync in log:
        if sync:
            pairs.setdefault(TopicPartition(*sync[:2]), []).append(sync[2:])
    index = SyncIndex().extended(pairs, complete=pairs if complete else ())
    orders = index.partitions.get(ORDERS)
    if not orders or orders.first.downstream == 0:
        return index
    return SyncIndex.of_partitions({**index.partitions, ORDERS: orders.with_source_end(source_end)})


def contents(index: SyncIndex) -> dict[TopicPartition, tuple[object, ...]]:
    return {
        each: (syncs.upstream, syncs.downstream, syncs.starts, syncs.beginning)
        for each, syncs in index.partitions.items()
    }
