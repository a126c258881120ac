"""Reads the records of the offset-syncs topic that an archive lacks.

``archive_syncs`` adds them to the archive; the planner only translates with them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from airflow_mm2_offsets.archive import Header, PairIdentity, Run
from airflow_mm2_offsets.archive.values import GONE, TopicIds
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import PositionError, TopicNotFoundError
from airflow_mm2_offsets.kafka.descriptions import TopicInfo
from airflow_mm2_offsets.kafka.stable_read import SyncsTopicState, read_stable
from airflow_mm2_offsets.kafka.sync_log import SyncsTopicRead, read_syncs_topic

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

ReplicatedTopics: TypeAlias = Mapping[str, tuple[TopicInfo | None, TopicInfo | None]]
"""Each replicated topic on the source and on the target, by the source's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is not in the archive yet."""

    header: Header
    topic_read: SyncsTopicRead
    topics: ReplicatedTopics


def read_since(
    pair: ClusterPair, archived: "ArchivedSyncs", identity: PairIdentity, *, ask_source: bool
) -> NewRun | None:
    """Read the records after the archive's last run; None if the topic does not exist.

    Raises:
        SyncsTopicError: The topic was recreated during each read.
        Mm2OffsetsError: See ``drain``.
    """
    read = partial(_read_once, pair, archived, identity, ask_source=ask_source)
    return read_stable(pair.syncs_cluster, pair.syncs_topic, read)


def now_in_milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return int(datetime.now(UTC).timestamp() * 1000)


def iso_time(milliseconds: int) -> str:
    """Return a time, in milliseconds since 1970, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def pair_identity(pair: ClusterPair, *, ask_source: bool) -> PairIdentity:
    """Return the ids of the clusters, as far as they can be asked."""
    return PairIdentity(
        source=pair.source.describe().cluster_id if ask_source else None,
        target=pair.target.describe().cluster_id,
        syncs_topic=pair.syncs_topic,
    )


def _read_once(
    pair: ClusterPair,
    archived: "ArchivedSyncs",
    identity: PairIdentity,
    before: SyncsTopicState,
    *,
    ask_source: bool,
) -> tuple[int, NewRun] | None:
    """Return the next offset and the run; None if the topic was truncated meanwhile.

    It asks for the ids of the replicated topics first: each sync is of one of these topics, or of
    a newer one.
    """
    topics = _topics(pair, archived.topics, ask_source=ask_source)
    time = now_in_milliseconds()
    incarnation, first = archived.next_read(before.topic_id, before.end)
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
    header = Header(pair=identity, incarnation=incarnation, runs=(run,))
    return run.stop, NewRun(header=header, topic_read=topic_read, topics=topics)


def _topics(pair: ClusterPair, names: Iterable[str], *, ask_source: bool) -> ReplicatedTopics:
    target_names = {name: pair.naming.target_topic(name) for name in names}
    source = pair.source.topics(target_names) if ask_source else {}
    target = pair.target.topics(target_names.values())
    return {
        name: (source.get(name), target.get(target_name))
        for name, target_name in target_names.items()
    }


def _ids(topics: ReplicatedTopics, *, ask_source: bool) -> dict[str, TopicIds]:
    no_source = GONE if ask_source else None
    return {
        name: (source.topic_id if source else no_source, target.topic_id if target else GONE)
        for name, (source, target) in topics.items()
    }
