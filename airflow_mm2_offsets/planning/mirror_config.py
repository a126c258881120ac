"""Compares MirrorMaker 2's own settings, as Connect has them, with those of the pair of clusters.

``plan_failover`` calls it. A wrong policy or separator names another topic, which may well exist:
the translation would be to a position among other records.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import ReplicationPolicy
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.mirror_connector import (
    DEFAULTS,
    EMIT_SYNCS,
    INTERNAL_SEPARATOR,
    POLICY,
    SEPARATOR,
    SYNCS_LOCATION,
    MirrorConnector,
)
from airflow_mm2_offsets.planning.topic_filter import TopicFilter

_FLAGS = frozenset({INTERNAL_SEPARATOR, EMIT_SYNCS})


def read_mirror_connectors(pair: ClusterPair) -> list[MirrorConnector]:
    """Return the connectors of a pair, at least one; several split its topics between them.

    Raises:
        ConfigurationError: The pair names no Connect.
        ConnectError: Connect refused, or has no connector that may be one of these.
        ClusterUnreachableError: Connect did not answer.
    """
    connect, naming = pair.connect, pair.naming
    if connect is None:
        raise ConfigurationError(
            "the settings can't be compared with MirrorMaker 2's: no Connect URL is given"
        )
    configs = connect.mirror_sources()
    if len(configs) != 1:  # A single connector is taken, whatever its aliases are.
        configs = connect.find_mirror_sources(naming.source_alias, naming.target_alias)
    return as_connectors(configs)


def as_connectors(configs: Mapping[str, Mapping[str, str]]) -> list[MirrorConnector]:
    """Return connectors of their settings by name, in the order of their names."""
    return [MirrorConnector(name=name, config=each) for name, each in sorted(configs.items())]


def that_copy(
    connectors: Sequence[MirrorConnector], topics: Collection[str]
) -> list[MirrorConnector]:
    """Return the connectors that may copy one of the topics; all where none seems to."""
    copying = [
        each
        for each in connectors
        if any(TopicFilter(each).why_not(topic) is None for topic in topics)
    ]
    return copying or list(connectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting of the connector that differs from ours."""

    field: str
    """By MirrorMaker 2's name."""
    problem: str


def check_names(pair: ClusterPair, connectors: Iterable[MirrorConnector]) -> None:
    """Refuse settings that name other topics than MirrorMaker 2's.

    Raises:
        ConfigurationError: Each setting that differs, with both values.
    """
    differences = [each for one in connectors for each in find_differences(pair, one)]
    if differences:
        raise ConfigurationError("; ".join(each.problem for each in differences))


def find_differences(pair: ClusterPair, connector: MirrorConnector) -> list[Difference]:
    """Return each setting that differs, with both values.

    A value that Connect takes from elsewhere (KIP-297) is not compared: Connect does not tell it.
    """
    differences = []
    for field, expected in _expected_config(pair).items():
        value = connector.config.get(field, DEFAULTS.get(field, ""))
        if "${" not in value and _meaning(field, value) != expected:
            problem = (
                f"{field} is {value!r} in connector {connector.name} but "
                f"{expected!r} in our settings: correct the mm2 connection or the settings file"
            )
            differences.append(Difference(field=field, problem=problem))
    return differences


def _expected_config(pair: ClusterPair) -> dict[str, str]:
    """Return a connector's values that agree with a pair; see ``_meaning``."""
    naming = pair.naming
    return {
        "source.cluster.alias": naming.source_alias,
        "target.cluster.alias": naming.target_alias,
        POLICY: naming.policy.value,
        SEPARATOR: naming.separator,
        INTERNAL_SEPARATOR: str(naming.internal_separator).lower(),
        SYNCS_LOCATION: pair.syncs_location.value,
        EMIT_SYNCS: "true",
    }


def _meaning(field: str, value: str) -> str:
    """Return a value of Connect's configuration as ``_expected_config`` spells it."""
    if field in _FLAGS:
        return value.strip().lower()
    if field != POLICY:
        return value
    # The classes of vendors bear the names of MirrorMaker 2's.
    class_name = value.strip().rpartition(".")[2]
    policies = {
        f"{policy.value.title()}ReplicationPolicy": policy.value for policy in ReplicationPolicy
    }
    return policies.get(class_name, value)
