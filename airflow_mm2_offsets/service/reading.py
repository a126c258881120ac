"""Reads what an archive does not hold yet of the offset-syncs topic, and what it is of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from airflow_mm2_offsets.archive import Header, PairIdentity, Run, SyncRows
from airflow_mm2_offsets.archive.values import TopicIds
from airflow_mm2_offsets.core.wire import decode_key, decode_value
from airflow_mm2_offsets.errors import (
    PositionError,
    SyncsTopicError,
    TopicNotFoundError,
    WireFormatError,
)
from airflow_mm2_offsets.kafka.cluster import TopicInfo
from airflow_mm2_offsets.kafka.drain import Record, drain
from airflow_mm2_offsets.kafka.syncs import SYNCS_PARTITION
from airflow_mm2_offsets.service.pair import ClusterPair

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

_TRIES = 3

Topics: TypeAlias = Mapping[str, tuple[TopicInfo | None, TopicInfo | None]]
"""Replicated topics on source and target, by the source's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one read of the offset-syncs topic brought."""

    header: Header
    rows: SyncRows
    skipped: int
    topics: Topics


def read_since(
    pair: ClusterPair, held: "ArchivedSyncs", identity: PairIdentity, *, ask_source: bool
) -> Reading | None:
    """Read what the archive does not hold; None where the topic does not exist.

    The ids of the replicated topics come first: a sync that is read later on is of these topics
    or of newer ones.

    Raises:
        SyncsTopicError: The topic was made again as often as it was read.
        Mm2OffsetsError: See ``drain``.
    """
    for _ in range(_TRIES):
        found = _look(pair)
        if found is None:
            return None
        topic_id, end = found
        topics = _topics(pair, held.topics, ask_source=ask_source)
        time = int(datetime.now(UTC).timestamp() * 1000)
        generation, first = held.next_read(topic_id, end)
        try:
            collected = _Collected.of(pair, first)
        except (PositionError, TopicNotFoundError):
            continue
        after = _look(pair)
        if after is None or after[0] != topic_id or after[1] < collected.stop:
            continue  # It was made again meanwhile: which life a record is of is not known.
        new = {topic for topic, _ in collected.rows.places} - set(topics)
        topics = {**topics, **_topics(pair, new, ask_source=ask_source)}
        run = Run(
            first=first,
            stop=collected.stop,
            time=time,
            whole=collected.read == collected.stop - first,
            topics={topic: _ids(infos) for topic, infos in topics.items()},
        )
        header = Header(pair=identity, generation=generation, runs=(run,))
        return Reading(header=header, rows=collected.rows, skipped=collected.skipped, topics=topics)
    raise SyncsTopicError(
        f"{pair.syncs_cluster.name}: topic {pair.syncs_topic} was made again or truncated each of "
        f"{_TRIES} times that it was read; see what does that"
    )


def _look(pair: ClusterPair) -> tuple[str | None, int] | None:
    """Return the id of the offset-syncs topic and its end; None where it does not exist."""
    cluster, topic = pair.syncs_cluster, pair.syncs_topic
    info = cluster.topics([topic]).get(topic)
    if info is None:
        return None
    try:
        marks = cluster.watermarks([(topic, SYNCS_PARTITION)])
    except TopicNotFoundError:
        return None
    return info.topic_id, marks[topic, SYNCS_PARTITION].high


@dataclass(slots=True, kw_only=True)
class _Collected:
    """Records of the offset-syncs topic, as columns."""

    stop: int
    rows: SyncRows = field(default_factory=SyncRows)
    read: int = 0
    skipped: int = 0
    _numbers: dict[bytes | None, int] = field(default_factory=dict)

    @classmethod
    def of(cls, pair: ClusterPair, first: int) -> "_Collected":
        collected = cls(stop=first)
        for batch in drain(pair.syncs_cluster, {(pair.syncs_topic, SYNCS_PARTITION): first}):
            collected.take(batch)
        return collected

    def take(self, batch: list[Record]) -> None:
        rows = self.rows
        for record in batch:
            try:
                upstream, downstream = decode_value(record.value())
                place = self._place(record.key())
            except WireFormatError:
                self.skipped += 1
                continue
            rows.place.append(place)
            rows.offset.append(record.offset())
            rows.upstream.append(upstream)
            rows.downstream.append(downstream)
        self.read += len(batch)
        self.stop = batch[-1].offset() + 1

    def _place(self, key: bytes | None) -> int:
        number = self._numbers.get(key)
        if number is None:
            self.rows.places.append(decode_key(key))
            number = self._numbers[key] = len(self.rows.places) - 1
        return number


def _topics(pair: ClusterPair, names: Iterable[str], *, ask_source: bool) -> Topics:
    wanted = {name: pair.naming.target_topic(name) for name in names}
    source = pair.source.topics(wanted) if ask_source else {}
    target = pair.target.topics(wanted.values())
    return {name: (source.get(name), target.get(other)) for name, other in wanted.items()}


def _ids(infos: tuple[TopicInfo | None, TopicInfo | None]) -> TopicIds:
    source, target = infos
    return source.topic_id if source else None, target.topic_id if target else None
