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
    """Where the syncs begin that may be of the new topic: those of later runs."""


def recreations(runs: Iterable[tuple[Generation, Run]]) -> Iterator[Recreation]:
    """Yield each time that a topic was seen to have been recreated.

    Args:
        runs: In log order.
    """
    known: dict[str, TopicIds] = {}
    for generation, run in runs:
        for topic, ids in run.topics.items():
            before = known.get(topic, (None, None))
            known[topic] = newer_ids(before, ids)
            if was_recreated(before, ids):
                # What the target holds of another incarnation of the source is not needed.
                is_settled = None not in (before[1], ids[1]) and before[1] == ids[1]
                yield Recreation(topic, before, ids, Floor(generation, run.stop, is_settled))


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
