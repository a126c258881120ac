"""Which topics a connector copies.

Rules: ``DefaultTopicFilter`` and ``MirrorSourceConnector.shouldReplicateTopic``. Kafka joins the
patterns of a list by ``|`` and matches whole names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_mm2_offsets.planning.mirror_connector import SEPARATOR, MirrorConnector

_LITERAL = re.compile(r"[\w.-]*[\w-]")
_INTERNAL = (".internal", "-internal")
_KAFKAS = ("__", ".")


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
        if not self.is_known or not connector.text("topics"):
            return None
        if matches(connector.words("topics"), topic) is False:
            return f"topics = {connector.text('topics')} does not match it"
        if matches(connector.words("topics.exclude"), topic):
            return f"topics.exclude = {connector.text('topics.exclude')} matches it"
        if topic.endswith(_INTERNAL) or topic.startswith(_KAFKAS):
            return "its name is one of an internal topic"
        prefix = f"{connector.target_alias}{connector.text(SEPARATOR)}"
        if connector.policy == "DefaultReplicationPolicy" and topic.startswith(prefix):
            return f"its name begins with {prefix!r}, as that of a copy from the target"
        return None
