"""Asks a cluster for the members of consumer groups, and for what groups have committed.

A broker may refuse to tell it of one group, as of a share group (KIP-932) of that name: the others
are answered.

``KafkaCluster`` calls it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
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
from airflow_mm2_offsets.kafka.error_codes import is_unanswered
from airflow_mm2_offsets.kafka.group_requests import (
    AT_A_TIME,
    ask_each,
    batched,
    errors_of,
    group_refusal,
)
from airflow_mm2_offsets.kafka.session import ClientSession

GroupOffsets: TypeAlias = dict[str, dict[TopicPartition, GroupCommit]]
"""Group, then topic-partition, then what the group has committed."""

_WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
_NOT_THERE = frozenset({KafkaError.GROUP_ID_NOT_FOUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsRead:
    """What groups have committed, and the groups of which it can't be told."""

    offsets: GroupOffsets
    """A group or a partition without a commit is absent."""
    pending: frozenset[str] = frozenset()
    """A transaction may still commit for them, or they were not answered in time."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """What the broker said of each group that it refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStates(GroupsRead):
    """The same, with the members."""

    members: Mapping[str, int]
    """How many members each group has, at least 1 while it may get some."""


def read_group_offsets(admin: ClientSession[AdminClient], groups: Collection[str]) -> GroupsRead:
    """Return all that groups have committed."""
    return _read(admin, admin.client.list_consumer_group_offsets, _whole(groups))


def read_group_states(
    admin: ClientSession[AdminClient],
    partitions: Mapping[str, Collection[TopicPartition]],
    *,
    patience: float,
) -> GroupStates:
    """Return the members of groups, and all that they have committed.

    The offsets come last: a consumer that has left since was a member, or its commit is seen. They
    are asked twice. Of partitions that are named, Kafka tells that a transaction may still commit,
    also where nothing was committed before (KIP-447). Without names it tells all commits.

    Args:
        admin: The client.
        partitions: Which ones are to be committed for each group.
        patience: Seconds after which a group is ``pending``. Where the time is over, only those
            with an open transaction are; that the others were not answered is an error.
    """
    members, refusals = _count_members(admin, partitions)
    named = {
        group: ConsumerGroupTopicPartitions(group, [PartitionOffset(*key) for key in sorted(keys)])
        for group, keys in sorted(partitions.items())
        if keys and group not in refusals
    }
    send = partial(admin.client.list_consumer_group_offsets, require_stable=True)
    stable = _read(admin, send, named, patience)
    refusals |= stable.refusals
    left = _whole(partitions.keys() - refusals.keys() - stable.pending)
    whole = _read(admin, send, left, patience)
    return GroupStates(
        members=members,
        offsets=whole.offsets,
        pending=stable.pending | whole.pending,
        refusals={**refusals, **whole.refusals},
    )


def _whole(groups: Iterable[str]) -> dict[str, ConsumerGroupTopicPartitions]:
    return {group: ConsumerGroupTopicPartitions(group) for group in sorted(set(groups))}


def _count_members(
    admin: ClientSession[AdminClient], groups: Iterable[str]
) -> tuple[dict[str, int], dict[str, str]]:
    """Return how many members each group has, and of which groups the broker does not tell it.

    A group that does not exist has none (KIP-1043: Kafka 4.0 says so, older brokers say DEAD).
    """
    counts: dict[str, int] = {}
    refusals: dict[str, str] = {}
    for some in batched(sorted(groups), AT_A_TIME):
        futures = admin.ask(lambda some=some, **options: _describe(admin, some, **options))
        for group, future in futures.items():
            failure = future.exception()
            error = failure.args[0] if isinstance(failure, KafkaException) else None
            if error is not None and error.code() not in _NOT_THERE:
                refusals[group] = group_refusal(admin, error, group, Operation.DESCRIBE)
            else:
                counts[group] = 0 if error is not None else _members(future.result())
    return counts, refusals


def _describe(
    admin: ClientSession[AdminClient], groups: Iterable[str], **options: Any
) -> Mapping[str, Future[Any]]:
    return admin.client.describe_consumer_groups([*groups], **options)


def _members(description: Any) -> int:  # noqa: ANN401 - as the client types it
    if description.state in _WITHOUT_MEMBERS:
        return 0
    return max(1, len(description.members))


def _read(
    admin: ClientSession[AdminClient],
    send: Callable[..., Mapping[str, Future[Any]]],
    requests: Mapping[str, ConsumerGroupTopicPartitions],
    patience: float = math.inf,
) -> GroupsRead:
    offsets: GroupOffsets = {}
    pending: set[str] = set()
    refusals: dict[str, str] = {}
    for group, future in ask_each(admin, send, requests, patience=patience):
        errors = errors_of(future, requests[group].topic_partitions)
        is_unstable = any(error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT for _, error in errors)
        if is_unstable or (is_unanswered(future) and not admin.is_over):
            pending.add(group)
        elif errors:
            # All are looked at: a missing right is raised, wherever it stands.
            reasons = [
                group_refusal(admin, error, group, Operation.DESCRIBE, partition)
                for partition, error in errors
            ]
            refusals[group] = reasons[0]
        elif commits := _commits(future.result()):
            offsets[group] = commits
    return GroupsRead(offsets=offsets, pending=frozenset(pending), refusals=refusals)


def _commits(answer: ConsumerGroupTopicPartitions) -> dict[TopicPartition, GroupCommit]:
    return {
        TopicPartition(each.topic, each.partition): GroupCommit(
            offset=each.offset, metadata=each.metadata or ""
        )
        for each in answer.topic_partitions or ()
        if each.offset >= 0  # Kafka answers -1 where nothing is committed.
    }
