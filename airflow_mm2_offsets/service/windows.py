"""Reads the records that settle where a position is, and never more than that."""

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_mm2_offsets.core import (
    Basis,
    SourceWindow,
    Status,
    SyncIndex,
    TargetWindow,
    TopicPartition,
    Translation,
)
from airflow_mm2_offsets.core.recopies import last_room
from airflow_mm2_offsets.core.stretch import Stretch, SyncPoint
from airflow_mm2_offsets.kafka.ranges import OffsetRange, read_ranges
from airflow_mm2_offsets.service.evidence import Held
from airflow_mm2_offsets.service.pair import ClusterPair

MAX_WINDOW = 100_000
"""Offsets of one partition that are read on either side at most; a wider stretch stays open."""

_MAY_BE_READ = frozenset({Basis.SYNC, Basis.BETWEEN_SYNCS, Basis.BEFORE_FIRST_SYNC})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What of one partition settles its answer."""

    source: OffsetRange | None
    target: OffsetRange


def gather_windows(
    pair: ClusterPair,
    index: SyncIndex,
    held: Held,
    answers: Iterable[Translation],
    *,
    sole_writer: bool,
    max_bytes: int,
) -> dict[TopicPartition, tuple[SourceWindow | None, TargetWindow]]:
    """Return what both clusters hold between the syncs around each answer that is not settled.

    With the source, the target is read on to where the same records may have been copied again.
    Without it, what the target holds tells something to ``sole_writer`` alone. Of each cluster
    no more than ``max_bytes`` are read; what is beyond is left to the syncs.
    """
    wanted = {}
    for answer in answers:
        key = (answer.topic, answer.partition)
        if found := _want(index, held, answer, sole_writer=sole_writer):
            wanted[key] = found
    names = {key: pair.on_target(key) for key in wanted}
    on_target = read_ranges(
        pair.target, {names[key]: each.target for key, each in wanted.items()}, max_bytes=max_bytes
    )
    sources = {
        key: each.source for key, each in wanted.items() if each.source and names[key] in on_target
    }
    on_source = read_ranges(pair.source, sources, max_bytes=max_bytes)
    return {
        key: (
            SourceWindow(first=sources[key].first, last=sources[key].last, records=on_source[key])
            if key in on_source
            else None,
            TargetWindow.of(
                max(each.target.first, held.target[key].low), each.target.last, on_target[name]
            ),
        )
        for key, each in wanted.items()
        if (name := names[key]) in on_target
    }


def gather_whole(
    pair: ClusterPair,
    index: SyncIndex,
    held: Held,
    answers: Iterable[Translation],
    *,
    max_bytes: int,
) -> dict[TopicPartition, SourceWindow]:
    """Return what the source holds up to its end, where content left an answer open.

    What the target holds twice counts as one record where the source has it once.
    """
    ranges = {}
    for answer in answers:
        if answer.status is Status.BOUNDED and answer.basis is Basis.CONTENT:
            key = (answer.topic, answer.partition)
            # From the last sync before the position on: what precedes a copy has to be known.
            before = index.partitions[key].stretches(max(0, answer.position - 1))[0].floor
            wanted = OffsetRange(before.upstream if before else 0, held.source[key].high - 1)
            if wanted.size <= MAX_WINDOW:
                ranges[key] = wanted
    read = read_ranges(pair.source, ranges, max_bytes=max_bytes)
    return {
        key: SourceWindow(first=ranges[key].first, last=ranges[key].last, records=records)
        for key, records in read.items()
    }


def _want(
    index: SyncIndex, held: Held, answer: Translation, *, sole_writer: bool
) -> _Wanted | None:
    """Return what to read of a partition, or None where nothing helps or it is too much."""
    key = (answer.topic, answer.partition)
    if answer.basis not in _MAY_BE_READ:
        return None
    syncs = index.partitions[key]
    (stretch,) = syncs.stretches(answer.position, caught_up=True)
    room = last_room(syncs, stretch, within=MAX_WINDOW)
    if stretch.end is None or (answer.status is not Status.BOUNDED and room is None):
        return None
    low = held.target[key].low
    if key in held.source:
        source = _range(stretch, stretch.end, 0, held.source[key].low)
        for last in (room or stretch.end, stretch.end):
            target = _range(stretch, last, 1, low)
            if source and target:
                return _Wanted(source=source, target=target)
    if sole_writer and stretch.ceiling and answer.status is Status.BOUNDED:
        target = _range(stretch, stretch.ceiling, 1, low)
        return _Wanted(source=None, target=target) if target else None
    return None


def _range(stretch: Stretch, last: SyncPoint, side: int, low: int) -> OffsetRange | None:
    """Return the offsets of one side up to a sync, where those that are held are few enough.

    Args:
        stretch: Where to begin.
        last: Where to end.
        side: 0 is the source, 1 the target.
        low: The first offset that is held there.
    """
    wanted = OffsetRange(stretch.floor[side] if stretch.floor else 0, last[side])
    return wanted if OffsetRange(max(wanted.first, low), wanted.last).size <= MAX_WINDOW else None
