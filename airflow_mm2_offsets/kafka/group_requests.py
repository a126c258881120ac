"""Sends the requests about consumer groups; ``groups`` reads by them, ``group_commits`` commits.

librdkafka takes one group for each request about offsets; many requests are sent at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from itertools import islice
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.session import ClientSession, is_unanswered

KeyT = TypeVar("KeyT")
ItemT = TypeVar("ItemT")

AT_A_TIME = 200
"""Requests that are under way at once: librdkafka has a thread for each client, not for each."""


def group_failure(
    admin: ClientSession[AdminClient],
    error: KafkaError,
    group: str,
    partition: PartitionOffset,
    operation: Operation,
) -> Mm2OffsetsError:
    """Return the error of a partition; only one about the group's own rights is about the group."""
    is_about_group = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    return admin.failure(
        error,
        operation=operation,
        group=group if is_about_group else None,
        topic=partition.topic,
        partition=partition.partition,
    )


def ask_each(
    admin: ClientSession[AdminClient],
    send: Callable[..., Mapping[str, Future[Any]]],
    requests: Mapping[KeyT, ConsumerGroupTopicPartitions],
) -> Iterator[tuple[KeyT, Future[Any]]]:
    """Send one request for each group, some at a time; yield the answers.

    A request that was answered is not sent again because of another one: a commit that was written
    would be refused if the group has got members since.
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
        yield from admin.ask(send_missing).items()


def batched(items: Iterable[ItemT], size: int) -> Iterator[tuple[ItemT, ...]]:
    """Yield the items in tuples, as ``itertools.batched`` of Python 3.12 does."""
    left = iter(items)
    while some := tuple(islice(left, size)):
        yield some
