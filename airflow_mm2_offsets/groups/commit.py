"""Decides about positions by what the groups' cluster says right before the commit, and commits."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.group_offsets import (
    GroupCommit,
    GroupDecision,
    GroupPosition,
    GroupRules,
    decide,
    refuse_shared,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

_AT_A_TIME = 100
"""Groups that are checked and committed together: the fewer, the less can change in between."""

_PENDING = (
    "a transaction that commits for the group has not ended: an exactly-once consumer may have "
    "moved here; run again later, or see kafka-transactions.sh find-hanging"
)


def commit_positions(
    cluster: KafkaCluster,
    positions: Iterable[GroupPosition],
    *,
    rules: GroupRules,
    is_dry_run: bool,
) -> tuple[GroupDecision, ...]:
    """Decide about each position, and commit what is to be committed.

    Some groups at a time are checked and committed at once. A group that gets members in between is
    refused by the broker; the others go on.

    Raises:
        ClusterUnreachableError: The cluster does not answer; run it again, nothing is done twice.
    """
    by_group: dict[str, list[GroupPosition]] = defaultdict(list)
    for each in refuse_shared(positions):
        by_group[each.group].append(each)
    watermarks = existing_watermarks(cluster, [each for some in by_group.values() for each in some])
    groups = sorted(by_group)
    decisions: list[GroupDecision] = []
    for begin in range(0, len(groups), _AT_A_TIME):
        some = [each for group in groups[begin : begin + _AT_A_TIME] for each in by_group[group]]
        decided = list(_decide(cluster, some, watermarks, rules))
        decisions += decided if is_dry_run else _commit(cluster, decided)
    return tuple(decisions)


def existing_watermarks(
    cluster: KafkaCluster, positions: Iterable[GroupPosition]
) -> dict[TopicPartition, Watermarks]:
    """Return the watermarks of the positions' topic-partitions that exist."""
    keys = {each.topic_partition for each in positions}
    topics = cluster.topics({each.topic for each in keys})
    return cluster.watermarks(
        each
        for each in keys
        if each.topic in topics and each.partition < topics[each.topic].partitions
    )


def _decide(
    cluster: KafkaCluster,
    positions: list[GroupPosition],
    watermarks: dict[TopicPartition, Watermarks],
    rules: GroupRules,
) -> Iterator[GroupDecision]:
    partitions: dict[str, set[TopicPartition]] = {each.group: set() for each in positions}
    for each in positions:
        if each.topic_partition in watermarks:
            partitions[each.group].add(each.topic_partition)
    # The offsets last: a consumer that has left since was a member, or its commit is seen here.
    members = cluster.group_members(partitions)
    stable = cluster.stable_group_offsets(partitions)
    for each in positions:
        yield decide(
            each.refused(_PENDING) if each.group in stable.pending else each,
            stable.offsets.get(each.group, {}).get(each.topic_partition),
            watermarks.get(each.topic_partition),
            members=members[each.group],
            rules=rules,
        )


def _commit(cluster: KafkaCluster, decisions: list[GroupDecision]) -> Iterator[GroupDecision]:
    commits: dict[str, dict[TopicPartition, GroupCommit]] = defaultdict(dict)
    for each in decisions:
        if each.commit is not None:
            commits[each.position.group][each.position.topic_partition] = each.commit
    errors = cluster.commit_group_offsets(commits)
    for each in decisions:
        error = errors.get((each.position.group, each.position.topic_partition))
        yield each if error is None or each.commit is None else each.failed(error)
