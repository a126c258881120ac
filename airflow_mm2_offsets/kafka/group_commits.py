"""Commits offsets for consumer groups without members; ``KafkaCluster`` calls it."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from itertools import chain
from typing import Any, TypeAlias

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.core.group_offsets import GroupCommit
from airflow_mm2_offsets.kafka.error_codes import NO_ANSWER
from airflow_mm2_offsets.kafka.group_requests import ask_each, batched, group_failure
from airflow_mm2_offsets.kafka.session import ClientSession

CommitErrors: TypeAlias = dict[tuple[str, TopicPartition], str]
"""What a broker said of each commit that it refused."""

_MAX_BYTES = 2**19
"""The size of one commit, about. The broker writes it as one batch of __consumer_offsets, whose
``max.message.bytes`` is 1 MiB by default."""
_RECORD_BYTES = 100
"""What a record of that batch takes beside its texts."""
_ACTIVE = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP})
"""How a broker refuses commits for a group with members: by OffsetCommit's rule (KIP-396)."""
_NOT_ALLOWED = frozenset(
    {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)


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
        for number, some in enumerate(batched(sorted(commits.items()), _at_once(group, commits)))
    }
    answers = ask_each(admin, admin.client.alter_consumer_group_offsets, requests)
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
    failure = group_failure(admin, error, group, partition, Operation.READ)
    if error.code() in NO_ANSWER or error.code() in _NOT_ALLOWED:
        raise failure
    return str(failure)
