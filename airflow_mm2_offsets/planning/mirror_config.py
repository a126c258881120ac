"""Compares MirrorMaker 2's own settings, as Connect has them, with those of the pair of clusters.

``plan_failover`` calls it. A wrong policy or separator names another topic, which may well exist:
the translation would be to a position among other records.
"""

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

_FLAGS = frozenset({INTERNAL_SEPARATOR, EMIT_SYNCS})


def read_mirror_connector(pair: ClusterPair) -> MirrorConnector:
    """Return the connector of a pair.

    Raises:
        ConfigurationError: The pair names no Connect.
        ConnectError: Connect refused, or has no connector, or several, that may be this one.
        ClusterUnreachableError: Connect did not answer.
    """
    connect, naming = pair.connect, pair.naming
    if connect is None:
        raise ConfigurationError(
            "the settings can't be compared with MirrorMaker 2's: no Connect URL is given"
        )
    names = list(connect.mirror_sources())
    if len(names) != 1:  # A single connector is taken, whatever its aliases are.
        names = [connect.find_mirror_source(naming.source_alias, naming.target_alias)]
    return MirrorConnector(name=names[0], config=connect.config(names[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting of the connector that differs from ours."""

    field: str
    """By MirrorMaker 2's name."""
    problem: str


def check_names(pair: ClusterPair, connector: MirrorConnector) -> None:
    """Refuse settings that name other topics than MirrorMaker 2's.

    Raises:
        ConfigurationError: Each setting that differs, with both values.
    """
    if differences := find_differences(pair, connector):
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
