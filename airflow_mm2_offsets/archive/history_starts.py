"""Where the usable syncs of each partition begin; ``history`` and ``compaction`` call it."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from airflow_mm2_offsets.archive.codec import Segment
from airflow_mm2_offsets.archive.runs import recreations
from airflow_mm2_offsets.archive.values import HistoryStart, TopicIncarnation
from airflow_mm2_offsets.core import TopicPartition

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs


def cut_before(
    archived: "ArchivedSyncs", starts: Mapping[TopicPartition, HistoryStart]
) -> "ArchivedSyncs":
    """Return ``archived`` without the syncs of each partition before its start."""
    if not starts:
        return archived
    columns = archived.columns
    start_incarnations = np.zeros(len(columns.partitions), dtype=np.int32)
    start_offsets = np.zeros(len(columns.partitions), dtype=np.int64)
    for number, topic_partition in enumerate(columns.partitions):
        if start := starts.get(topic_partition):
            start_incarnations[number], start_offsets[number] = _rank(archived.incarnations, start)
    first_incarnation = start_incarnations[columns.partition_index]
    usable = (archived.incarnation_index > first_incarnation) | (
        (archived.incarnation_index == first_incarnation)
        & (columns.offset >= start_offsets[columns.partition_index])
    )
    cut = {columns.partitions[number] for number in np.unique(columns.partition_index[~usable])}
    return replace(
        archived,
        columns=columns.take(usable),
        incarnation_index=archived.incarnation_index[usable],
        history_starts={
            each: starts[each] for each in starts if each in archived.history_starts or each in cut
        },
    )


def stored_starts(
    segments: Iterable[Segment], incarnations: tuple[TopicIncarnation, ...]
) -> dict[TopicPartition, HistoryStart]:
    """Return the starts that files name; the latest of each partition."""
    starts: dict[TopicPartition, HistoryStart] = {}
    for segment in segments:
        for topic_partition, start in segment.header.history_starts.items():
            stored = starts.get(topic_partition, start)
            starts[topic_partition] = _later(incarnations, start, stored)
    return starts


def starts_after_recreation(
    archived: "ArchivedSyncs", starts: Mapping[TopicPartition, HistoryStart]
) -> dict[TopicPartition, HistoryStart]:
    """Return the starts of topics whose id changed from one run to the next.

    Args:
        archived: Nothing is cut yet.
        starts: Those that files name: a later one stays.
    """
    columns = archived.columns
    changes = {recreation.topic: recreation for recreation in recreations(archived.runs)}
    moved = {}
    for topic_partition in columns.partitions:
        if recreation := changes.get(topic_partition.topic):
            start = recreation.start
            if recreation.surely_before is not None:
                last = _last(archived, topic_partition, *recreation.surely_before)
                below = 0 if last is None else int(columns.downstream[last]) + 1
                start = start._replace(settled_below=below)
            stored = starts.get(topic_partition, start)
            moved[topic_partition] = _later(archived.incarnations, stored, start)
    return moved


def _last(
    archived: "ArchivedSyncs",
    topic_partition: TopicPartition,
    begin: HistoryStart,
    end: HistoryStart,
) -> int | None:
    """Return the index of a partition's last sync from ``begin`` to ``end``; None without one."""
    columns, number = archived.columns, archived.columns.partitions.index(topic_partition)
    ranks = _rank(archived.incarnations, begin), _rank(archived.incarnations, end)
    first, stop = columns.partition_index.searchsorted([number, number + 1]).tolist()
    for at in reversed(range(first, stop)):
        if ranks[0] <= (int(archived.incarnation_index[at]), int(columns.offset[at])) < ranks[1]:
            return at
    return None


def _later(
    incarnations: tuple[TopicIncarnation, ...], first: HistoryStart, second: HistoryStart
) -> HistoryStart:
    """Return the later of both; ``first`` if they are equal."""
    return max(first, second, key=lambda either: _rank(incarnations, either))


def _rank(incarnations: tuple[TopicIncarnation, ...], start: HistoryStart) -> tuple[int, int]:
    """Return the index of a start's incarnation, and its offset there."""
    if start.incarnation in incarnations:
        return incarnations.index(start.incarnation), start.offset
    # The files of its incarnation are lost: later incarnations are after the start.
    return bisect_left([each.number for each in incarnations], start.incarnation.number), 0
