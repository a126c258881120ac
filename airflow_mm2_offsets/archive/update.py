"""Keeps an archive of offset syncs up to date."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.archive import Header, SyncArchive
from airflow_mm2_offsets.archive.incremental_read import (
    Topics,
    iso_time,
    pair_identity,
    read_since,
)
from airflow_mm2_offsets.archive.values import Marks, was_recreated
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    TopicPartition,
    Watermarks,
)
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster, TopicInfo

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
    """Records of the topic that were no offset syncs."""
    generation: int
    """How many lives of the syncs topic the archive has seen."""
    next_offset: int
    """Where the next run goes on."""
    as_of: str
    """ISO 8601, UTC."""
    notes: tuple[str, ...]
    """What a user should know: topics that were recreated, files that were skipped."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": [*self.notes]}


def archive_syncs(pair: ClusterPair, archive: SyncArchive) -> ArchiveRun:
    """Read what is new on the offset-syncs topic, and add it to the archive.

    It reads the archive too, and so finds damage on the day that it happens.

    Raises:
        ArchiveError: The archive is of another pair, damaged, or out of reach.
        SyncsTopicError: The topic does not exist, or was recreated each time that it was read.
        ClusterUnreachableError: A cluster does not answer.
    """
    identity = pair_identity(pair, ask_source=True)
    held = archive.read(identity)
    new_run = read_since(pair, held, identity, ask_source=True)
    if new_run is None:
        raise SyncsTopicError(
            f"{pair.syncs_cluster.name}: the offset-syncs topic {pair.syncs_topic} does not exist; "
            f"what the archive holds stays. Check offset-syncs.topic.location and the aliases"
        )
    header, topic_read = new_run.header, new_run.topic_read
    archive.append(header=header, syncs=topic_read.syncs, marks=_marks(pair, new_run.topics))
    now = archive.read(identity)
    notes = tuple(_notes(held, header))
    for note in notes:
        log.warning("%s", note)
    (run,) = header.runs
    return ArchiveRun(
        new_syncs=topic_read.records_read - topic_read.skipped_count,
        total=len(now),
        skipped=topic_read.skipped_count,
        generation=header.generation.number,
        next_offset=run.stop,
        as_of=iso_time(run.time),
        notes=notes,
    )


def _marks(pair: ClusterPair, topics: Topics) -> dict[TopicPartition, Marks]:
    """Return what both clusters hold of each replicated partition."""
    source = _held(pair.source, {name: (name, each[0]) for name, each in topics.items()})
    target = _held(
        pair.target,
        {name: (pair.naming.target_topic(name), each[1]) for name, each in topics.items()},
    )
    return {place: (source.get(place), target.get(place)) for place in {**source, **target}}


def _held(
    cluster: KafkaCluster, topics: Mapping[str, tuple[str, TopicInfo | None]]
) -> dict[TopicPartition, Watermarks]:
    places = {
        TopicPartition(called, number): TopicPartition(name, number)
        for name, (called, info) in topics.items()
        for number in range(info.partitions if info else 0)
    }
    return {places[place]: marks for place, marks in cluster.watermarks(places).items()}


def _notes(held: "ArchivedSyncs", header: Header) -> Iterator[str]:
    yield from held.damaged
    generation, (run,) = header.generation, header.runs
    if held.generations and generation != held.generations[-1]:
        yield (
            f"topic {header.pair.syncs_topic} was recreated or truncated since generation "
            f"{held.generations[-1]}: read from its beginning as generation {generation.number}"
        )
    known = held.topics
    for topic, ids in run.topics.items():
        before = known.get(topic, ids)
        if was_recreated(before, ids):
            yield (
                f"topic {topic} was recreated (ids on source and target {before} before, {ids} "
                f"now): its syncs up to this run are cut, and positions before later ones refused"
            )
