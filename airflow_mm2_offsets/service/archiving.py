"""Keeps an archive of offset syncs up to date, and translates with it."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.archive import PairIdentity, SyncArchive
from airflow_mm2_offsets.archive.runs import recreations
from airflow_mm2_offsets.archive.values import Marks, TopicIds, was_recreated
from airflow_mm2_offsets.core import (
    Basis,
    Status,
    SyncIndex,
    SyncsLocation,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster, TopicInfo
from airflow_mm2_offsets.service.pair import ClusterPair
from airflow_mm2_offsets.service.reading import (
    Reading,
    Topics,
    now_in_milliseconds,
    read_ids,
    read_since,
)

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

log = logging.getLogger(__name__)

_CUT = frozenset({Basis.HISTORY_CUT, Basis.COPYING_AGAIN})
"""What refuses a position of which older syncs would have to tell."""


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
    """What a user should know: topics that were made again, files that were skipped."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": [*self.notes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSyncs:
    """What there is to translate with."""

    index: SyncIndex
    read: int
    """Syncs of the archive, and records read from the topic."""
    skipped_count: int
    as_of: str | None = None
    """When the archive's newest run was, where the topic itself was not read; ISO 8601, UTC."""
    recreated: Mapping[str, str] = field(default_factory=dict)
    """The topics that were recreated since the archive first saw them, by the source's names: a
    sentence that names their ids."""

    def explain(self, answer: Translation) -> Translation:
        """Return ``answer``; one refused because its topic was recreated names the ids."""
        recreated = self.recreated.get(answer.topic)
        refused = answer.status is Status.REFUSED and answer.basis in _CUT
        if recreated is None or not refused:
            return answer
        return replace(answer, reason=f"{answer.reason}; {recreated}")


def archive_syncs(pair: ClusterPair, archive: SyncArchive) -> ArchiveRun:
    """Read what is new on the offset-syncs topic, and add it to the archive.

    It reads the archive too, and so finds damage on the day that it happens.

    Raises:
        ArchiveError: The archive is of another pair, damaged, or out of reach.
        SyncsTopicError: The topic does not exist, or was made again as often as it was read.
        ClusterUnreachableError: A cluster does not answer.
    """
    identity = _identity(pair, ask_source=True)
    held = archive.read(identity)
    reading = read_since(pair, held, identity, ask_source=True)
    if reading is None:
        raise SyncsTopicError(
            f"{pair.syncs_cluster.name}: the offset-syncs topic {pair.syncs_topic} does not exist; "
            f"what the archive holds stays. Check offset-syncs.topic.location and the aliases"
        )
    archive.append(header=reading.header, rows=reading.rows, marks=_marks(pair, reading.topics))
    now = archive.read(identity)
    notes = tuple(_notes(held, reading))
    for note in notes:
        log.warning("%s", note)
    run = reading.header.runs[0]
    return ArchiveRun(
        new_syncs=len(reading.rows),
        total=len(now),
        skipped=reading.skipped,
        generation=reading.header.generation.number,
        next_offset=run.stop,
        as_of=iso_time(run.time),
        notes=notes,
    )


def load_syncs(
    pair: ClusterPair, archive: SyncArchive | None, *, ask_source: bool = True
) -> LoadedSyncs:
    """Return what the archive holds and what the topic has since.

    The archive alone where the topic can't be asked: it lies on a source that is not to be asked,
    or does not exist any more. ``LoadedSyncs.as_of`` says so.

    Ids come before numbers: the archive must be of these clusters, and syncs of topics that were
    recreated since are cut, whether the topic of the syncs is read or not.

    Args:
        pair: The clusters.
        archive: None: the topic alone.
        ask_source: Whether the source cluster can be asked.

    Raises:
        ArchiveError: The archive is of another pair, damaged, or out of reach.
        SyncsTopicError: There is no sync at all.
        ClusterUnreachableError: A cluster that is asked does not answer.
    """
    if archive is None:
        syncs = pair.read_syncs()
        return LoadedSyncs(
            index=syncs.index,
            read=syncs.read,
            skipped_count=syncs.skipped_count,
        )
    identity = _identity(pair, ask_source=ask_source)
    held = archive.read(identity)
    reading = None
    if ask_source or pair.syncs_location is SyncsLocation.TARGET:
        reading = read_since(pair, held, identity, ask_source=ask_source)
    as_of = None
    if reading is not None:
        held = held.with_run(reading.header, reading.rows)
    else:
        as_of = None if held.as_of is None else iso_time(held.as_of)
        ids = read_ids(pair, held.topics, ask_source=ask_source)
        held = held.with_ids(ids, now_in_milliseconds())
    if not len(held) and not held.floors:
        raise SyncsTopicError(
            f"neither the archive {archive.location} nor topic {pair.syncs_topic} holds an offset "
            f"sync that can be used; see whether MirrorMaker 2 and the DAG that archives run"
        )
    return LoadedSyncs(
        index=held.index(),
        read=len(held),
        skipped_count=reading.skipped if reading else 0,
        as_of=as_of,
        recreated={each.topic: _recreated(pair, *each[:3]) for each in recreations(held.runs)},
    )


def _identity(pair: ClusterPair, *, ask_source: bool) -> PairIdentity:
    return PairIdentity(
        source=pair.source.describe().cluster_id if ask_source else None,
        target=pair.target.describe().cluster_id,
        syncs_topic=pair.syncs_topic,
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


def _recreated(pair: ClusterPair, topic: str, before: TopicIds, now: TopicIds) -> str:
    sides = zip((pair.source, pair.target), (topic, pair.naming.target_topic(topic)), strict=True)
    changes = [
        f"topic {name} on the {cluster.name} had the id {old or 'unknown'} when the archive last "
        f"saw it and has {new} now"
        for (cluster, name), old, new in zip(sides, before, now, strict=True)
        if was_recreated((old, None), (new, None))
    ]
    return (
        f"{', and '.join(changes)}: wait until MirrorMaker 2 has copied the position again, or "
        f"choose where to start (on_unmapped)"
    )


def _notes(held: "ArchivedSyncs", reading: Reading) -> Iterator[str]:
    yield from held.damaged
    generation, run = reading.header.generation, reading.header.runs[0]
    if held.generations and generation != held.generations[-1]:
        yield (
            f"topic {reading.header.pair.syncs_topic} was made again or truncated since generation "
            f"{held.generations[-1]}: read from its beginning as generation {generation.number}"
        )
    known = held.topics
    for topic, ids in run.topics.items():
        before = known.get(topic, ids)
        if was_recreated(before, ids):
            yield (
                f"topic {topic} was made again (ids on source and target {before} before, {ids} "
                f"now): its syncs up to this run are cut, and positions before later ones refused"
            )


def iso_time(milliseconds: int) -> str:
    """Return a time, in milliseconds since 1970, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
