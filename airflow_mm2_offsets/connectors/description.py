"""The description of a mirror, and the settings of its three connectors.

Rules: ``MirrorSourceConfig``, ``MirrorCheckpointConfig`` and ``MirrorHeartbeatConfig`` of Kafka
(KIP-382). They differ from MirrorMaker 2's dedicated mode: on a Connect cluster every connector
has both clusters' addresses, and names ByteArrayConverter, since MirrorMaker 2 copies bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.kafka.client_properties import to_java

_PACKAGE = "org.apache.kafka.connect.mirror"
_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
_OVERRIDE = "producer.override."
_WHERE = "the mm2 connection and the arguments of the description name it"


class ConnectorKind(StrEnum):
    """What a connector of MirrorMaker 2 does."""

    SOURCE = "source"
    """Copies topics, and writes the offset syncs."""
    CHECKPOINT = "checkpoint"
    """Translates consumer groups' offsets."""
    HEARTBEAT = "heartbeat"
    """Writes heartbeats to the source; their age on the target tells the lag."""

    @property
    def class_name(self) -> str:
        """The connector's class."""
        return f"{_PACKAGE}.Mirror{self.title()}Connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorDescription:
    """A mirror between the two clusters of a pair."""

    topics: Sequence[str]
    """Which topics are copied: names or Java's patterns."""
    topics_exclude: Sequence[str] | None = None
    """Of those, which not; None: MirrorMaker 2's default."""
    groups: Sequence[str] = (".*",)
    """Which consumer groups' offsets are translated: names or Java's patterns."""
    name: str = "mm2"
    """The connectors are called ``mm2-source``, ``mm2-checkpoint`` and ``mm2-heartbeat``."""
    kinds: Sequence[ConnectorKind] = tuple(ConnectorKind)
    """Which of the three; SOURCE alone for a further part of topics that are split."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further settings of all of them, by Kafka's names. ``source.cluster`` is the pair's source:
    for the heartbeat connector, which writes there, the two clusters are exchanged."""
    settings_of: Mapping[ConnectorKind, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Further settings of one of them; they win over ``settings``."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, whose texts Airflow renders; it may hold secrets."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        lists = ("topics", "topics_exclude", "groups", "kinds")
        return values | {
            **{name: values[name] and [*map(str, values[name])] for name in lists},
            "settings": dict(self.settings),
            "settings_of": {str(kind): dict(own) for kind, own in self.settings_of.items()},
        }

    @classmethod
    def from_json(cls, values: object) -> "MirrorDescription":
        """Return the description that ``to_json`` wrote, or a user has.

        Lists may be texts with commas, and settings numbers or truth values.

        Raises:
            ConfigurationError: A field or a kind is unknown, ``topics`` is missing, or a value is
                of another kind. No value of a setting is in the text.
        """
        if not isinstance(values, Mapping) or values.get("topics") is None:
            raise ConfigurationError(
                "it has no topics; give a MirrorDescription, or a mapping with topics and some of "
                f"{', '.join(each.name for each in fields(cls) if each.name != 'topics')}"
            )
        _refuse_unknown("field of a mirror", values, [each.name for each in fields(cls)])
        own: dict[str, Any] = {
            name: str(values[name]) if name == "name" else _words(name, values[name])
            for name in ("topics", "topics_exclude", "groups", "name")
            if values.get(name) is not None
        }
        kinds = values.get("kinds")
        kinds = [*ConnectorKind] if kinds is None else _words("kinds", kinds)
        if not kinds:
            raise ConfigurationError(f"kinds is empty; give some of {', '.join(ConnectorKind)}")
        settings_of = _mapping("settings_of", values.get("settings_of"))
        _refuse_unknown("connector of a mirror", [*kinds, *settings_of], [*ConnectorKind])
        return cls(
            **own,
            kinds=[ConnectorKind(kind) for kind in kinds],
            settings=_texts("settings", values.get("settings")),
            settings_of={
                ConnectorKind(kind): _texts(f"settings_of: {kind}", settings)
                for kind, settings in settings_of.items()
            },
        )

    def connector_name(self, kind: ConnectorKind) -> str:
        """Return the name of a connector."""
        return f"{self.name}-{kind}"

    def configs(self, pair: ClusterPair) -> dict[ConnectorKind, dict[str, str]]:
        """Return the settings of each connector; they may hold secrets.

        Addresses, logins and certificates are the pair's, in the words of Kafka's Java client.
        Settings such as ``source.cluster.bootstrap.servers`` replace them: Connect may reach the
        brokers by other names, and may take secrets from a config provider (KIP-297).

        Raises:
            ConfigurationError: The pair is exchanged, a login has no counterpart in Java, or a
                setting contradicts the pair or the description.
        """
        if pair.direction is not Direction.FORWARD:
            raise ConfigurationError("a mirror is described as MirrorMaker 2 copies: not exchanged")
        if not [word for word in self.topics if word.strip()]:
            raise ConfigurationError("the description names no topics", setting="topics")
        source = to_java(pair.source.name, pair.source.config)
        target = to_java(pair.target.name, pair.target.config)
        return {kind: self._config(kind, pair, source, target) for kind in self.kinds}

    def _config(
        self,
        kind: ConnectorKind,
        pair: ClusterPair,
        source: Mapping[str, str],
        target: Mapping[str, str],
    ) -> dict[str, str]:
        aliases = (pair.naming.source_alias, pair.naming.target_alias)
        clients = (source, target)
        if kind is ConnectorKind.HEARTBEAT:
            # It writes to its target, which has to be the pair's source (``MirrorMaker``).
            aliases, clients = aliases[::-1], clients[::-1]
        fixed = {
            "connector.class": kind.class_name,
            "source.cluster.alias": aliases[0],
            "target.cluster.alias": aliases[1],
            **_names(pair),
            **self._selection(kind, pair),
        }
        changeable = {
            **{f"source.cluster.{name}": value for name, value in clients[0].items()},
            **{f"target.cluster.{name}": value for name, value in clients[1].items()},
            **{f"{part}.converter": _CONVERTER for part in ("key", "value", "header")},
        }
        common = self.settings if kind is not ConnectorKind.HEARTBEAT else _exchanged(self.settings)
        further = {**common, **self.settings_of.get(kind, {})}
        _refuse_contradictions(self.connector_name(kind), fixed, further)
        config = {**changeable, **further, **fixed}
        if kind is ConnectorKind.HEARTBEAT:
            # Connect's own producer writes the heartbeats, by default to Connect's cluster.
            config = {**_overrides(config), **config}
        return config

    def _selection(self, kind: ConnectorKind, pair: ClusterPair) -> dict[str, str]:
        if kind is ConnectorKind.HEARTBEAT:
            return {}
        selection = {
            "topics": ",".join(self.topics),
            "offset-syncs.topic.location": pair.syncs_location.value,
        }
        if self.topics_exclude is not None:
            selection["topics.exclude"] = ",".join(self.topics_exclude)
        if kind is ConnectorKind.CHECKPOINT:
            selection["groups"] = ",".join(self.groups)
        return selection


def _refuse_unknown(what: str, names: Iterable[object], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(str(name), known, otherwise=f"give some of {', '.join(known)}")
            raise ConfigurationError(f"{name!r} is no {what}; {hint}")


def _words(field: str, value: object) -> list[str]:
    """Return a list that may be a text with commas."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Iterable) or isinstance(words, Mapping):
        raise ConfigurationError(f"{field} is {value!r}; give a list, or a text with commas")
    return [word for each in words if (word := str(each).strip())]


def _mapping(field: str, value: object) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ConfigurationError(f"{field} is {type(value).__name__}; give a mapping")
    return value or {}


def _texts(field: str, value: object) -> dict[str, str]:
    """Return settings as Connect takes them: a truth value in Java's words."""
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in _mapping(field, value).items()
    }


def _names(pair: ClusterPair) -> dict[str, str]:
    naming = pair.naming
    return {
        "replication.policy.class": f"{_PACKAGE}.{naming.policy.title()}ReplicationPolicy",
        "replication.policy.separator": naming.separator,
        "replication.policy.internal.topic.separator.enabled": str(
            naming.internal_separator
        ).lower(),
    }


def _exchanged(settings: Mapping[str, str]) -> dict[str, str]:
    """Return common settings for the heartbeat connector, whose target is the pair's source.

    Those that lead Connect's producer to the pair's target are left out.
    """
    prefixes = {"source.cluster.": "target.cluster.", "target.cluster.": "source.cluster."}
    exchanged = {}
    for name, value in settings.items():
        prefix = next((each for each in prefixes if name.startswith(each)), None)
        if prefix is not None:
            exchanged[prefixes[prefix] + name.removeprefix(prefix)] = value
        elif not name.startswith(_OVERRIDE):
            exchanged[name] = value
    return exchanged


def _overrides(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that lead Connect's producer to the cluster of ``target.cluster.*``."""
    prefix = "target.cluster."
    return {
        f"{_OVERRIDE}{name.removeprefix(prefix)}": value
        for name, value in config.items()
        if name.startswith(prefix) and name != f"{prefix}alias"
    }


def _refuse_contradictions(
    connector: str, fixed: Mapping[str, str], further: Mapping[str, str]
) -> None:
    for name in sorted({*fixed, "name"} & further.keys()):
        expected = fixed.get(name, connector)
        if further[name] != expected:
            raise ConfigurationError(
                f"connector {connector}: {name} is {further[name]!r} in its further settings and "
                f"{expected!r} by the pair and the description; leave it out: {_WHERE}",
                setting=name,
            )
