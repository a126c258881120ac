"""Compares a description of a mirror with what Connect runs, and creates or updates connectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.admin import ConnectorAdmin
from airflow_mm2_offsets.connect.client import ConnectClient, aliases_of, may_copy_between
from airflow_mm2_offsets.connectors.description import ConnectorKind, MirrorDescription
from airflow_mm2_offsets.connectors.differences import (
    SettingDifference,
    find_setting_differences,
)
from airflow_mm2_offsets.core.naming import HEARTBEATS_TOPIC
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.topic_filter import copied_by_both

Action = Literal["create", "update", "none"]
_PRODUCER_SERVERS = "producer.override.bootstrap.servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorChange:
    """What has to be done to one connector."""

    name: str
    kind: ConnectorKind
    action: Action
    differences: tuple[SettingDifference, ...]
    config: Mapping[str, str] = field(repr=False)
    """May hold secrets."""

    def __str__(self) -> str:
        """Show the change, one line for each setting."""
        return "\n  ".join([f"connector {self.name}: {self.action}", *map(str, self.differences)])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON without secrets."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "action": self.action,
            "differences": [each.to_json() for each in self.differences],
        }


def connect_of(pair: ClusterPair) -> ConnectClient:
    """Return the pair's Connect.

    Raises:
        ConfigurationError: The pair names none.
    """
    if pair.connect is None:
        raise ConfigurationError(
            "the mm2 connection names no Kafka Connect: give its URL", setting="connect_url"
        )
    return pair.connect


def compare(pair: ClusterPair, description: MirrorDescription) -> tuple[ConnectorChange, ...]:
    """Return what has to be done to each connector; nothing is changed.

    Raises:
        ConfigurationError: The description contradicts the pair; a connector of another class or
            of other clusters has one of the names; another connector copies the same topics; or
            Connect would write the copies to another cluster than the target.
        ConnectError: Connect refused.
        ClusterUnreachableError: Connect, or the target, did not answer.
    """
    connect, configs = connect_of(pair), description.configs(pair)
    running = connect.configs()
    changes = []
    for kind, config in configs.items():
        name = description.connector_name(kind)
        before = running.get(name)
        if before is not None:
            _require_same_connector(name, before, config)
        differences = find_setting_differences(before or {}, config)
        action: Action = "create" if before is None else "update" if differences else "none"
        changes.append(
            ConnectorChange(
                name=name, kind=kind, action=action, differences=differences, config=config
            )
        )
    _refuse_second_copy(running, changes)
    _require_target(pair, connect, changes)
    return tuple(changes)


def apply(pair: ClusterPair, changes: Sequence[ConnectorChange]) -> None:
    """Create or update the connectors that differ; may be repeated.

    Raises:
        ConnectError: Connect refused: the message names connector and reason, without secrets.
        ClusterUnreachableError: Connect did not answer.
    """
    connect = connect_of(pair)
    # The heartbeats first: they give the source connector a topic to find at once.
    for change in sorted(changes, key=lambda each: each.kind is not ConnectorKind.HEARTBEAT):
        if change.action != "none":
            ConnectorAdmin(connect=connect, name=change.name).put_config(change.config)


def missing_topics(pair: ClusterPair, kinds: Sequence[ConnectorKind]) -> list[str]:
    """Return the topics of MirrorMaker 2's own that are not there yet, each with its cluster.

    Raises:
        ClusterUnreachableError: A cluster did not answer.
    """
    expected = {
        ConnectorKind.SOURCE: (pair.syncs_cluster, pair.syncs_topic),
        ConnectorKind.CHECKPOINT: (pair.target, pair.naming.checkpoints_topic()),
        ConnectorKind.HEARTBEAT: (pair.source, HEARTBEATS_TOPIC),
    }
    return [
        f"topic {topic} on the {cluster.name}"
        for kind, (cluster, topic) in expected.items()
        if kind in kinds and topic not in cluster.topics([topic])
    ]


def _require_same_connector(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    classes = [config.get("connector.class", "") for config in (before, after)]
    if classes[0].rpartition(".")[2] != classes[1].rpartition(".")[2]:
        raise ConfigurationError(
            f"connector {name} exists and is of class {classes[0]}, not {classes[1]}: nothing was "
            f"changed. Give the description another name, or delete that connector"
        )
    aliases = [aliases_of(config) for config in (before, after)]
    if not may_copy_between(before, aliases[1]):
        raise ConfigurationError(
            f"connector {name} exists and is of {'->'.join(aliases[0])}, not of "
            f"{'->'.join(aliases[1])}: nothing was changed. Give the description another name, or "
            f"correct the aliases of the mm2 connection"
        )


def _refuse_second_copy(
    running: Mapping[str, Mapping[str, str]], changes: Sequence[ConnectorChange]
) -> None:
    ours = {change.name for change in changes}
    for change in changes:
        if change.kind is not ConnectorKind.SOURCE:
            continue
        described = MirrorConnector(name=change.name, config=change.config)
        for name, config in running.items():
            is_source = config.get("connector.class", "").endswith("MirrorSourceConnector")
            pair = aliases_of(change.config)
            if name in ours or not is_source or not may_copy_between(config, pair):
                continue
            other = MirrorConnector(name=name, config=config)
            if shared := copied_by_both(described, other):
                raise ConfigurationError(
                    f"connector {name} copies {_of_pair(shared[0], config, pair)}, and "
                    f"{change.name} would copy it a second time: nothing was changed. Take it out "
                    f"of one of the two"
                )


def _of_pair(topic: str, config: Mapping[str, str], pair: tuple[str, str]) -> str:
    aliases = aliases_of(config)
    if aliases == pair:
        return f"{topic} of this pair"
    return (
        f"{topic}, and it may be of this pair: its aliases {'->'.join(aliases)} are held by a "
        f"config provider and can't be read (if they are others, write them into its settings)"
    )


def _require_target(
    pair: ClusterPair, connect: ConnectClient, changes: Sequence[ConnectorChange]
) -> None:
    """Refuse connectors whose copies Connect's own producer would write to another cluster."""
    writers = [
        change.name
        for change in changes
        if change.kind is not ConnectorKind.HEARTBEAT and _PRODUCER_SERVERS not in change.config
    ]
    connects = connect.info().cluster_id
    if not writers or connects is None:
        return
    target = pair.target.describe().cluster_id
    if target is not None and target != connects:
        raise ConfigurationError(
            f"Connect at {connect.url} keeps its own topics on cluster {connects}, and the "
            f"{pair.target.name} is cluster {target}: {', '.join(writers)} would write the copies "
            f"to {connects}. Give {_PRODUCER_SERVERS} (and the login likewise) in settings, or "
            f"the URL of a Connect beside the target"
        )
