"""Compares MirrorMaker 2's own settings, as Connect has them, with what we were told of them.

A wrong policy or separator names another topic, which may well exist: a translation to it would be
of other records.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, ReplicationPolicy
from airflow_mm2_offsets.errors import ConfigurationError

_POLICY = "replication.policy.class"
_DEFAULTS: Mapping[str, str] = {
    "target.cluster.alias": "target",
    _POLICY: "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
    "offset-syncs.topic.location": "source",
    "emit.offset-syncs.enabled": "true",
}
"""MirrorMaker 2's, for what a connector's configuration does not name (MirrorSourceConfig)."""
_FLAGS = frozenset(
    {"replication.policy.internal.topic.separator.enabled", "emit.offset-syncs.enabled"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting of MirrorMaker 2 that is another one than we were told."""

    connector: str
    field: str
    """MirrorMaker 2's name of it."""
    told: str
    """What the connection or the settings file says, or the default that it leaves."""
    connect: str
    """What Connect says, or the default that it leaves."""

    @property
    def is_sure(self) -> bool:
        """Whether Connect's value is known: it may stand outside of Connect (KIP-297)."""
        return "${" not in self.connect

    def __str__(self) -> str:
        """Return it as a sentence with the next step."""
        if not self.is_sure:
            return (
                f"{self.field}: connector {self.connector} takes it from {self.connect}, which "
                f"Connect does not tell; see that it is {self.told!r}, as we were told"
            )
        return (
            f"{self.field} is {self.connect!r} in connector {self.connector}, and we were told "
            f"{self.told!r}: correct the mm2 connection or the settings file"
        )


def compare_with_connect(pair: ClusterPair) -> tuple[Difference, ...]:
    """Return every setting that decides names and is not what Connect says; none if all agree.

    Raises:
        ConfigurationError: The pair names no Connect.
        ConnectError: Connect refused, or has no connector, or several, that may be this one.
        ClusterUnreachableError: Connect did not answer.
    """
    connector = read_mirror_connector(pair)
    return tuple(_differences(connector, _told(pair)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConnector:
    """The connector that copies from the one cluster to the other."""

    name: str
    config: Mapping[str, str]

    @property
    def changes_records(self) -> bool:
        """Whether a transform may change records on the way; a filter does not."""
        names = [each.strip() for each in self.config.get("transforms", "").split(",")]
        kinds = [self.config.get(f"transforms.{name}.type", "") for name in names if name]
        return not all(kind.endswith(".Filter") for kind in kinds)


def read_mirror_connector(pair: ClusterPair) -> MirrorConnector:
    """Return the connector of a pair.

    Raises:
        ConfigurationError: The pair names no Connect.
        ConnectError: Connect refused, or has no connector, or several, that may be this one.
        ClusterUnreachableError: Connect did not answer.
    """
    if pair.connect is None:
        raise ConfigurationError(
            "the settings can't be compared with MirrorMaker 2's: no Connect URL is given"
        )
    name = _connector(pair.connect, pair.naming)
    return MirrorConnector(name=name, config=pair.connect.config(name))


def check_names(pair: ClusterPair, connector: MirrorConnector) -> None:
    """Refuse settings that name other topics than MirrorMaker 2's.

    Raises:
        ConfigurationError: Each setting that differs for sure, with both values.
    """
    differences = _differences(connector, _told(pair))
    if wrong := [str(each) for each in differences if each.is_sure]:
        raise ConfigurationError("; ".join(wrong))


def _connector(connect: ConnectClient, naming: Naming) -> str:
    """Return the connector of the two aliases; the only one there is, whatever its aliases are."""
    names = list(connect.mirror_sources())
    if len(names) == 1:
        return names[0]
    return connect.find_mirror_source(naming.source_alias, naming.target_alias)


def _told(pair: ClusterPair) -> dict[str, str]:
    naming = pair.naming
    return {
        "source.cluster.alias": naming.source_alias,
        "target.cluster.alias": naming.target_alias,
        _POLICY: naming.policy.value,
        "replication.policy.separator": naming.separator,
        "replication.policy.internal.topic.separator.enabled": str(
            naming.internal_separator
        ).lower(),
        "offset-syncs.topic.location": pair.syncs_location.value,
        "emit.offset-syncs.enabled": "true",
    }


def _differences(connector: MirrorConnector, told: Mapping[str, str]) -> Iterator[Difference]:
    for field, expected in told.items():
        value = connector.config.get(field, _DEFAULTS.get(field, ""))
        if _meaning(field, value) != expected:
            yield Difference(connector=connector.name, field=field, told=expected, connect=value)


def _meaning(field: str, value: str) -> str:
    """Return a value of Connect's as we would say it."""
    if field in _FLAGS:
        return value.strip().lower()
    if field != _POLICY:
        return value
    # Vendors have classes of their own that say by their names which of the two they are.
    simple = value.strip().rpartition(".")[2]
    policies = {
        f"{policy.value.title()}ReplicationPolicy": policy.value for policy in ReplicationPolicy
    }
    return policies.get(simple, value)
