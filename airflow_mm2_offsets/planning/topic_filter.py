"""Which topics a connector copies; plans, ``readiness`` and ``doctor`` ask.

Rules: ``DefaultTopicFilter``, ``MirrorSourceConnector.shouldReplicateTopic`` and
``DefaultReplicationPolicy.isInternalTopic`` of Kafka 4. Kafka joins the patterns of a list by ``|``
and matches whole names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_mm2_offsets.planning.mirror_connector import (
    INTERNAL_SEPARATOR,
    SEPARATOR,
    MirrorConnector,
)

_LITERAL = re.compile(r"[\w.-]*[\w-]")
_KAFKAS = ("__", ".")
_PATTERNS = ("topics", "topics.exclude", "topic.filter.class")


def matches(patterns: Sequence[str], name: str) -> bool | None:
    """Tell whether one of Java's patterns matches a whole name; None: Python can't read them."""
    if not patterns:
        return False
    try:
        return re.fullmatch("|".join(patterns), name) is not None
    except re.error:
        return None


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """The filter of a connector."""

    connector: MirrorConnector

    @property
    def is_known(self) -> bool:
        """Whether it is Kafka's own."""
        return self.connector.text("topic.filter.class").rpartition(".")[2] == "DefaultTopicFilter"

    @property
    def literals(self) -> list[str]:
        """The topics that the setting names without a pattern."""
        return [each for each in self._alternatives() if _LITERAL.fullmatch(each)]

    @property
    def is_literal(self) -> bool:
        """Whether the setting holds no pattern."""
        return len(self.literals) == len(self._alternatives())

    def _alternatives(self) -> list[str]:
        words = self.connector.words("topics")
        return [name.strip() for word in words for name in word.split("|")]

    def copies(self, topic: str) -> bool:
        """Tell whether a topic is copied, as far as can be told."""
        return self.is_known and self.why_not(topic) is None

    def why_not(self, topic: str) -> str | None:
        """Return why a topic is not copied; None if it is, or if that can't be told."""
        connector = self.connector
        if not self.is_known or not connector.tells("topics"):
            return None
        if matches(connector.words("topics"), topic) is False:
            return f"topics = {connector.text('topics') or '(empty)'} does not match it"
        if matches(connector.words("topics.exclude"), topic):
            return f"topics.exclude = {connector.text('topics.exclude')} matches it"
        if self._is_internal(topic):
            return "its name is one of an internal topic"
        if connector.policy == "DefaultReplicationPolicy" and self._is_cycle(topic):
            return (
                f"its name has {connector.target_alias!r} before a separator, as a copy from there"
            )
        return None

    def _is_internal(self, topic: str) -> bool:
        uses_separator = self.connector.flag(INTERNAL_SEPARATOR) is not False
        separator = self.connector.text(SEPARATOR) if uses_separator else "."
        suffix = f"{separator}internal"
        is_mirrors = topic.startswith("mm2") and topic.endswith(suffix)
        is_checkpoints = topic.endswith(f"{separator}checkpoints{suffix}")
        return topic.startswith(_KAFKAS) or is_mirrors or is_checkpoints

    def _is_cycle(self, topic: str) -> bool:
        """Tell whether a name says that the topic was on the target before (``isCycle``)."""
        separator = self.connector.text(SEPARATOR)
        if not separator:
            return False
        parts = topic.split(separator)
        while parts and not parts[-1]:  # Java's split leaves out empty parts at the end.
            parts.pop()
        return self.connector.target_alias in parts[:-1]


def same_patterns(one: MirrorConnector, other: MirrorConnector) -> bool:
    """Tell whether two connectors select by the same patterns; literal names are compared apart."""
    are_equal = all(one.words(name) == other.words(name) for name in _PATTERNS)
    return are_equal and not TopicFilter(one).is_literal


def named_in_both(
    one: MirrorConnector, other: MirrorConnector, topics: Sequence[str] = ()
) -> list[str]:
    """Return the topics, of ``topics`` and those that a setting names, that both copy."""
    filters = TopicFilter(one), TopicFilter(other)
    named = sorted({*topics, *filters[0].literals, *filters[1].literals})
    return [each for each in named if all(filter_.copies(each) for filter_ in filters)]


def copied_by_both(
    one: MirrorConnector, other: MirrorConnector, topics: Sequence[str] = ()
) -> list[str]:
    """Return what two connectors are known to copy both, as messages name it.

    Two different patterns may still match one topic: only its offsets then show it.
    """
    if named := named_in_both(one, other, topics):
        return [f"topic {topic}" for topic in named]
    return [f"topics = {one.text('topics')}"] if same_patterns(one, other) else []
