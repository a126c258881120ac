"""Reads the offset-syncs topic again if it was recreated meanwhile.

The archive's incremental read and the server's cache call ``read_stable``.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import SyncsTopicError, TopicNotFoundError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.sync_log import SYNCS_PARTITION

_TRIES = 3

Result = TypeVar("Result")


class SyncsTopicState(NamedTuple):
    """Tells whether the offset-syncs topic is the one that it was, and how far it has come."""

    topic_id: str | None
    """Another one than before: the topic was recreated. None: the cluster is older than 2.8."""
    end: int


def read_stable(
    cluster: KafkaCluster,
    topic: str,
    read: Callable[[SyncsTopicState], tuple[int, Result] | None],
) -> Result | None:
    """Return what ``read`` brings while the topic stays the same one.

    Args:
        cluster: The cluster that holds the topic.
        topic: Its name.
        read: Is given the topic's state before the read. Returns the first offset of a later read
            and the result, or None to be called again.

    Returns:
        None where the topic does not exist.

    Raises:
        SyncsTopicError: The topic was recreated or truncated during each read.
        Mm2OffsetsError: See ``KafkaCluster.topics``; and what ``read`` raises.
    """
    for _ in range(_TRIES):
        before = look(cluster, topic)
        if before is None:
            return None
        answer = read(before)
        if answer is None:
            continue
        next_offset, result = answer
        after = look(cluster, topic)
        if after and after.topic_id == before.topic_id and after.end >= next_offset:
            return result
    raise SyncsTopicError(
        f"the topic was recreated or truncated during each of {_TRIES} reads; find out what does "
        f"that",
        cluster=cluster.name,
        topic=topic,
    )


def look(cluster: KafkaCluster, topic: str) -> SyncsTopicState | None:
    """Return the topic's state; None where it does not exist."""
    info = cluster.topics([topic]).get(topic)
    if info is None:
        return None
    try:
        (watermarks,) = cluster.watermarks([TopicPartition(topic, SYNCS_PARTITION)]).values()
    except TopicNotFoundError:
        return None
    return SyncsTopicState(info.topic_id, watermarks.high)
