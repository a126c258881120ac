"""Where the usable syncs of each partition begin, and what is cut before; ``history`` calls it."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from airflow_mm2_offsets.archive.codec import Segment
from airflow_mm2_offsets.archive.runs import recreations
from airflow_mm2_offsets.archive.values import Floor, Generation
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.bracket import SyncPoint

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs


_BEGINNING = Floor(Generation(0, ""), 0)


def raise_floors(held: "ArchivedSyncs", floors: Mapping[TopicPartition, Floor]) -> "ArchivedSyncs":
    """Return what is left of ``held`` where the usable syncs begin at ``floors``."""
    if not floors:
        return held
    columns = held.columns
    least_generation = np.zeros(len(columns.partitions), dtype=np.int32)
    least_offset = np.zeros(len(columns.partitions), dtype=np.int64)
    for number, place in enumerate(columns.partitions):
        if place in floors:
            least_generation[number], least_offset[number] = _rank(held.generations, floors[place])
    least = least_generation[columns.partition_index]
    kept = (held.generation > least) | (
        (held.generation == least) & (columns.offset >= least_offset[columns.partition_index])
    )
    dropped = {columns.partitions[number] for number in np.unique(columns.partition_index[~kept])}
    return replace(
        held,
        columns=columns.take(kept),
        generation=held.generation[kept],
        floors={
            place: floor
            for place, floor in floors.items()
            if place in held.floors or place in dropped
        },
    )


def stored_floors(
    segments: Iterable[Segment], generations: tuple[Generation, ...]
) -> dict[TopicPartition, Floor]:
    """Return the floors that files name; the highest of each partition."""
    floors: dict[TopicPartition, Floor] = {}
    for segment in segments:
        for place, floor in segment.header.floors.items():
            floors[place] = max(
                floor, floors.get(place, floor), key=lambda each: _rank(generations, each)
            )
    return floors


def floors_of_recreated(
    held: "ArchivedSyncs", floors: Mapping[TopicPartition, Floor]
) -> dict[TopicPartition, Floor]:
    """Return the floors of topics whose id changed from one run to the next."""
    changed = {each.topic: each for each in recreations(held.runs)}
    raised = {}
    for place in held.columns.partitions:
        if recreation := changed.get(place[0]):
            floor = recreation.floor
            if recreation.surely_before is not None:
                last = _last(held, place, *recreation.surely_before)
                below = 0 if last is None else int(held.columns.downstream[last]) + 1
                floor = floor._replace(settled_below=below)
            elif (last := _last(held, place, _BEGINNING, floor)) is not None:
                columns = held.columns
                cut = SyncPoint(int(columns.upstream[last]), int(columns.downstream[last]))
                floor = floor._replace(last_cut=cut)
            stored = floors.get(place, floor)
            raised[place] = max(stored, floor, key=lambda each: _rank(held.generations, each))
    return raised


def _last(held: "ArchivedSyncs", place: TopicPartition, begin: Floor, end: Floor) -> int | None:
    """Return the index of the last sync of a partition from one floor to another, if any is."""
    columns, number = held.columns, held.columns.partitions.index(place)
    ranks = _rank(held.generations, begin), _rank(held.generations, end)
    start, stop = columns.partition_index.searchsorted([number, number + 1]).tolist()
    for at in reversed(range(start, stop)):
        if ranks[0] <= (int(held.generation[at]), int(columns.offset[at])) < ranks[1]:
            return at
    return None


def _rank(generations: tuple[Generation, ...], floor: Floor) -> tuple[int, int]:
    """Return a floor as the index of its generation and the offset there."""
    if floor.generation in generations:
        return generations.index(floor.generation), floor.offset
    # Its generation's files are lost: what comes later is above the floor.
    return bisect_left([each.number for each in generations], floor.generation.number), 0
