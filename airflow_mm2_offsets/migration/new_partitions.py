"""Partitions of the target that a checkpoint does not know: Spark reads them from the beginning."""

from collections.abc import Sequence
from typing import NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import TranslationRefusedError
from airflow_mm2_offsets.migration.plan import RequiredPosition, beginning
from airflow_mm2_offsets.spark.rewriting import OffsetFile


class NewPartitions(NamedTuple):
    """What the target's new partitions require."""

    required: list[RequiredPosition]
    """The beginning of each, which must be that of the source's copies."""
    notes: list[str]


def new_partitions(
    pair: ClusterPair, files: Sequence[OffsetFile], *, read_source: bool, check: bool
) -> NewPartitions:
    """Return what must hold of the target's partitions that the checkpoint does not know.

    On the source the job would also read them from the beginning, once it saw them. The last file
    has the newest batch. Without ``check`` there are only notes.

    Raises:
        TranslationRefusedError: The source has no such partition, and the target has records.
    """
    known = {position.topic_partition for position in files[-1].positions()}
    topics = {partition.topic for partition in known}
    source = pair.source.topics(topics) if read_source else {}
    new = NewPartitions([], [])
    for partition, on_target in _unknown(pair, topics, known):
        label = f"{on_target}, which the checkpoint does not know,"
        new.notes.append(f"{label} is read from its beginning")
        high = pair.target.watermarks([on_target])[on_target].high
        if not check or not high:
            continue
        if partition.topic in source and partition.partition >= source[partition.topic].partitions:
            raise TranslationRefusedError(
                f"{label} has held records up to {high}, and the source has no such partition: "
                f"the job would read foreign records; if it names its partitions (assign), set "
                f"allow_new_partitions"
            )
        new.required.append(beginning(files[-1], partition))
    return new


def _unknown(
    pair: ClusterPair, topics: set[str], known: set[TopicPartition]
) -> list[tuple[TopicPartition, TopicPartition]]:
    """Return the new partitions, each under its name on the source and on the target."""
    names = {topic: pair.naming.target_topic(topic) for topic in sorted(topics)}
    on_target = pair.target.topics(names.values())
    return [
        (TopicPartition(topic, number), TopicPartition(name, number))
        for topic, name in names.items()
        if name in on_target  # the translation refuses a topic that is missing
        for number in range(on_target[name].partitions)
        if (topic, number) not in known
    ]
