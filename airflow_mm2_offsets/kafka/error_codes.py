"""What the error codes of brokers and librdkafka mean for who asks; see ``kafka.session``."""

from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from airflow_mm2_offsets.kafka.reports import ALL_BROKERS_DOWN, AUTHENTICATION

NOT_FOUND = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - how the library names its local errors
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._NOENT,  # noqa: SLF001
    }
)
"""A topic or a partition that the broker does not have, or librdkafka has not heard of."""

_BROKER_REPLACED = -137  # RD_KAFKA_RESP_ERR__DESTROY_BROKER; older clients have no name for it
"""The handle of a bootstrap server was replaced by that of the broker behind it."""

NO_ANSWER = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
        ALL_BROKERS_DOWN,
        AUTHENTICATION,
        _BROKER_REPLACED,
        # Kafka calls these retriable: a broker starts, or a leader, coordinator or disk changes,
        # or a transaction is about to end.
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
"""No broker has answered yet: to ask again may help, until the time is up."""


def is_unanswered(future: Future[Any]) -> bool:
    """Tell whether a request that is done may get an answer when it is sent again.

    Answers about a group's offsets have an error for each partition, the coordinator's too.
    """
    error = future.exception()
    if error is not None:
        return isinstance(error, KafkaException) and error.args[0].code() in NO_ANSWER
    partitions = getattr(future.result(), "topic_partitions", None) or ()
    return any(each.error is not None and each.error.code() in NO_ANSWER for each in partitions)
