"""How MirrorMaker 2 names topics.

Rules: ``org.apache.kafka.connect.mirror.DefaultReplicationPolicy`` and
``IdentityReplicationPolicy`` (KIP-382, KIP-690), ``offset-syncs.topic.location`` (KIP-716).
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_mm2_offsets.errors import ConfigurationError

SYNCS_TOPIC_PREFIX = "mm2-offset-syncs"
HEARTBEATS_TOPIC = "heartbeats"


class ReplicationPolicy(StrEnum):
    """What a topic is called on the target."""

    IDENTITY = "identity"
    """The name it has on the source, unless that ends in ``heartbeats``: then as DEFAULT."""
    DEFAULT = "default"
    """The source's alias, the separator, and the name it has on the source."""


class SyncsLocation(StrEnum):
    """The cluster that holds the offset-syncs topic."""

    SOURCE = "source"
    TARGET = "target"


class Direction(StrEnum):
    """Which way a job moves, seen from MirrorMaker 2."""

    FORWARD = "forward"
    """As MirrorMaker 2 copies."""
    EXCHANGED = "exchanged"
    """Back to where MirrorMaker 2 copies from: by the same syncs, with sides exchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The settings of a MirrorMaker 2 connector that decide names."""

    source_alias: str
    target_alias: str
    policy: ReplicationPolicy = ReplicationPolicy.DEFAULT
    separator: str = "."
    internal_separator: bool = True
    """``replication.policy.internal.topic.separator.enabled``: internal topics use it too."""
    direction: Direction = Direction.FORWARD
    """Which way ``target_topic`` leads. The aliases are the connector's either way."""

    def exchanged(self) -> "Naming":
        """Return the names seen from the other side."""
        forward = self.direction is Direction.FORWARD
        return replace(self, direction=Direction.EXCHANGED if forward else Direction.FORWARD)

    def target_topic(self, source_topic: str) -> str:
        """Return what ``source_topic`` is called on the target.

        Raises:
            ConfigurationError: The way leads back, and the topic is no copy.
        """
        if self.policy is ReplicationPolicy.IDENTITY and not _looks_like_heartbeats(source_topic):
            return source_topic
        prefix = f"{self.source_alias}{self.separator}"
        if self.direction is Direction.FORWARD:
            return f"{prefix}{source_topic}"
        if not source_topic.startswith(prefix) or source_topic == prefix:
            raise ConfigurationError(
                f"MirrorMaker 2 has not copied it from {self.source_alias}: the names of such "
                f"topics begin with {prefix!r}. A topic that was written here comes home by the "
                f"connection of a MirrorMaker 2 that copies back",
                topic=source_topic,
            )
        return source_topic.removeprefix(prefix)

    def syncs_topic(self, location: SyncsLocation) -> str:
        """Return the name of the offset-syncs topic: it bears the OTHER cluster's alias."""
        other = self.target_alias if location is SyncsLocation.SOURCE else self.source_alias
        separator = self.separator if self.internal_separator else "."
        return f"{SYNCS_TOPIC_PREFIX}{separator}{other}{separator}internal"

    def checkpoints_topic(self) -> str:
        """Return the name of the checkpoints topic, which lies on the target."""
        separator = self.separator if self.internal_separator else "."
        return f"{self.source_alias}{separator}checkpoints{separator}internal"

    def heartbeats_topic(self) -> str:
        """Return what the source's heartbeats topic is called on the target, by either policy."""
        return f"{self.source_alias}{self.separator}{HEARTBEATS_TOPIC}"


def _looks_like_heartbeats(topic: str) -> bool:
    """Tell whether ``IdentityReplicationPolicy`` renames a topic, ``device-heartbeats`` too."""
    return topic.endswith(HEARTBEATS_TOPIC)
