"""Topics of the target that a job would begin to read because their names match its pattern.

With ``subscribePattern`` Spark reads every topic whose name has a match
(``SubscribePatternStrategy``: ``findFirstIn``, so anywhere in it). One that the checkpoint does not
know it reads from its beginning, into state that was carried over: a topic of the target's own,
MirrorMaker 2's ``heartbeats``, a copy of what the job has never read.
"""

import re
import warnings
from collections.abc import Collection, Sequence

from airflow_mm2_offsets.errors import ConfigurationError, TranslationRefusedError
from airflow_mm2_offsets.service.pair import ClusterPair
from airflow_mm2_offsets.spark.rewriting import KeptFile

_KAFKAS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Internal to brokers: no pattern is matched with them (``Admin.listTopics``)."""


def new_topics(
    pair: ClusterPair, files: Sequence[KeptFile], pattern: str, allowed: Collection[str]
) -> list[str]:
    """Return a note for each topic that the job begins to read.

    Args:
        pair: The clusters.
        files: The kept files; the last one has the newest batch.
        pattern: The ``subscribePattern`` of the job on the target.
        allowed: The new topics that it may read from their beginning.

    Raises:
        ConfigurationError: The pattern can't be matched as Java does.
        TranslationRefusedError: It matches other new topics, or not what the checkpoint reads.
        ClusterUnreachableError: The target does not answer.
    """
    matches = _compile(pattern)
    known = {pair.naming.target_topic(topic) for topic, _, _ in files[-1].asked()}
    if unread := sorted(name for name in known if not matches.search(name)):
        raise TranslationRefusedError(
            f"subscribe_pattern {pattern!r} does not match {', '.join(unread)}, which the "
            f"checkpoint reads: the job would pass over what is there; give the pattern of the job "
            f"on the target, where topics may have other names"
        )
    others = pair.target.topic_names() - known - _KAFKAS_OWN
    new = sorted(name for name in others if matches.search(name))
    if refused := [name for name in new if name not in allowed]:
        raise TranslationRefusedError(
            f"subscribe_pattern {pattern!r} matches {', '.join(refused)} on the target, which the "
            f"checkpoint does not know: the job would read them from their beginning, into the "
            f"state that it carries over; narrow the pattern, or name in new_topics those that it "
            f"is to read"
        )
    return [
        f"{name}, which the checkpoint does not know, is read from its beginning" for name in new
    ]


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # of sets, which Java reads otherwise
            return re.compile(pattern)
    except (re.error, FutureWarning) as error:
        raise ConfigurationError(
            f"subscribe_pattern {pattern!r}: {error}; give a pattern that means the same to Java "
            f"and to Python"
        ) from error
