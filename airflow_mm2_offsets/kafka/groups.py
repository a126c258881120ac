"""Asks a cluster for consumer groups and their offsets, and commits for groups without members.

``KafkaCluster`` calls it. librdkafka takes one group for each request about offsets; many requests
are sent at once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

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
from airflow_mm2_offsets.errors import ErrorFields, Mm2OffsetsError
from airflow_mm2_offsets.kafka.error_codes import NO_ANSWER
from airflow_mm2_offsets.kafka.session import ClientSession, is_unanswered

GroupOffsets: TypeAlias = dict[str, dict[TopicPartition, GroupCommit]]
"""Group, then topic-partition, then what the group has committed."""
CommitErrors: TypeAlias = dict[tuple[str, TopicPartition], str]
"""What a broker said of each commit that it refused."""
KeyT = TypeVar("KeyT")
ItemT = TypeVar("ItemT")

_MAX_BYTES = 2**19
"""The size of one commit, about. The broker writes it as one batch of __consumer_offsets, whose
``max.message.bytes`` is 1 MiB by default."""
_RECORD_BYTES = 100
"""What a record of that batch takes beside its texts."""
_AT_A_TIME = 200
"""Requests that are under way at once: librdkafka has a thread for each client, not for each."""
_WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
_NOT_THERE = frozenset({KafkaError.GROUP_ID_NOT_FOUND})
_ACTIVE = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP})
"""How a broker refuses commits for a group with members: by OffsetCommit's rule (KIP-396)."""
_NOT_ALLOWED = frozenset(
    {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)


def count_members(admin: ClientSession[AdminClient], groups: Collection[str]) -> dict[str, int]:
    """Return how many members each group has, at least 1 while it may get some; 0: it is empty.

    A group that does not exist has none (KIP-1043: Kafka 4.0 says so, older brokers say DEAD).
    """
    counts: dict[str, int] = {}
    for some in _batched(sorted(set(groups)), _AT_A_TIME):
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
    answers = _ask_each(admin, admin.client.list_consumer_group_offsets, requests)
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
    answers = dict(_ask_each(admin, send, requests))
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
            subject: ErrorFields = {"topic": each.topic, "partition": each.partition}
            raise _failure(admin, each.error, group, subject, Operation.DESCRIBE)
    return {
        TopicPartition(each.topic, each.partition): GroupCommit(
            offset=each.offset, metadata=each.metadata or ""
        )
        for each in partitions
        if each.offset >= 0  # Kafka answers -1 where nothing is committed.
    }


def commit_group_offsets(
    admin: ClientSession[AdminClient], offsets: Mapping[str, Mapping[TopicPartition, GroupCommit]]
) -> CommitErrors:
    """Commit for groups without members (KIP-396, ``alterConsumerGroupOffsets``).

    A group that has got members meanwhile is refused by the broker; others go on.

    Returns:
        What was refused, with the reason.

    Raises:
        ClusterRefusedError: A right is missing. Some commits may have been written.
        ClusterUnreachableError: No answer came in time. Some commits may have been written.
    """
    requests = {
        (group, number): ConsumerGroupTopicPartitions(
            group,
            [PartitionOffset(*key, each.offset, each.metadata) for key, each in some],
        )
        for group, commits in offsets.items()
        for number, some in enumerate(_batched(sorted(commits.items()), _at_once(group, commits)))
    }
    answers = _ask_each(admin, admin.client.alter_consumer_group_offsets, requests)
    return dict(
        chain.from_iterable(_refusals(admin, requests[key], future) for key, future in answers)
    )


def _at_once(group: str, commits: Mapping[TopicPartition, GroupCommit]) -> int:
    """Return how many partitions of a group fit into one commit."""
    largest = max(
        (len(f"{group}{key.topic}{each.metadata}".encode()) for key, each in commits.items()),
        default=0,
    )
    return max(1, _MAX_BYTES // (largest + _RECORD_BYTES))


def _refusals(
    admin: ClientSession[AdminClient], request: ConsumerGroupTopicPartitions, future: Future[Any]
) -> Iterator[tuple[tuple[str, TopicPartition], str]]:
    group, partitions = request.group_id, request.topic_partitions or []
    failure = future.exception()
    if isinstance(failure, KafkaException):
        errors = [failure.args[0]] * len(partitions)
    else:
        partitions = future.result().topic_partitions
        errors = [each.error for each in partitions]
    for each, error in zip(partitions, errors, strict=True):
        if error is not None:
            reason = _why_refused(admin, group, each, error)
            yield (group, TopicPartition(each.topic, each.partition)), reason


def _why_refused(
    admin: ClientSession[AdminClient], group: str, partition: PartitionOffset, error: KafkaError
) -> str:
    if error.code() in _ACTIVE:
        return (
            f"the group got members after it was checked, and Kafka refuses commits of others "
            f"({error.name()})"
        )
    subject: ErrorFields = {"topic": partition.topic, "partition": partition.partition}
    failure = _failure(admin, error, group, subject, Operation.READ)
    if error.code() in NO_ANSWER or error.code() in _NOT_ALLOWED:
        raise failure
    return str(failure)


def _failure(
    admin: ClientSession[AdminClient],
    error: KafkaError,
    group: str,
    subject: ErrorFields,
    operation: Operation,
) -> Mm2OffsetsError:
    """Return the error; only one about the group's own rights is about the group."""
    is_about_group = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    named = group if is_about_group else None
    return admin.failure(error, operation=operation, group=named, **subject)


def _ask_each(
    admin: ClientSession[AdminClient],
    send: Callable[..., Mapping[str, Future[Any]]],
    requests: Mapping[KeyT, ConsumerGroupTopicPartitions],
) -> Iterator[tuple[KeyT, Future[Any]]]:
    """Send one request for each group, some at a time; yield the answers.

    A request that was answered is not sent again because of another one: a commit that was written
    would be refused if the group has got members since.
    """
    for some in _batched(requests.items(), _AT_A_TIME):
        answered: dict[KeyT, Future[Any]] = {}

        def send_missing(
            some: Iterable[tuple[KeyT, ConsumerGroupTopicPartitions]] = some,
            answered: dict[KeyT, Future[Any]] = answered,
            **options: Any,
        ) -> Mapping[KeyT, Future[Any]]:
            for key, request in some:
                if key not in answered or is_unanswered(answered[key]):
                    (answered[key],) = send([request], **options).values()
            return answered

        admin.reset_deadline()
        yield from admin.ask(send_missing).items()


def _batched(items: Iterable[ItemT], size: int) -> Iterator[tuple[ItemT, ...]]:
    """Yield the items in tuples, as ``itertools.batched`` of Python 3.12 does."""
    left = iter(items)
    while some := tuple(islice(left, size)):
        yield some
