"""Reads MirrorMaker 2's checkpoints topic: its own translation of each group's commits.

``groups`` calls it, once for all groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.wire import Checkpoint, decode_checkpoint
from airflow_mm2_offsets.errors import SyncsTopicError, WireFormatError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsRead:
    """The newest checkpoint of each group and topic-partition."""

    checkpoints: Mapping[tuple[str, TopicPartition], Checkpoint]
    """By group and topic-partition, by the target's names."""
    records_read: int
    """Older checkpoints and records that are none count too."""
    skipped_count: int
    """Records that are not checkpoints."""


def read_checkpoints(cluster: KafkaCluster, topic: str) -> CheckpointsRead:
    """Read every checkpoint up to the topic's end; the newest of a key counts.

    Args:
        cluster: The target.
        topic: Its name; see ``Naming.checkpoints_topic``.

    Raises:
        SyncsTopicError: The topic does not exist.
        Mm2OffsetsError: See ``drain``.
    """
    info = cluster.topics([topic]).get(topic)
    if info is None:
        raise SyncsTopicError(
            "the checkpoints topic does not exist; see that a MirrorCheckpointConnector runs with "
            "emit.checkpoints.enabled, and that source_alias and the separator are its own",
            cluster=cluster.name,
            topic=topic,
        )
    newest: dict[tuple[str, TopicPartition], Checkpoint] = {}
    count = skipped = 0
    starts = {TopicPartition(topic, number): 0 for number in range(info.partitions)}
    for record in chain.from_iterable(drain(cluster, starts)):
        count += 1
        try:
            checkpoint = decode_checkpoint(record.key(), record.value())
        except WireFormatError:
            skipped += 1
            continue
        partition = TopicPartition(checkpoint.topic, checkpoint.partition)
        newest[checkpoint.group, partition] = checkpoint
    return CheckpointsRead(checkpoints=newest, records_read=count, skipped_count=skipped)
