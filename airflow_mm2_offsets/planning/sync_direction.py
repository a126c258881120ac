"""Proves that an offset-syncs topic has the syncs of a pair, and not those of the flow back.

``EvidenceCollector`` calls it for a new plan; a kept plan was proven when it was made. A topic's
name has the alias of the cluster that does not hold it, and not the direction
(``MirrorSourceConfig.offsetSyncsTopic``): what A->B writes with ``offset-syncs.topic.location`` =
target is what B->A writes with source.
"""

from collections.abc import Mapping
from dataclasses import replace

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Evidence, SyncIndex, SyncsLocation
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.errors import ClusterRefusedError, ConfigurationError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.contradictions import find_confirmation
from airflow_mm2_offsets.planning.options import PlanOptions


def require_direction(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[PartitionPosition, Evidence],
    options: PlanOptions,
) -> None:
    """Refuse syncs that may be those of the flow back.

    They may be if the other location holds an offset-syncs topic too, or hides it, and no sync of
    the positions' partitions has the same record on both clusters. For a pair whose settings were
    compared with Connect's there is nothing to prove.

    Raises:
        ConfigurationError: Nothing proves the direction.
    """
    other = _other_location(pair)
    cluster, topic = other.syncs_cluster, other.syncs_topic
    has_syncs = any(index.partitions.get(key.topic_partition) for key in evidence)
    if not has_syncs or not _may_exist(cluster, topic):
        return
    if options.max_evidence_bytes and find_confirmation(pair, index, evidence):
        return
    raise ConfigurationError(
        f"the offset syncs in topic {pair.syncs_topic} on the {pair.syncs_cluster.name} may be "
        f"those of the flow back: topic {topic} on the {cluster.name} exists too or is hidden, and "
        "no record proves the direction. See offset-syncs.topic.location of MirrorMaker 2's "
        f"connector from {pair.naming.source_alias} to {pair.naming.target_alias}, correct "
        f"offset_syncs_topic_location, and give connect_url: then Connect's settings are compared"
    )


def _other_location(pair: ClusterPair) -> ClusterPair:
    (location,) = set(SyncsLocation) - {pair.syncs_location}
    return replace(pair, syncs_location=location)


def _may_exist(cluster: KafkaCluster, topic: str) -> bool:
    try:
        return bool(cluster.topics([topic]))
    except ClusterRefusedError:
        return True  # Only the owner of the other flow needs the right to see it.
