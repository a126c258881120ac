"""How far each connector of a pair has committed its copying, by topic-partition.

A pair's topics may be split between several MirrorSourceConnectors. One topic-partition should be
claimed by one of them alone. It is claimed by two if both copy it, or if it was moved from one to
the other: Connect keeps the offsets of a connector when its ``topics`` change. The lowest claim
counts: nothing shows which of the two will copy on, nor what it would copy again.
"""

from collections.abc import Collection, Mapping

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition

Claims = dict[TopicPartition, dict[str, int]]
"""The last copied source offset of a topic-partition by the connector that has committed it."""


def read_claims(pair: ClusterPair, connectors: Collection[str] | None = None) -> Claims:
    """Return what the connectors of a pair have committed; empty without Connect.

    Args:
        pair: The clusters, as MirrorMaker 2 copies.
        connectors: The names of all connectors of the pair; None: Connect is asked for them.

    Raises:
        ConnectError: Connect refused, or has no connector for the pair's aliases.
        ClusterUnreachableError: Connect did not answer.
    """
    connect, naming = pair.connect, pair.naming
    claims: Claims = {}
    if connect is None:
        return claims
    names = connectors or connect.find_mirror_sources(naming.source_alias, naming.target_alias)
    for name in sorted(names):
        for (alias, topic, number), last in connect.offsets(name).items():
            if alias == naming.source_alias:
                claims.setdefault(TopicPartition(topic, number), {})[name] = last
    return claims


def describe_shared(partition: TopicPartition, by_connector: Mapping[str, int]) -> str:
    """Return the finding of a topic-partition that several connectors claim."""
    claims = ", ".join(f"{name} up to {last}" for name, last in sorted(by_connector.items()))
    return (
        f"{partition}: {len(by_connector)} connectors have copied it ({claims}); the lowest number "
        f"counts. Let one connector copy it (topics, topics.exclude), and forget the offset of the "
        f"other with AlterConnectorOffsetsOperator"
    )
