"""Asks for offsets of partitions: where they begin, where they end, and those of a time.

``KafkaCluster`` calls it.
"""

import time
from collections.abc import Collection, Mapping
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionOffset
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import ClusterUnreachableError, ErrorFields, TopicNotFoundError
from airflow_mm2_offsets.kafka.session import ASK_AGAIN, ClientSession


def read_offsets(
    consumer: ClientSession[Consumer], partitions: Collection[TopicPartition], special_time: int
) -> dict[TopicPartition, int]:
    """Return where partitions begin or end: ListOffsets takes these as special times (KIP-79).

    An admin client sends the same request, and takes three times as long for 1,000 partitions. It
    is better for real times: here, a partition without an answer comes back unchanged.

    Raises:
        TopicNotFoundError: A topic or a partition does not exist.
        ClusterRefusedError: A topic is hidden from the user.
        ClusterUnreachableError: A partition's leader does not answer.
    """
    answers = _ask(consumer, [PartitionOffset(*each, special_time) for each in partitions])
    if any(each.offset < 0 for each in answers):
        raise consumer.unreachable()
    return {TopicPartition(each.topic, each.partition): each.offset for each in answers}


def read_offsets_at(
    admin: ClientSession[AdminClient], times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the offset of the first record at or after a time; see ``KafkaCluster.offsets_at``."""
    specs = {PartitionOffset(*each): OffsetSpec.for_timestamp(time) for each, time in times.items()}
    futures = admin.ask(partial(admin.client.list_offsets, specs))
    offsets = {
        TopicPartition(each.topic, each.partition): admin.result(future, **_subject(each)).offset
        for each, future in futures.items()
    }
    # Kafka answers -1 if all records are older.
    return {each: offset for each, offset in offsets.items() if offset >= 0}


def _ask(
    consumer: ClientSession[Consumer], requested: list[PartitionOffset]
) -> list[PartitionOffset]:
    while True:
        answers, error = _ask_once(consumer, requested)
        if error is None:
            return answers
        consumer.run_callbacks()
        failed = next((each for each in answers if each.error is not None), requested[0])
        failure = consumer.failure(error, **_subject(failed))
        if isinstance(failure, TopicNotFoundError) and _are_listed(consumer, requested):
            failure = consumer.unreachable()
        if consumer.is_over or not isinstance(failure, ClusterUnreachableError):
            raise failure
        time.sleep(ASK_AGAIN)


def _ask_once(
    consumer: ClientSession[Consumer], requested: list[PartitionOffset]
) -> tuple[list[PartitionOffset], KafkaError | None]:
    """Return the answers and the first error; one that concerns all partitions has no answers."""
    try:
        answers = consumer.client.offsets_for_times(requested, timeout=consumer.remaining)
    except KafkaException as error:
        return [], error.args[0]
    return answers, next((each.error for each in answers if each.error is not None), None)


def _are_listed(consumer: ClientSession[Consumer], partitions: list[PartitionOffset]) -> bool:
    """Tell whether the brokers list all partitions.

    librdkafka does not find one that has just been created, nor one whose leader is out of reach
    at the address that it advertises.

    Raises:
        ClusterRefusedError: A topic is missing from the list because the user may not see it.
    """
    topics = consumer.metadata().topics
    for name in sorted({each.topic for each in partitions} - topics.keys()):
        topic = consumer.metadata(name).topics.get(name)
        error = topic.error if topic else None
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise consumer.failure(error, topic=name)
    return all(
        each.topic in topics and each.partition in topics[each.topic].partitions
        for each in partitions
    )


def _subject(partition: PartitionOffset) -> ErrorFields:
    return {"topic": partition.topic, "partition": partition.partition}
