"""Sends the requests about consumer groups; ``groups`` reads by them, ``group_commits`` commits.

librdkafka takes one group for each request about offsets; many requests are sent at once.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.kafka.error_codes import NO_ANSWER, is_unanswered
from airflow_mm2_offsets.kafka.session import ClientSession

if TYPE_CHECKING:
    from airflow_mm2_offsets.errors import ErrorFields

KeyT = TypeVar("KeyT")
ItemT = TypeVar("ItemT")

_NOT_ALLOWED = frozenset(
    {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)
AT_A_TIME = 200
"""Requests that are under way at once: librdkafka has a thread for each client, not for each."""


def group_refusal(
    admin: ClientSession[AdminClient],
    error: KafkaError,
    group: str,
    operation: Operation,
    partition: PartitionOffset | None = None,
) -> str:
    """Return what a broker said of one group; others may be answered.

    Raises:
        ClusterRefusedError: A right is missing.
        ClusterUnreachableError: No answer came in time.
    """
    # Only an error about the group's own rights is about the group.
    is_about_group = partition is None or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    subject: ErrorFields = (
        {} if partition is None else {"topic": partition.topic, "partition": partition.partition}
    )
    failure = admin.failure(
        error, operation=operation, group=group if is_about_group else None, **subject
    )
    if error.code() in NO_ANSWER or error.code() in _NOT_ALLOWED:
        raise failure
    return str(failure)


def errors_of(
    future: Future[Any], partitions: Sequence[PartitionOffset] | None
) -> list[tuple[PartitionOffset | None, KafkaError]]:
    """Return the errors of an answer about a group, those of its partitions or of all.

    Args:
        future: The answer.
        partitions: Those that were named in the request, if any.
    """
    failure = future.exception()
    if isinstance(failure, KafkaException):
        named: Sequence[PartitionOffset | None] = partitions or [None]
        return [(each, failure.args[0]) for each in named]
    answered = future.result().topic_partitions or ()
    return [(each, each.error) for each in answered if each.error is not None]


def ask_each(
    admin: ClientSession[AdminClient],
    send: Callable[..., Mapping[str, Future[Any]]],
    requests: Mapping[KeyT, ConsumerGroupTopicPartitions],
    *,
    patience: float = math.inf,
) -> Iterator[tuple[KeyT, Future[Any]]]:
    """Send one request for each group, some at a time; yield the answers.

    A request that was answered is not sent again because of another one: a commit that was written
    would be refused if the group has got members since. What is not answered within ``patience``
    seconds is not sent again either.
    """
    for some in batched(requests.items(), AT_A_TIME):
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
        yield from admin.ask(send_missing, patience=patience).items()


def batched(items: Iterable[ItemT], size: int) -> Iterator[tuple[ItemT, ...]]:
    """Yield the items in tuples, as ``itertools.batched`` of Python 3.12 does."""
    left = iter(items)
    while some := tuple(islice(left, size)):
        yield some
