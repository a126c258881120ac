"""Notes what later tasks of a failover compare: the ids of clusters and topics."""

from collections.abc import Mapping
from typing import Any, TypedDict

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import StoredPositionsError, TopicNotFoundError
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.spark.offsets import format_offsets, to_positions


class NotedPositions(TypedDict):
    """Plain JSON, with the names that ``ReadSparkCheckpointOperator`` returns."""

    positions: str
    """As Spark's JSON text."""
    topics: str
    """Their names, separated by commas."""
    clusters: dict[str, Any]
    """The ids of clusters and topics; None stands for an id that could not be read."""


def note_positions(pair: ClusterPair, positions: Positions | str) -> NotedPositions:
    """Return positions with the ids of the clusters and topics that they are of.

    Call it when the positions are read. Where the source answers, each partition of a topic must
    have a position: a job would begin a partition without one wherever its own settings say.

    Args:
        pair: The clusters: ``Mm2OffsetHook("mm2_default").get_conn()``.
        positions: What a reader returned, as a mapping or as Spark's JSON text.

    Raises:
        PositionError: They are not positions.
        StoredPositionsError: A partition of the source's topic has no position, or has one and does
            not exist.
        TopicNotFoundError: The source has no such topic.
        ClusterUnreachableError: The target does not answer.
    """
    checked = to_positions(positions)
    ids = read_known_ids(pair, checked)
    if ids.source.cluster_id is not None:
        _check_partitions(pair, checked)
    return NotedPositions(
        positions=format_offsets(checked),
        topics=",".join(checked),
        clusters=ids.to_json(),
    )


def _check_partitions(pair: ClusterPair, positions: Positions) -> None:
    topics = pair.source.topics(positions)
    for topic, partitions in sorted(positions.items()):
        if topic not in topics:
            raise TopicNotFoundError(
                "the topic does not exist there; see that the connection names the cluster that "
                "the job reads",
                cluster=pair.source.name,
                topic=topic,
            )
        differing = set(range(topics[topic].partitions)) ^ partitions.keys()
        if differing:
            raise _differing_partitions(topic, min(differing), topics[topic].partitions, partitions)


def _differing_partitions(
    topic: str, partition: int, count: int, partitions: Mapping[int, int]
) -> StoredPositionsError:
    if partition in partitions:
        return StoredPositionsError(
            f"has a position, {partitions[partition]}, and the source's topic has {count} "
            f"partitions; see that the connection names the cluster that the job reads",
            topic=topic,
            partition=partition,
        )
    return StoredPositionsError(
        f"has no position, and the source's topic has {count} partitions: the job would begin "
        f"there wherever its own settings say. If it has read nothing of the partition, give it "
        f"a position yourself (0, or the first offset that it holds)",
        topic=topic,
        partition=partition,
    )
