"""The settings of a MirrorSourceConnector, with Kafka's defaults and types.

``mirror_config`` compares them with the pair's; ``readiness`` and ``doctor`` judge them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

OFFSET_LAG_MAX = "offset.lag.max"
SYNCS_LOCATION = "offset-syncs.topic.location"
EMIT_SYNCS = "emit.offset-syncs.enabled"
POLICY = "replication.policy.class"
SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"

RECOMMENDED_OFFSET_LAG = 100
"""The largest ``offset.lag.max`` that nobody need look at: MirrorMaker 2's default."""

DEFAULTS: Mapping[str, str] = {
    "target.cluster.alias": "target",
    POLICY: "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    SEPARATOR: ".",
    INTERNAL_SEPARATOR: "true",
    SYNCS_LOCATION: "source",
    EMIT_SYNCS: "true",
    OFFSET_LAG_MAX: str(RECOMMENDED_OFFSET_LAG),
    "topics": ".*",
    "topics.exclude": r"mm2.*\.internal,.*\.replica,__.*",
    "topic.filter.class": "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    "config.properties.exclude": (
        "follower.replication.throttled.replicas,leader.replication.throttled.replicas,"
        "message.timestamp.difference.max.ms,log.message.timestamp.before.max.ms,"
        "log.message.timestamp.after.max.ms,message.timestamp.type,"
        "unclean.leader.election.enable,min.insync.replicas"
    ),
    "refresh.topics.enabled": "true",
    "sync.topic.configs.enabled": "true",
    "sync.topic.acls.enabled": "true",
    "replication.factor": "2",
    "offset-syncs.topic.replication.factor": "3",
    "heartbeats.replication.enabled": "true",
    "errors.tolerance": "none",
    "tasks.max": "1",
}
"""As Kafka Connect tells them of the plugin: ``MirrorSourceConfig`` and ``ConnectorConfig``."""

_KAFKAS_TRANSFORMS = "org.apache.kafka.connect.transforms."
_KEEPING = frozenset(
    {
        *("Cast", "DropHeaders", "ExtractField", "Flatten", "HeaderFrom", "HoistField"),
        *("InsertField", "InsertHeader", "MaskField", "ReplaceField", "SetSchemaMetadata"),
        *("TimestampConverter", "ValueToKey"),
    }
)
"""Kafka's transforms that hand on each record, to its own topic."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLAGS = {"true": True, "false": False}
_ELSEWHERE = "${"
"""Begins a value that a config provider holds (KIP-297)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConnector:
    """The connector that copies from the one cluster to the other."""

    name: str
    """Of the connector, or of the flow such as ``eu->us``."""
    config: Mapping[str, str] = field(repr=False)
    """May hold secrets."""

    def text(self, name: str) -> str:
        """Return a setting's value, or Kafka's default; empty if it is in a config provider."""
        value = self.config.get(name, DEFAULTS.get(name, "")).strip()
        return value if self.tells(name) else ""

    def tells(self, name: str) -> bool:
        """Tell whether a setting's value is known: not in a config provider."""
        return _ELSEWHERE not in self.config.get(name, "")

    def flag(self, name: str) -> bool | None:
        """Return a boolean; None if the value is none, or not told."""
        return _FLAGS.get(self.text(name).lower())

    def number(self, name: str) -> int | None:
        """Return a whole number; None if the value is none, or not told."""
        text = self.text(name)
        return int(text) if _INTEGER.fullmatch(text) else None

    def words(self, name: str) -> list[str]:
        """Return the parts of a list, which commas separate."""
        return [word for each in self.text(name).split(",") if (word := each.strip())]

    @property
    def source_alias(self) -> str:
        """``source.cluster.alias``, which has no default."""
        return self.text("source.cluster.alias")

    @property
    def target_alias(self) -> str:
        """``target.cluster.alias``."""
        return self.text("target.cluster.alias")

    @property
    def policy(self) -> str:
        """The simple name of the replication policy's class; vendors keep those of Kafka."""
        return self.text(POLICY).rpartition(".")[2]

    @property
    def emits_syncs(self) -> bool:
        """Whether it writes offset syncs (KIP-1031)."""
        return self.flag(EMIT_SYNCS) is not False

    @property
    def transforms(self) -> dict[str, str]:
        """The class of each transform, by the transform's name."""
        return {
            name: self.config.get(f"transforms.{name}.type", "").strip()
            for name in self.words("transforms")
        }

    @property
    def may_drop_records(self) -> bool:
        """Whether a transform may drop records, or send them to another topic.

        Of the transforms that are not Kafka's own nothing is known.
        """
        return any(
            kind.rpartition(".")[2].partition("$")[0] not in _KEEPING
            or not kind.startswith(_KAFKAS_TRANSFORMS)
            for kind in self.transforms.values()
        )

    @property
    def begins_at_end(self) -> bool:
        """Whether it copies only what is written later where it has no offset, or an old one."""
        prefixes = ("consumer.", "source.consumer.", "consumer.override.")
        return any(self.text(f"{each}auto.offset.reset").lower() == "latest" for each in prefixes)

    @property
    def changes_records(self) -> bool:
        """Whether a transform may change records on the way; a filter does not."""
        return not all(kind.endswith(".Filter") for kind in self.transforms.values())
