"""Walks through a pair of clusters step by step, and says which step fails and why.

The connection form's Test button and the command ``check-connection`` call it.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import ClusterRefusedError, ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.health import PartHealth, Walk, walk_parts
from airflow_mm2_offsets.kafka.cluster import ClusterInfo, KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.ids import check_two_clusters
from airflow_mm2_offsets.planning.mirror_config import check_names, read_mirror_connectors

_MAX_LISTED = 5


def check_connection(pair: ClusterPair) -> tuple[PartHealth, ...]:
    """Walk to every part of a pair at the same time: it takes as long as the slowest part.

    The way to a cluster is DNS, TCP, TLS and the login; then come the offset-syncs topic, the
    rights to the copied topics, and the settings of the connector, if Connect is given. After a
    step that fails, the next ones of the same part are not tried. Nothing is written.
    """
    infos: dict[str, ClusterInfo] = {}
    walks: dict[str, Walk] = {
        "source": partial(_walk_to_cluster, pair.source, "source", infos),
        "target": partial(_walk_to_cluster, pair.target, "target", infos),
    }
    if pair.has_syncs:
        walks[_syncs_part(pair)] = partial(_syncs, pair)
    walks["Connect"] = partial(_connect, pair)
    return (*walk_parts(walks), *_one_cluster_twice(pair, infos))


def _walk_to_cluster(
    cluster: KafkaCluster, side: str, infos: dict[str, ClusterInfo]
) -> Iterator[PartHealth]:
    for passed in cluster.walk():
        yield PartHealth(part=f"{side}: {passed.step}", answer=passed.answer)
    info = infos[side] = cluster.describe()
    answer = f"cluster {info.cluster_id or 'without an id'}, brokers {', '.join(info.brokers)}"
    yield PartHealth(part=side, answer=answer)


def _one_cluster_twice(pair: ClusterPair, infos: Mapping[str, ClusterInfo]) -> Iterator[PartHealth]:
    if len(infos) < 2:  # noqa: PLR2004 - a source and a target
        return
    try:
        check_two_clusters(pair, infos["source"].cluster_id, infos["target"].cluster_id)
    except ConfigurationError as error:
        yield PartHealth(part="source and target", error=error)


def _syncs(pair: ClusterPair) -> Iterator[PartHealth]:
    syncs = read_syncs(pair.syncs_cluster, pair.syncs_topic)
    skipped = f", skipped records: {syncs.skipped_count}" if syncs.skipped_count else ""
    yield PartHealth(
        part=_syncs_part(pair),
        answer=f"syncs: {len(syncs.index)}, partitions: {len(syncs.index.partitions)}{skipped}",
    )
    topics = {partition.topic for partition in syncs.index.partitions}
    copies = {pair.naming.target_topic(topic) for topic in topics}
    for side, cluster, names in (("source", pair.source, topics), ("target", pair.target, copies)):
        yield _rights(side, cluster, names)


def _syncs_part(pair: ClusterPair) -> str:
    return f"syncs topic {pair.syncs_topic} on {pair.syncs_location.value}"


def _rights(side: str, cluster: KafkaCluster, topics: set[str]) -> PartHealth:
    part = f"{side}: rights"
    try:
        missing = cluster.unreadable(topics)
    except Mm2OffsetsError as error:
        return PartHealth(part=part, error=error)
    readable = len(topics) - len(missing)
    answer = f"may read {readable} of {len(topics)} topics that have syncs"
    if not missing:
        return PartHealth(part=part, answer=answer)
    listed = ", ".join(sorted(missing)[:_MAX_LISTED])
    more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
    answer += f", not {listed}{more}: grant READ on those that a job of yours reads"
    if readable:  # the others may be no business of this user
        return PartHealth(part=part, answer=answer)
    return PartHealth(part=part, error=ClusterRefusedError(answer, cluster=cluster.name))


def _connect(pair: ClusterPair) -> Iterator[PartHealth]:
    if pair.connect is None:
        return
    version = pair.connect.check()
    naming = pair.naming
    names = sorted(pair.connect.find_mirror_sources(naming.source_alias, naming.target_alias))
    answer = f"version {version}, connector {', '.join(names)}"
    yield PartHealth(part="Connect", answer=answer)
    yield _settings(pair)


def _settings(pair: ClusterPair) -> PartHealth:
    part = "Connect: settings"
    try:
        check_names(pair, read_mirror_connectors(pair))
    except Mm2OffsetsError as error:
        return PartHealth(part=part, error=error)
    return PartHealth(part=part, answer="are those of the connection")
