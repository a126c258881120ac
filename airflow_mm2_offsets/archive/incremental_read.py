"""Reads what an archive does not hold yet of the offset-syncs topic, and what it is of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from airflow_mm2_offsets.archive import Header, PairIdentity, Run
from airflow_mm2_offsets.archive.values import GONE, TopicIds
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import PositionError, TopicNotFoundError
from airflow_mm2_offsets.kafka.cluster import TopicInfo
from airflow_mm2_offsets.kafka.stable_read import SyncsTopicState, read_stable
from airflow_mm2_offsets.kafka.sync_log import SyncsTopicRead, read_syncs_topic

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

Topics: TypeAlias = Mapping[str, tuple[TopicInfo | None, TopicInfo | None]]
"""Replicated topics on source and target, by the source's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is not in the archive yet."""

    header: Header
    topic_read: SyncsTopicRead
    topics: Topics


def read_since(
    pair: ClusterPair, held: "ArchivedSyncs", identity: PairIdentity, *, ask_source: bool
) -> NewRun | None:
    """Read what the archive does not hold; None where the topic does not exist.

    Raises:
        SyncsTopicError: The topic was recreated each time that it was read.
        Mm2OffsetsError: See ``drain``.
    """
    read = partial(_read_once, pair, held, identity, ask_source=ask_source)
    return read_stable(pair.syncs_cluster, pair.syncs_topic, read)


def now_in_milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return int(datetime.now(UTC).timestamp() * 1000)


def iso_time(milliseconds: int) -> str:
    """Return a time, in milliseconds since 1970, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def pair_identity(pair: ClusterPair, *, ask_source: bool) -> PairIdentity:
    """Return which clusters an archive must be of, as far as they can be asked."""
    return PairIdentity(
        source=pair.source.describe().cluster_id if ask_source else None,
        target=pair.target.describe().cluster_id,
        syncs_topic=pair.syncs_topic,
    )


def _read_once(
    pair: ClusterPair,
    held: "ArchivedSyncs",
    identity: PairIdentity,
    before: SyncsTopicState,
    *,
    ask_source: bool,
) -> tuple[int, NewRun] | None:
    """Return the next offset and the run; None if the topic was truncated meanwhile.

    The ids of the replicated topics come first: a sync that is read later on is of these topics
    or of newer ones.
    """
    topics = _topics(pair, held.topics, ask_source=ask_source)
    time = now_in_milliseconds()
    generation, first = held.next_read(before.topic_id, before.end)
    try:
        topic_read = read_syncs_topic(pair.syncs_cluster, pair.syncs_topic, first)
    except (PositionError, TopicNotFoundError):
        return None
    new = {topic for topic, _ in topic_read.syncs} - set(topics)
    topics = {**topics, **_topics(pair, new, ask_source=ask_source)}
    run = Run(
        first=first,
        stop=topic_read.next_offset,
        time=time,
        whole=topic_read.records_read == topic_read.next_offset - first,
        topics=_ids(topics, ask_source=ask_source),
    )
    header = Header(pair=identity, generation=generation, runs=(run,))
    return run.stop, NewRun(header=header, topic_read=topic_read, topics=topics)


def _topics(pair: ClusterPair, names: Iterable[str], *, ask_source: bool) -> Topics:
    wanted = {name: pair.naming.target_topic(name) for name in names}
    source = pair.source.topics(wanted) if ask_source else {}
    target = pair.target.topics(wanted.values())
    return {name: (source.get(name), target.get(other)) for name, other in wanted.items()}


def _ids(topics: Topics, *, ask_source: bool) -> dict[str, TopicIds]:
    no_source = GONE if ask_source else None
    return {
        name: (source.topic_id if source else no_source, target.topic_id if target else GONE)
        for name, (source, target) in topics.items()
    }
