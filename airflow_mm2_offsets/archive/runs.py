"""What an archive's runs say together: topics that were recreated, and what was read whole."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from airflow_mm2_offsets.archive.values import (
    Floor,
    Generation,
    Run,
    TopicIds,
    newer_ids,
    was_recreated,
)


class Recreation(NamedTuple):
    """A topic's id was another one than before: the topic was recreated on a cluster."""

    topic: str
    """By the source's name."""
    before: TopicIds
    now: TopicIds
    floor: Floor
    """Where the syncs begin that are surely of the new topic: those of later runs."""
    surely_before: tuple[Floor, Floor] | None
    """From where to where the syncs lie that are surely of the topic before, all of one target
    topic; None where the target topic was recreated, or that is not known."""


def recreations(runs: Iterable[tuple[Generation, Run]]) -> Iterator[Recreation]:
    """Yield each time that a topic was seen to have been recreated.

    Args:
        runs: In log order.
    """
    known: dict[str, TopicIds] = {}
    begins: dict[str, Floor] = {}
    seen: dict[str, Floor] = {}
    for generation, run in runs:
        for topic, ids in run.topics.items():
            before = known.get(topic, (None, None))
            known[topic] = newer_ids(before, ids)
            floor = Floor(generation, run.stop)
            if was_recreated(before, ids):
                surely_before = None
                if None not in (before[1], ids[1]) and before[1] == ids[1]:
                    begin = begins.get(topic, Floor(Generation(0, ""), 0))
                    surely_before = begin, seen.get(topic, begin)
                else:
                    begins[topic] = floor
                yield Recreation(topic, before, ids, floor, surely_before)
            if ids[0] is not None:
                # The ids were read first: the syncs before this run are not of a newer topic.
                seen[topic] = Floor(generation, run.first)


def complete_until(runs: Sequence[tuple[Generation, Run]]) -> int:
    """Return up to which offset nothing is missing of the first life of the syncs topic.

    Args:
        runs: In log order.
    """
    reached = 0
    if runs and (first := runs[0][0]).number == 1:
        mine = (run for generation, run in runs if generation == first)
        for run in sorted(mine, key=lambda run: (run.first, run.stop)):
            if run.whole and run.first <= reached:
                reached = max(reached, run.stop)
    return reached
