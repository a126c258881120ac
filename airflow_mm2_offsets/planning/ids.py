"""Reads the ids of clusters and topics, which are compared before any offset.

A plan holds them; tasks that go by a plan or by positions read them again.
"""

import logging
from collections.abc import Iterable

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

log = logging.getLogger(__name__)


def read_ids(pair: ClusterPair, topics: Iterable[str], *, ask_source: bool) -> PairIds:
    """Return the ids of both clusters and of the topics there.

    Read them before the offsets. If a topic is recreated in between, the plan holds its older id,
    and the next comparison shows it.

    Args:
        pair: The clusters.
        topics: By the source's names.
        ask_source: Whether the source can be asked; its ids are unknown otherwise.

    Raises:
        ClusterUnreachableError: A cluster does not answer.
        ConfigurationError: Both are the same cluster.
    """
    names = sorted(set(topics))
    ids = PairIds(
        source=read_cluster_ids(pair.source, names) if ask_source else ClusterIds(),
        target=read_cluster_ids(pair.target, map(pair.naming.target_topic, names)),
    )
    check_two_clusters(pair, ids.source.cluster_id, ids.target.cluster_id)
    return ids


def read_known_ids(pair: ClusterPair, topics: Iterable[str], *, ask_source: bool = True) -> PairIds:
    """Return the current ids, to compare or to note; without the source's if it does not answer.

    Raises:
        ClusterUnreachableError: The target does not answer.
    """
    try:
        return read_ids(pair, topics, ask_source=ask_source)
    except ClusterUnreachableError as error:
        # A source that does not answer any more must not hold the job back.
        ids = read_ids(pair, topics, ask_source=False)
        log.warning("The ids of the source are not compared, those of the target are: %s", error)
        return ids


def read_cluster_ids(cluster: KafkaCluster, names: Iterable[str]) -> ClusterIds:
    """Return the ids of a cluster and of topics there; a topic that does not exist is left out.

    Raises:
        ClusterUnreachableError: The cluster does not answer.
    """
    topics = cluster.topics(names)
    return ClusterIds(
        cluster_id=cluster.describe().cluster_id,
        topic_ids={name: topics[name].topic_id for name in sorted(topics)},
    )


def check_two_clusters(pair: ClusterPair, source_id: str | None, target_id: str | None) -> None:
    """Refuse one cluster that is given twice, by Kafka's ids of the clusters, where they are known.

    Raises:
        ConfigurationError: Both ids are the same.
    """
    if source_id is not None and source_id == target_id:
        raise ConfigurationError(
            f"{pair.source.name} and {pair.target.name} are the same cluster, {source_id}: correct "
            f"the bootstrap.servers of one of them"
        )
