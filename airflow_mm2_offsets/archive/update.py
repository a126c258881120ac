"""Adds the new records of the offset-syncs topic to an archive.

The archive operator and the command line call ``archive_syncs``.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.archive import Header, SyncArchive
from airflow_mm2_offsets.archive.incremental_read import (
    ReplicatedTopics,
    iso_time,
    pair_identity,
    read_since,
)
from airflow_mm2_offsets.archive.values import WatermarkPair, was_recreated
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.descriptions import TopicInfo

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRun:
    """What one run added to an archive."""

    new_syncs: int
    total: int
    """Syncs that the archive holds now."""
    skipped: int
    """Records of the topic that are not offset syncs."""
    incarnation: int
    """The number of the syncs topic's incarnation: 1 for the first that the archive saw."""
    next_offset: int
    """The first offset of the next run."""
    as_of: str
    """ISO 8601, UTC."""
    notes: tuple[str, ...]
    """Warnings: topics that were recreated, files that were skipped."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": [*self.notes]}


def archive_syncs(pair: ClusterPair, archive: SyncArchive) -> ArchiveRun:
    """Read the new records of the offset-syncs topic, and add them to the archive.

    It reads the whole archive too, and so reports damage soon after it happens.

    Raises:
        ArchiveError: The archive is of another pair, damaged, or out of reach.
        SyncsTopicError: The topic does not exist, or was recreated during each read.
        ClusterUnreachableError: A cluster does not answer.
    """
    identity = pair_identity(pair, ask_source=True)
    archived = archive.read(identity)
    new_run = read_since(pair, archived, identity, ask_source=True)
    if new_run is None:
        raise SyncsTopicError(
            f"{pair.syncs_cluster.name}: the offset-syncs topic {pair.syncs_topic} does not exist; "
            f"what the archive holds stays. Check offset-syncs.topic.location and the aliases"
        )
    header, topic_read = new_run.header, new_run.topic_read
    watermarks = _watermark_pairs(pair, new_run.topics)
    archive.append(header=header, syncs=topic_read.syncs, watermarks=watermarks)
    now = archive.read(identity)
    notes = tuple(_notes(archived, header))
    for note in notes:
        log.warning("%s", note)
    (run,) = header.runs
    return ArchiveRun(
        new_syncs=topic_read.records_read - topic_read.skipped_count,
        total=len(now),
        skipped=topic_read.skipped_count,
        incarnation=header.incarnation.number,
        next_offset=run.stop,
        as_of=iso_time(run.time),
        notes=notes,
    )


def _watermark_pairs(
    pair: ClusterPair, topics: ReplicatedTopics
) -> dict[TopicPartition, WatermarkPair]:
    """Return the watermarks of each replicated partition, by the source's topic-partition."""
    source = _watermarks(pair.source, {name: info for name, (info, _) in topics.items() if info})
    target = _watermarks(pair.target, {name: info for name, (_, info) in topics.items() if info})
    return {each: (source.get(each), target.get(each)) for each in source | target}


def _watermarks(
    cluster: KafkaCluster, topics: Mapping[str, TopicInfo]
) -> dict[TopicPartition, Watermarks]:
    """Return the watermarks of a cluster's topics by the names that are their keys."""
    names = {
        TopicPartition(info.name, number): TopicPartition(name, number)
        for name, info in topics.items()
        for number in range(info.partitions)
    }
    return {names[each]: low_high for each, low_high in cluster.watermarks(names).items()}


def _notes(archived: "ArchivedSyncs", header: Header) -> Iterator[str]:
    yield from archived.damaged
    incarnation, (run,) = header.incarnation, header.runs
    if archived.incarnations and incarnation != archived.incarnations[-1]:
        yield (
            f"topic {header.pair.syncs_topic} was recreated or truncated since incarnation "
            f"{archived.incarnations[-1].number}: read from its beginning as incarnation "
            f"{incarnation.number}"
        )
    last_ids = archived.topics
    for topic, ids in run.topics.items():
        before = last_ids.get(topic, ids)
        if was_recreated(before, ids):
            yield (
                f"topic {topic} was recreated (ids on source and target {before} before, {ids} "
                f"now): its syncs up to this run are cut, and positions before later syncs are "
                f"refused"
            )
