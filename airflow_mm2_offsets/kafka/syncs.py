"""Reads the offset-syncs topic of MirrorMaker 2 into an index.

The planner, the command line and the server's cache call ``read_syncs``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from airflow_mm2_offsets.core import SyncIndex
from airflow_mm2_offsets.core.naming import SYNCS_TOPIC_PREFIX
from airflow_mm2_offsets.errors import (
    PositionError,
    SyncsTopicError,
    TopicNotFoundError,
    as_class,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.sync_log import SkippedRecord, SyncsTopicRead, read_syncs_topic
from airflow_mm2_offsets.kafka.throttle import Throttle


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncsSnapshot:
    """All offset syncs at a time, from the topic, an archive, or both."""

    index: SyncIndex
    records_read: int
    """Records of the topic, skipped ones too, or syncs of the archive."""
    skipped_count: int = 0
    """Records that are not offset syncs."""
    skipped: tuple[SkippedRecord, ...] = ()
    """The first ``MAX_SKIPPED`` of the last read."""
    next_offset: int
    """The first offset of a later read."""
    topic_id: str | None = None
    """Of the topic, if the reader asked for it: another id means that the topic was recreated."""
    read_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    as_of: str | None = None
    """When the archive's newest run was, if the topic itself was not read; ISO 8601, UTC."""
    recreated: Mapping[str, str] = field(default_factory=dict)
    """The topics that were recreated since the archive first saw them, by the source's names: a
    sentence that names their ids."""

    @property
    def age(self) -> float:
        """Seconds since the last read."""
        return (datetime.now(UTC) - self.read_at).total_seconds()


def read_syncs(
    cluster: KafkaCluster,
    topic: str,
    *,
    previous: SyncsSnapshot | None = None,
) -> SyncsSnapshot:
    """Read every offset sync up to the topic's end; see ``read_syncs_topic``.

    A recreated topic that has grown past the end of the previous read looks unchanged: compare the
    topic's ids (``KafkaCluster.topics``), or call it by ``read_stable``.

    Args:
        cluster: The cluster that holds the topic (``offset-syncs.topic.location``).
        topic: Its name; see ``Naming.syncs_topic``.
        previous: Continue this snapshot: read only newer records.

    Raises:
        SyncsTopicError: The topic does not exist or holds no offset sync; or it ends before the
            previous read's end, or begins after it: read it without ``previous`` then.
        Mm2OffsetsError: See ``drain``.
    """
    start = previous.next_offset if previous else 0
    topic_read = _read_topic(cluster, topic, start)
    throttle = Throttle(cluster.throttle_ratio)
    pairs = {key: records.pairs(throttle) for key, records in topic_read.syncs.items()}
    complete = topic_read.complete() if start == 0 else frozenset()
    index = (previous.index if previous else SyncIndex()).extended(pairs, complete=complete)
    if not len(index):
        raise _unusable(cluster, topic, _emptiness(topic_read))
    return SyncsSnapshot(
        index=index,
        records_read=topic_read.records_read + (previous.records_read if previous else 0),
        skipped_count=topic_read.skipped_count + (previous.skipped_count if previous else 0),
        skipped=tuple(topic_read.skipped),
        next_offset=topic_read.next_offset,
    )


def _read_topic(cluster: KafkaCluster, topic: str, start: int) -> SyncsTopicRead:
    try:
        # A first read takes what retention left. A later one must not miss deleted records.
        return read_syncs_topic(cluster, topic, start, refuse_deleted=start > 0)
    except TopicNotFoundError as error:
        raise _unusable(cluster, topic, "does not exist") from error
    except PositionError as error:
        raise as_class(SyncsTopicError, error, str(error)) from error


def _emptiness(topic_read: SyncsTopicRead) -> str:
    if not topic_read.skipped:
        return "is empty"
    first = topic_read.skipped[0]
    return (
        f"holds {topic_read.records_read} records but no offset sync (the first, at offset "
        f"{first.offset}: {first.reason})"
    )


def _unusable(cluster: KafkaCluster, topic: str, what: str) -> SyncsTopicError:
    others = sorted(
        name
        for name in cluster.topic_names()
        if name.startswith(SYNCS_TOPIC_PREFIX) and name != topic
    )
    seen = f"the cluster has {', '.join(others) or 'no other topic of such a name'}"
    return SyncsTopicError(
        f"the offset-syncs topic {what}; {seen}. Check that "
        "offset-syncs.topic.location (source or target) names this cluster, that the alias in "
        "the topic's name is the OTHER cluster's, that emit.offset-syncs.enabled is not false, "
        "and that MirrorMaker 2 has started and copied a record",
        cluster=cluster.name,
        topic=topic,
    )
