"""Which stretches of both clusters a reconciliation compares.

Each is a dict with what ``job/reconcile/main.py`` calls a partition of its request.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    Positions,
    SyncIndex,
    TopicPartition,
)
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.positions import check_position
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

Partitions: TypeAlias = list[dict[str, Any]]


def partitions_of_plan(
    plan: FailoverPlan,
    *,
    index: SyncIndex | None,
    committed: Positions | None = None,
    records_before: int,
) -> Partitions:
    """Return the region around a plan's switch.

    Before it, so many offsets of the source; after it, what both the target job has committed and
    a sync ties to the source: that sync says which source offset the range ends at. Without
    ``committed``, to the end of what either cluster holds.

    Args:
        plan: The plan; none of its partitions may be refused.
        index: The syncs; None where the source is not read, so that nothing must be tied to it.
        committed: Where the target job stands, by the target's topic names.
        records_before: Offsets to look back before the source position.

    Raises:
        TranslationRefusedError: A partition of the plan is refused.
    """
    starts = plan.target_positions()
    return [
        _planned(
            (each.translation.topic, each.target_topic, each.translation.partition),
            each.translation.position,
            starts[each.target_topic][each.translation.partition],
            index=index,
            committed=committed,
            records_before=records_before,
        )
        for each in plan.partitions
    ]


def partitions_of_ranges(
    naming: Naming,
    source: Mapping[str, Mapping[Any, Sequence[Any]]],
    target: Mapping[str, Mapping[Any, Sequence[Any]]],
) -> Partitions:
    """Return ranges of offsets: topic to partition to the first offset and the end.

    Either may be empty where that cluster is not read; both go by the source's topic names.

    Raises:
        ConfigurationError: A range is none, or only one cluster has one for a partition.
        PositionError: An offset is none.
    """
    flat = {side: _flat_ranges(each) for side, each in (("source", source), ("target", target))}
    given = [ranges for ranges in flat.values() if ranges]
    if not given or any(ranges.keys() != given[0].keys() for ranges in given):
        raise ConfigurationError(
            "ranges must name the same partitions of each cluster that they name any of; got "
            f"{sorted(flat['source'])} of the source and {sorted(flat['target'])} of the target"
        )
    return [
        _partition(topic, naming.target_topic(topic), number)
        | {side: flat[side].get((topic, number)) for side in flat}
        for topic, number in sorted(given[0])
    ]


def partitions_of_topics(
    cluster: KafkaCluster, names: Mapping[str, str], naming: Naming
) -> Partitions:
    """Return all partitions of topics, with all that they hold.

    Args:
        cluster: Asked how many partitions there are.
        names: The source's name of each topic, and what it is called on that cluster.
        naming: What topics are called on the target.

    Raises:
        ConfigurationError: A topic does not exist.
        ClusterUnreachableError: The cluster does not answer.
    """
    found = cluster.topics(names.values())
    if missing := sorted(set(names.values()) - found.keys()):
        raise ConfigurationError(f"{cluster.name} has no topic {', '.join(missing)}")
    return [
        _partition(topic, naming.target_topic(topic), number)
        for topic, name in sorted(names.items())
        for number in range(found[name].partitions)
    ]


def _planned(
    names: tuple[str, str, int],
    position: int,
    start: int,
    *,
    index: SyncIndex | None,
    committed: Positions | None,
    records_before: int,
) -> dict[str, Any]:
    topic, target_topic, number = names
    source_end, target_end = None, None
    if committed is not None:
        stands = max(start, committed.get(target_topic, {}).get(number, start))
        source_end, target_end = position, stands
        if index is not None:
            known = index.partitions.get(TopicPartition(topic, number))
            tie = _last_tie(known, position, start, stands) if known else None
            source_end, target_end = tie or (position, start)
    return _partition(topic, target_topic, number) | {
        "source": [str(max(0, position - records_before)), _bound(source_end)],
        "target": [str(start), _bound(target_end)],
        "switch": str(position),
    }


def _last_tie(
    syncs: PartitionSyncs, position: int, start: int, stands: int
) -> tuple[int, int] | None:
    """Return the sync furthest on the source that lies within what the target job has done."""
    first, stop = bisect_left(syncs.downstream, start), bisect_right(syncs.downstream, stands)
    ties = (syncs[at] for at in range(first, stop) if syncs.upstream[at] >= position)
    return max(ties, default=None)


def _partition(topic: str, target_topic: str, number: int) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": number,
        "target_topic": target_topic,
        "source": None,
        "target": None,
        "switch": None,
    }


def _bound(offset: int | None) -> str | None:
    return None if offset is None else str(offset)


def _flat_ranges(
    ranges: Mapping[str, Mapping[Any, Sequence[Any]]],
) -> dict[tuple[str, int], list[str | None]]:
    flat = {}
    for topic, partitions in ranges.items():
        for number, bounds in partitions.items():
            if isinstance(bounds, str) or len(bounds) != 2:  # noqa: PLR2004 - a pair
                raise ConfigurationError(
                    f"{TopicPartition(topic, int(number))}: a range is the first offset and the "
                    f'end, as in ["100", "200"] or [null, "200"]; got {bounds!r}'
                )
            flat[topic, int(number)] = [
                None if each is None else str(check_position(topic, int(number), each))
                for each in bounds
            ]
    return flat
