"""Topics of the target that a migrated job would begin to read: their names match its pattern.

A topic that the checkpoint does not know is read from its beginning, into the migrated state.
"""

from collections.abc import Collection, Sequence

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import TranslationRefusedError
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns, match_patterns
from airflow_mm2_offsets.spark.rewriting import OffsetFile


def new_topics(
    pair: ClusterPair, files: Sequence[OffsetFile], patterns: JobPatterns, allowed: Collection[str]
) -> list[str]:
    """Return a note for each topic that the job begins to read.

    Raises:
        ConfigurationError: A pattern can't be matched as Java does.
        TranslationRefusedError: A pattern matches other new topics, or misses a topic of the
            checkpoint.
        ClusterUnreachableError: The target does not answer.
    """
    topics = {position.topic_partition.topic for position in files[-1].positions()}
    notes = []
    for match in match_patterns(pair, topics, patterns):
        if match.unread:
            raise TranslationRefusedError(
                f"{match.label} does not match {', '.join(match.unread)}, which the checkpoint "
                f"reads: the job would skip those records; give as subscribe_pattern the pattern "
                f"of the job on the target, where topics may have other names"
            )
        if refused := [name for name in match.new if name not in allowed]:
            raise TranslationRefusedError(
                f"{match.label} matches {', '.join(refused)} on the target, which the checkpoint "
                f"does not know: the job would read them from their beginning, into the state that "
                f"it carries over; narrow the pattern, or name in new_topics those that the job "
                f"is to read"
            )
        notes += [
            f"{name}, which the checkpoint does not know, is read from its beginning"
            for name in match.new
        ]
    return notes
