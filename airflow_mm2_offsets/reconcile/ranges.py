"""Chooses the offset ranges that a reconciliation compares; ``ReconcileOperator`` calls it.

Each range is a partition of the request that ``job/reconcile/main.py`` describes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    OffsetMapping,
    Positions,
    SyncIndex,
    TopicPartition,
)
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
    """Return the ranges around a plan's switch from source to target.

    A source range begins ``records_before`` before the position. Both ranges end at the last sync
    that the target job has passed, or, without ``committed``, at the ends of the clusters.

    Args:
        plan: The plan; it may have no refused partition.
        index: The syncs; None if the source is not read, or where copies keep offsets: the target
            job's position is the end.
        committed: The target job's positions, by the target's topic names.
        records_before: How many offsets of the source before the position are compared.

    Raises:
        TranslationRefusedError: A partition of the plan is refused.
    """
    starts = plan.target_positions()
    partitions = []
    for planned in plan.partitions:
        partition, position = planned.translation.topic_partition, planned.translation.position
        start = starts[planned.target_topic][partition.partition]
        ends: tuple[int | None, int | None] = (None, None)
        if committed is not None:
            reached = committed.get(planned.target_topic, {}).get(partition.partition, start)
            done = start, max(start, reached)
            if plan.mapping is OffsetMapping.IDENTITY:
                ends = _same_ends(position, done)
            else:
                ends = _ends(index, partition, position, done)
        partitions.append(
            _partition(partition, planned.target_topic)
            | {
                "source": [str(max(0, position - records_before)), _bound(ends[0])],
                "target": [str(start), _bound(ends[1])],
                "switch": str(position),
            }
        )
    return partitions


def exchange_syncs(index: SyncIndex, naming: Naming) -> SyncIndex:
    """Return the syncs as a job meets them that comes home: from the target to the source.

    Only for the ends of ranges: it knows nothing of rewinds.

    Args:
        index: The syncs, by the source's topics.
        naming: What the topics are called on the target.
    """
    pairs = {
        TopicPartition(naming.target_topic(key.topic), key.partition): [
            (syncs[at].downstream, syncs[at].upstream) for at in range(len(syncs))
        ]
        for key, syncs in index.partitions.items()
    }
    return SyncIndex().extended(pairs)


def partitions_of_ranges(
    naming: Naming,
    source: Mapping[str, Mapping[Any, Sequence[Any]]],
    target: Mapping[str, Mapping[Any, Sequence[Any]]],
) -> Partitions:
    """Return ranges of offsets: topic to partition to the first offset and the end.

    A cluster that is not read has no ranges; both are by the source's topic names.

    Raises:
        ConfigurationError: A range is not a pair, or only one cluster has a partition's range.
        PositionError: An offset is invalid.
    """
    sides = {"source": _by_partition(source), "target": _by_partition(target)}
    requested = [ranges for ranges in sides.values() if ranges]
    if not requested or any(ranges.keys() != requested[0].keys() for ranges in requested):
        names = {side: ", ".join(map(str, sorted(ranges))) for side, ranges in sides.items()}
        raise ConfigurationError(
            "ranges must name the same partitions of each cluster that they name any of; got "
            f"[{names['source']}] of the source and [{names['target']}] of the target"
        )
    return [
        _partition(partition, naming.target_topic(partition.topic))
        | {side: ranges.get(partition) for side, ranges in sides.items()}
        for partition in sorted(requested[0])
    ]


def partitions_of_topics(
    cluster: KafkaCluster, names: Mapping[str, str], naming: Naming
) -> Partitions:
    """Return all partitions of topics, with all their records.

    Raises:
        ConfigurationError: A topic does not exist.
        ClusterUnreachableError: The cluster does not answer.
    """
    topics = cluster.topics(names.values())
    if missing := sorted(set(names.values()) - topics.keys()):
        raise ConfigurationError(f"{cluster.name} has no topic {', '.join(missing)}")
    return [
        _partition(TopicPartition(topic, number), naming.target_topic(topic))
        for topic, name in sorted(names.items())
        for number in range(topics[name].partitions)
    ]


def _ends(
    index: SyncIndex | None, partition: TopicPartition, position: int, done: tuple[int, int]
) -> tuple[int, int]:
    """Return where the ranges end: at the sync furthest on the source that the target job passed.

    ``done`` is the target job's first position, and its position now.
    """
    start, reached = done
    if index is None:
        return position, reached
    syncs = index.partitions.get(partition)
    if syncs is None:
        return position, start
    first, stop = bisect_left(syncs.downstream, start), bisect_right(syncs.downstream, reached)
    passed = (syncs[at] for at in range(first, stop) if syncs.upstream[at] >= position)
    return max(passed, default=(position, start))


def _same_ends(position: int, done: tuple[int, int]) -> tuple[int, int]:
    """Return where the ranges end if copies keep offsets: where the target job stands."""
    start, reached = done
    return (reached, reached) if reached >= position else (position, start)


def _partition(partition: TopicPartition, target_topic: str) -> dict[str, Any]:
    return {
        **partition._asdict(),
        "target_topic": target_topic,
        "source": None,
        "target": None,
        "switch": None,
    }


def _bound(offset: int | None) -> str | None:
    return None if offset is None else str(offset)


def _by_partition(
    ranges: Mapping[str, Mapping[Any, Sequence[Any]]],
) -> dict[TopicPartition, list[str | None]]:
    checked = {}
    for topic, partitions in ranges.items():
        for number, bounds in partitions.items():
            partition = TopicPartition(topic, int(number))
            if isinstance(bounds, str) or len(bounds) != 2:  # noqa: PLR2004 - a pair
                raise ConfigurationError(
                    f"{partition}: a range is the first offset and the end, as in "
                    f'["100", "200"] or [null, "200"]; got {bounds!r}'
                )
            checked[partition] = [
                None if offset is None else str(check_position(*partition, offset))
                for offset in bounds
            ]
    return checked
