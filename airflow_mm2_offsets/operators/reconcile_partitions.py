"""Which ranges of which topic-partitions a reconciliation compares: by plan, ranges or topics."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction, FailoverPlan, SyncIndex
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.reconcile.ranges import (
    Partitions,
    exchange_syncs,
    partitions_of_plan,
    partitions_of_ranges,
    partitions_of_topics,
)
from airflow_mm2_offsets.spark.offsets import parse_offsets

SIDES = ("source", "target")
"""The clusters that can be compared."""


def find_partitions(
    pair: ClusterPair,
    *,
    read: Sequence[str],
    plan: FailoverPlan | None,
    committed: str | None,
    records_before: int,
    ranges: Mapping[str, Any] | None,
    topics: Sequence[str],
) -> Partitions:
    """Return what is compared; the arguments are those of ``ReconcileOperator``.

    Raises:
        PositionError: ``committed`` is not what Spark writes.
        ClusterUnreachableError: The cluster of the syncs, or the one that is read, is silent.
    """
    if plan is not None:
        return partitions_of_plan(
            plan,
            index=_read_index(pair) if {*read} == {*SIDES} and pair.has_syncs else None,
            committed=parse_offsets(committed) if committed else None,
            records_before=records_before,
        )
    if ranges is not None:
        source, target = (ranges.get(side) or {} for side in SIDES)
        return partitions_of_ranges(pair.naming, source, target)
    is_source_read = "source" in read
    names = {
        topic: topic if is_source_read else pair.naming.target_topic(topic) for topic in topics
    }
    return partitions_of_topics(pair.source if is_source_read else pair.target, names, pair.naming)


def _read_index(pair: ClusterPair) -> SyncIndex:
    """Return the offset syncs, in the direction in which the job has moved."""
    index = read_syncs(pair.syncs_cluster, pair.syncs_topic).index
    if pair.direction is Direction.EXCHANGED:
        return exchange_syncs(index, pair.mirrored.naming)
    return index
