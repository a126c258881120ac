"""How MirrorMaker 2 names topics.

Rules: ``org.apache.kafka.connect.mirror.DefaultReplicationPolicy`` and
``IdentityReplicationPolicy`` (KIP-382, KIP-690), ``offset-syncs.topic.location`` (KIP-716).
"""

from dataclasses import dataclass
from enum import StrEnum

SYNCS_TOPIC_PREFIX = "mm2-offset-syncs"


class ReplicationPolicy(StrEnum):
    """What a topic is called on the target."""

    IDENTITY = "identity"
    """The name it has on the source."""
    DEFAULT = "default"
    """The source's alias, the separator, and the name it has on the source."""


class SyncsLocation(StrEnum):
    """The cluster that holds the offset-syncs topic."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The settings of a MirrorMaker 2 connector that decide names."""

    source_alias: str
    target_alias: str
    policy: ReplicationPolicy = ReplicationPolicy.DEFAULT
    separator: str = "."
    internal_separator: bool = True
    """``replication.policy.internal.topic.separator.enabled``: internal topics use it too."""

    def target_topic(self, source_topic: str) -> str:
        """Return what ``source_topic`` is called on the target."""
        if self.policy is ReplicationPolicy.IDENTITY:
            return source_topic
        return f"{self.source_alias}{self.separator}{source_topic}"

    def syncs_topic(self, location: SyncsLocation) -> str:
        """Return the name of the offset-syncs topic: it bears the OTHER cluster's alias."""
        other = self.target_alias if location is SyncsLocation.SOURCE else self.source_alias
        separator = self.separator if self.internal_separator else "."
        return f"{SYNCS_TOPIC_PREFIX}{separator}{other}{separator}internal"
