"""Reads the positions of a Spark checkpoint for a pair of clusters.

Every command, operator and route that translates a checkpoint's positions reads it here. A
checkpoint names topics, and both clusters may have topics of that name: what lies beside it says
which cluster its offsets are of.
"""

import logging
from collections.abc import Callable

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.ids import ClusterIds, IdChange, PairIds
from airflow_mm2_offsets.errors import (
    CheckpointError,
    ClusterRefusedError,
    ClusterUnreachableError,
    ForeignPositionsError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.checks import job_cluster_problems
from airflow_mm2_offsets.planning.ids import read_cluster_ids
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.cluster_notes import ClusterNotes, NotedIds, NotedServers
from airflow_mm2_offsets.storage import open_location

log = logging.getLogger(__name__)

_OTHER_CLUSTER = (
    "give the checkpoint of the job on the source, or the connection that names the clusters the "
    "other way round. Delete the file only if it is wrong: if the job has read the source all along"
)
_RECREATED = (
    "the topic was deleted or recreated since, so the positions are of other records. Let the job "
    "on the source commit a batch of the topic that exists now, or start the job on the target at "
    "offsets that you choose"
)


def open_checkpoint(location: str) -> UPath:
    """Return a path on any storage that fsspec knows.

    Raises:
        CheckpointError: No library for the storage is installed.
    """
    return open_location(location, CheckpointError)


def read_checkpoint_of(
    pair: ClusterPair,
    location: UPath | str,
    *,
    open_path: Callable[[str], UPath] = open_checkpoint,
    control: UPath | None = None,
    ask_source: bool = True,
    compare_topics: bool = True,
) -> Checkpoint:
    """Read a checkpoint of a job on the pair's source.

    Args:
        pair: The clusters, as the job moves between them.
        location: The checkpoint's.
        open_path: Makes a path of a location on any storage.
        control: The job's control location, if it is known.
        ask_source: Whether the source may be asked. Without it only a checkpoint of the target is
            noticed.
        compare_topics: Compare the ids of topics, too. False where the caller compares those that
            were noted when the positions were first read.

    Raises:
        CheckpointError: See ``spark.checkpoint.read_checkpoint``.
        ForeignPositionsError: What lies beside it says that its positions are of another cluster,
            or of a topic that was recreated since.
        HandoverError: A note beside it is damaged.
    """
    checkpoint = read_checkpoint(location)
    place = open_path(location) if isinstance(location, str) else location
    notes = ClusterNotes.read(place, checkpoint, open_path=open_path, control=control)
    notes = notes if compare_topics else notes.without_topics()
    check_cluster(pair, notes, ask_source=ask_source)
    return checkpoint


def check_cluster(pair: ClusterPair, notes: ClusterNotes, *, ask_source: bool = True) -> None:
    """Raise unless a checkpoint's positions can be of the pair's source.

    A cluster that does not answer contradicts nothing.

    Raises:
        ForeignPositionsError: The file beside the checkpoint, both ids and the next step are named.
    """
    for noted in notes.ids:
        _check_ids(pair, noted, ask_source=ask_source)
    for named in notes.servers:
        _check_servers(pair, named)


def _check_ids(pair: ClusterPair, noted: NotedIds, *, ask_source: bool) -> None:
    topics = noted.ids.topic_ids
    now = _ids_of(pair.source, *topics) if ask_source else ClusterIds()
    if now.cluster_id is None and noted.ids.cluster_id is not None:
        target = _ids_of(pair.target).cluster_id
        if target == noted.ids.cluster_id:
            raise _of_other_cluster(pair, noted.file, target, "does not answer")
    for change in PairIds(source=noted.ids).changes(PairIds(source=now)):
        if change.field == "clusters.source.cluster_id":
            raise _of_other_cluster(pair, noted.file, change.planned, f"is {change.now}")
        raise _recreated(pair, noted.file, change)


def _check_servers(pair: ClusterPair, named: NotedServers) -> None:
    for problem in job_cluster_problems(pair, named.servers):
        raise ForeignPositionsError(problem, file=named.file)


def _ids_of(cluster: KafkaCluster, *topics: str) -> ClusterIds:
    try:
        return read_cluster_ids(cluster, topics)
    except (ClusterUnreachableError, ClusterRefusedError) as error:
        log.warning("The ids of the %s are not compared: %s", cluster.name, error)
        return ClusterIds()


def _of_other_cluster(
    pair: ClusterPair, file: str, noted: str | None, source: str
) -> ForeignPositionsError:
    return ForeignPositionsError(
        f"says that the checkpoint's positions are of the cluster {noted}, and the "
        f"{pair.source.name} {source}: {_OTHER_CLUSTER}",
        file=file,
    )


def _recreated(pair: ClusterPair, file: str, change: IdChange) -> ForeignPositionsError:
    topic = change.field.removeprefix("clusters.source.topic_ids.")
    now = "is gone" if change.now is None else f"has the id {change.now}"
    return ForeignPositionsError(
        f"says that the checkpoint's positions are of the topic with the id {change.planned}, and "
        f"the topic of the {pair.source.name} {now}: {_RECREATED}",
        file=file,
        topic=topic,
    )
