"""The rights that a task needs on a pair of clusters, by name; the command ``acls`` prints them."""

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.acls import (
    OF_SAME_OFFSETS,
    PLANNING,
    TASK_RIGHTS,
    Acl,
    Operation,
    Place,
    Resource,
    Right,
    TaskRights,
)
from airflow_mm2_offsets.core.naming import HEARTBEATS_TOPIC
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

_ALL = "*"


class ClusterAcl(NamedTuple):
    """A right on one of the two clusters."""

    side: Literal["source", "target"]
    acl: Acl


def acls_of(pair: ClusterPair, task: str, topics: Collection[str]) -> list[ClusterAcl]:
    """Return the rights that a task needs.

    Args:
        pair: The clusters; no request is sent.
        task: A name or a user of ``TASK_RIGHTS``: ``translate``, ``ArchiveSyncsOperator``.
        topics: The job's topics, by the source's names; a name that ends in ``*`` is a prefix.

    Raises:
        ConfigurationError: There is no such task.
    """
    listed = _rights_of(task)
    reads_settings = not pair.has_syncs and listed.task in PLANNING
    rights = (*listed.rights, *(OF_SAME_OFFSETS if reads_settings else ()))
    acls = [each for right in rights for each in _resolve(pair, right, topics)]
    return list(dict.fromkeys(acls))


def _rights_of(task: str) -> TaskRights:
    for each in TASK_RIGHTS:
        if task == each.task or task in each.used_by:
            return each
    names = ", ".join(each.task for each in TASK_RIGHTS)
    raise ConfigurationError(
        f"no rights are listed for {task!r}; give one of {names}, or an operator's class"
    )


def _resolve(pair: ClusterPair, right: Right, topics: Collection[str]) -> Iterator[ClusterAcl]:
    operation = right.operation
    match right.place:
        case Place.SOURCE_TOPICS:
            yield from (ClusterAcl("source", _on_topic(operation, each)) for each in topics)
        case Place.TARGET_TOPICS:
            for each in map(pair.naming.target_topic, topics):
                yield ClusterAcl("target", _on_topic(operation, each))
        case Place.SYNCS_TOPIC if not pair.has_syncs:
            return
        case Place.SOURCE_GROUPS | Place.TARGET_GROUPS:
            acl = Acl(resource=Resource.GROUP, name=_ALL, operation=operation)
            yield ClusterAcl("source" if right.place is Place.SOURCE_GROUPS else "target", acl)
        case Place.SOURCE_CLUSTER:
            acl = Acl(resource=Resource.CLUSTER, name="kafka-cluster", operation=operation)
            yield ClusterAcl("source", acl)
        case place:
            cluster, topic = _own_topic(pair, place)
            yield ClusterAcl(_side(pair, cluster), _on_topic(operation, topic))


def _own_topic(pair: ClusterPair, place: Place) -> tuple[KafkaCluster, str]:
    """Return a topic of MirrorMaker 2's own, and its cluster."""
    if place is Place.SYNCS_TOPIC:  # Not every pair has one.
        return pair.syncs_cluster, pair.syncs_topic
    naming, mirrored = pair.naming, pair.mirrored
    topics = {
        Place.SOURCE_HEARTBEATS: (mirrored.source, HEARTBEATS_TOPIC),
        Place.HEARTBEATS_TOPIC: (mirrored.target, naming.heartbeats_topic()),
        Place.CHECKPOINTS_TOPIC: (mirrored.target, naming.checkpoints_topic()),
    }
    return topics[place]


def _side(pair: ClusterPair, cluster: KafkaCluster) -> Literal["source", "target"]:
    return "source" if cluster is pair.source else "target"


def _on_topic(operation: Operation, name: str) -> Acl:
    is_prefix = name.endswith(_ALL) and name != _ALL
    name = name.removesuffix(_ALL) if is_prefix else name
    return Acl(resource=Resource.TOPIC, name=name, operation=operation, is_prefix=is_prefix)
