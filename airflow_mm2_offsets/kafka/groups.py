"""Asks a cluster for the members of consumer groups, and for what groups have committed.

``KafkaCluster`` calls it.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.core.group_offsets import GroupCommit
from airflow_mm2_offsets.kafka.group_requests import AT_A_TIME, ask_each, batched, group_failure
from airflow_mm2_offsets.kafka.session import ClientSession

GroupOffsets: TypeAlias = dict[str, dict[TopicPartition, GroupCommit]]
"""Group, then topic-partition, then what the group has committed."""

_WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
_NOT_THERE = frozenset({KafkaError.GROUP_ID_NOT_FOUND})


def count_members(admin: ClientSession[AdminClient], groups: Collection[str]) -> dict[str, int]:
    """Return how many members each group has, at least 1 while it may get some; 0: it is empty.

    A group that does not exist has none (KIP-1043: Kafka 4.0 says so, older brokers say DEAD).
    """
    counts: dict[str, int] = {}
    for some in batched(sorted(set(groups)), AT_A_TIME):
        futures = admin.ask(lambda some=some, **options: _describe(admin, some, **options))
        counts |= {name: _members(admin, name, future) for name, future in futures.items()}
    return counts


def _describe(
    admin: ClientSession[AdminClient], groups: Iterable[str], **options: Any
) -> Mapping[str, Future[Any]]:
    return admin.client.describe_consumer_groups([*groups], **options)


def _members(admin: ClientSession[AdminClient], group: str, future: Future[Any]) -> int:
    error = future.exception()
    if isinstance(error, KafkaException) and error.args[0].code() in _NOT_THERE:
        return 0
    description = admin.result(future, group=group)
    if description.state in _WITHOUT_MEMBERS:
        return 0
    return max(1, len(description.members))


def read_group_offsets(admin: ClientSession[AdminClient], groups: Collection[str]) -> GroupOffsets:
    """Return what groups have committed; a group or a partition without a commit is absent."""
    requests = {group: ConsumerGroupTopicPartitions(group) for group in sorted(set(groups))}
    answers = ask_each(admin, admin.client.list_consumer_group_offsets, requests)
    offsets = {
        group: _commits(admin, group, admin.result(future, group=group))
        for group, future in answers
    }
    return {group: commits for group, commits in offsets.items() if commits}


@dataclass(frozen=True, slots=True, kw_only=True)
class StableOffsets:
    """What groups have committed, and which groups a transaction may still commit for."""

    offsets: GroupOffsets
    """Of the groups that are not in ``pending``."""
    pending: frozenset[str]


def read_stable_offsets(
    admin: ClientSession[AdminClient], partitions: Mapping[str, Collection[TopicPartition]]
) -> StableOffsets:
    """Return what groups have committed on partitions, once no transaction may change it (KIP-447).

    The partitions are named: of a group without names, Kafka does not tell a commit that is pending
    where nothing was committed before. A group that is pending until the time is up is named.
    """
    requests = {
        group: ConsumerGroupTopicPartitions(group, [PartitionOffset(*key) for key in sorted(keys)])
        for group, keys in sorted(partitions.items())
        if keys
    }
    send = partial(admin.client.list_consumer_group_offsets, require_stable=True)
    answers = dict(ask_each(admin, send, requests))
    pending = frozenset(group for group, future in answers.items() if _is_pending(future))
    return StableOffsets(
        offsets={
            group: _commits(admin, group, admin.result(future, group=group))
            for group, future in answers.items()
            if group not in pending
        },
        pending=pending,
    )


def _is_pending(future: Future[Any]) -> bool:
    failure = future.exception()
    if isinstance(failure, KafkaException):
        errors = [failure.args[0]]
    else:
        errors = [each.error for each in future.result().topic_partitions or ()]
    return any(
        each is not None and each.code() == KafkaError.UNSTABLE_OFFSET_COMMIT for each in errors
    )


def _commits(
    admin: ClientSession[AdminClient], group: str, answer: ConsumerGroupTopicPartitions
) -> dict[TopicPartition, GroupCommit]:
    partitions = answer.topic_partitions or []
    for each in partitions:
        if each.error is not None:
            raise group_failure(admin, each.error, group, each, Operation.DESCRIBE)
    return {
        TopicPartition(each.topic, each.partition): GroupCommit(
            offset=each.offset, metadata=each.metadata or ""
        )
        for each in partitions
        if each.offset >= 0  # Kafka answers -1 where nothing is committed.
    }
