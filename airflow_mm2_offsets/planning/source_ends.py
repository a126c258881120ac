"""The source's ends as an earlier look saw them, which bound what was copied before all syncs.

MirrorMaker 2 often loses its first offset syncs, so the target may hold copies of any record before
the first known sync. But no record is copied before it exists: what was copied before that sync
lies below the source's end as it was at any moment after the sync was written. Producers move the
end on. So the end of an earlier look tells more than the present one: once MirrorMaker 2 has come
past it, the older copies count no more. The wait for MirrorMaker 2 looks first, and the plan that
follows uses what it saw.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.errors import ConfigurationError

SourceEnds: TypeAlias = dict[TopicPartition, tuple[SyncPoint, int]]
"""The first known sync of a topic-partition, and the source's end that was read after it."""


def ends_to_json(ends: Mapping[TopicPartition, tuple[SyncPoint, int]]) -> dict[str, Any]:
    """Return plain JSON: topic to partition to "upstream downstream end"."""
    values: dict[str, dict[str, str]] = {}
    for (topic, partition), (first, end) in ends.items():
        text = f"{first.upstream} {first.downstream} {end}"
        values.setdefault(topic, {})[str(partition)] = text
    return values


def ends_from_json(values: Mapping[str, Mapping[str, str]]) -> SourceEnds:
    """Return what ``ends_to_json`` wrote.

    Raises:
        ConfigurationError: It is something else.
    """
    ends: SourceEnds = {}
    try:
        for topic, partitions in values.items():
            for partition, text in partitions.items():
                upstream, downstream, end = map(int, text.split())
                ends[TopicPartition(topic, int(partition))] = SyncPoint(upstream, downstream), end
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{values!r} does not hold the source's ends; give what Mm2ReplicatedSensor returned",
            setting="source_ends",
        ) from error
    return ends
