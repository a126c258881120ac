"""Finds in an archive's runs the recreated topics, and the part of the syncs topic read whole.

``history``, ``history_starts`` and the planner call it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from airflow_mm2_offsets.archive.values import (
    BEGINNING,
    NO_IDS,
    ArchivedRun,
    HistoryStart,
    TopicIds,
    newer_ids,
    was_recreated,
)


class Recreation(NamedTuple):
    """A replicated topic was recreated on a cluster: its id has changed."""

    topic: str
    """By the source's name."""
    before: TopicIds
    now: TopicIds
    start: HistoryStart
    """The later runs' syncs, from here on, are surely of the new topic."""
    surely_before: tuple[HistoryStart, HistoryStart] | None
    """The syncs from the first of these to the second are surely of the old topic, and of the same
    target topic. None if the target topic was recreated too, or if that is not known."""


def recreations(runs: Iterable[ArchivedRun]) -> Iterator[Recreation]:
    """Yield each recreation of a topic that the runs show.

    Args:
        runs: In log order.
    """
    last_ids: dict[str, TopicIds] = {}
    starts: dict[str, HistoryStart] = {}
    last_seen: dict[str, HistoryStart] = {}
    for incarnation, run in runs:
        for topic, ids in run.topics.items():
            before = last_ids.get(topic, NO_IDS)
            last_ids[topic] = newer_ids(before, ids)
            start = HistoryStart(incarnation, run.stop)
            if was_recreated(before, ids):
                surely_before = None
                if None not in (before[1], ids[1]) and before[1] == ids[1]:
                    begin = starts.get(topic, BEGINNING)
                    surely_before = begin, last_seen.get(topic, begin)
                else:
                    starts[topic] = start
                yield Recreation(topic, before, ids, start, surely_before)
            if ids[0] is not None:
                # The run read the ids first: the syncs before it are not of a newer topic.
                last_seen[topic] = HistoryStart(incarnation, run.first)


def complete_until(runs: Sequence[ArchivedRun]) -> int:
    """Return the offset up to which the first incarnation of the syncs topic was read whole.

    Args:
        runs: In log order.
    """
    reached = 0
    if runs and (first := runs[0][0]).number == 1:
        runs_of_first = (run for incarnation, run in runs if incarnation == first)
        for run in sorted(runs_of_first, key=lambda run: (run.first, run.stop)):
            if run.whole and run.first <= reached:
                reached = max(reached, run.stop)
    return reached
