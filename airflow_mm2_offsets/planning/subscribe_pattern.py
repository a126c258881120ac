"""Finds the topics of the target that a job reads by its ``subscribePattern``.

The failover's checks and a migration call it. Spark reads every topic whose name has a match
anywhere (``SubscribePatternStrategy``: ``findFirstIn``). On the target that may be a local topic,
MirrorMaker 2's ``heartbeats``, or a copy that the job has never read.
"""

import re
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import ConfigurationError

_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""The brokers' internal topics: no pattern matches them (``Admin.listTopics``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPatterns:
    """The patterns that the job on the target subscribes with."""

    requested: str | None = None
    """From the user; empty text: the job subscribes by name. None: as the job on the source."""
    source: Collection[str] = ()
    """The patterns of the job on the source, from its ``driver.json``."""

    @property
    def are_used(self) -> bool:
        """Whether the job subscribes by a pattern, and not by the names of its topics."""
        return bool(self.source if self.requested is None else self.requested)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternMatch:
    """What one pattern matches on the target."""

    label: str
    """The pattern and its origin, for messages."""
    unread: list[str]
    """Copies of topics in the checkpoint that it does not match."""
    new: list[str]
    """Topics that it matches and the checkpoint does not know."""


def match_patterns(
    pair: ClusterPair, topics: Collection[str], patterns: JobPatterns
) -> list[PatternMatch]:
    """Match the target's topics as Spark does; the source job's patterns if none is requested.

    ``topics`` are those in the checkpoint, by their names on the source.

    Raises:
        ConfigurationError: A pattern can't be matched as Java does.
        ClusterUnreachableError: The target does not answer.
    """
    compiled_patterns = list(_compile_patterns(topics, patterns))
    if not compiled_patterns:
        return []
    copies = {pair.naming.target_topic(topic) for topic in topics}
    others = pair.target.topic_names() - copies - _INTERNAL_TOPICS
    return [
        PatternMatch(
            label=label,
            unread=sorted(
                name for name in map(pair.naming.target_topic, sources) if not pattern.search(name)
            ),
            new=sorted(name for name in others if pattern.search(name)),
        )
        for label, pattern, sources in compiled_patterns
    ]


def find_pattern_problems(
    pair: ClusterPair, topics: Collection[str], patterns: JobPatterns
) -> list[str]:
    """Return why a job with a fresh checkpoint would not start, or would skip topics.

    For arguments and errors see ``match_patterns``.
    """
    problems = []
    for match in match_patterns(pair, topics, patterns):
        if match.unread:
            problems.append(
                f"{match.label} does not match {', '.join(match.unread)}, which the checkpoint "
                f"reads: give subscribe_pattern, the pattern of the job on the target, or empty "
                f"text if it subscribes by name"
            )
        if match.new:
            problems.append(
                f"{match.label} matches {', '.join(match.new)} on the target, which the "
                f"checkpoint does not know: Spark starts no job whose startingOffsets lack a topic "
                f"of its pattern; give subscribe_pattern, a narrower pattern that the job on the "
                f"target has, or empty text if it subscribes by name"
            )
    return problems


def _compile_patterns(
    topics: Collection[str], patterns: JobPatterns
) -> Iterator[tuple[str, re.Pattern[str], Collection[str]]]:
    """Yield each pattern's label, the pattern, and the topics of ``topics`` that it must match.

    Nothing is yielded if the job subscribes by name. ``topics`` are those in the checkpoint.
    """
    if patterns.requested is not None:
        if patterns.requested:
            label = f"subscribe_pattern {patterns.requested!r}"
            yield label, _compile(label, patterns.requested), topics
        return
    for text in patterns.source:
        label = f"the job's subscribePattern {text!r}"
        pattern = _compile(label, text)
        # A query with two Kafka sources has two patterns: one source reads these topics only.
        yield label, pattern, [topic for topic in topics if pattern.search(topic)]


def _compile(label: str, text: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # sets, which Java reads differently
            return re.compile(text)
    except (re.error, FutureWarning) as error:
        raise ConfigurationError(
            f"{label}: {error}; give as subscribe_pattern a pattern that means the same to Java "
            f"and to Python"
        ) from error
