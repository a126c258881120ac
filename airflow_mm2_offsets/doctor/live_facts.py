"""Reads from the clusters and from Connect what ``live_rules`` judge; nothing is written."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs

if TYPE_CHECKING:
    from airflow_mm2_offsets.kafka.descriptions import TopicInfo

AnswerT = TypeVar("AnswerT")
_Settings = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTopic:
    """The settings of a topic and of its copy."""

    source: str
    target: str
    source_settings: _Settings
    target_settings: _Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """What was read; None, or nothing, where a part did not answer or is not there."""

    topics: tuple[CopiedTopic, ...] = ()
    """Those that exist on both clusters."""
    syncs_topic: str | None
    """None where the copies keep their offsets: no syncs topic exists, and no heartbeats."""
    syncs_cluster: str
    syncs_settings: _Settings | None = None
    syncs_replicas: int | None = None
    """Of the partition that has the fewest."""
    heartbeats_topic: str
    has_heartbeats: bool | None = None
    connect_version: str | None = None
    unanswered: tuple[str, ...] = field(default=())
    """Why something could not be read."""


def read_live_facts(pair: ClusterPair, topics: Collection[str]) -> LiveFacts:
    """Ask the clusters; a part that fails is named in ``unanswered``.

    Args:
        pair: The clusters.
        topics: The job's topics by the source's names; none: all that have offset syncs.
    """
    unanswered: list[str] = []

    def ask(question: Callable[[], AnswerT], otherwise: AnswerT) -> AnswerT:
        try:
            return question()
        except Mm2OffsetsError as error:
            unanswered.append(str(error))
            return otherwise

    pair = pair.mirrored
    cluster = pair.syncs_cluster
    syncs_topic = pair.syncs_topic if pair.has_syncs else None
    beats = pair.naming.heartbeats_topic()
    infos: dict[str, TopicInfo] = {}
    if syncs_topic is not None:
        infos = ask(lambda: cluster.topics([syncs_topic]), {})
    return LiveFacts(
        topics=ask(lambda: _copied_topics(pair, topics or _synced_topics(pair)), ()),
        syncs_topic=syncs_topic,
        syncs_cluster=cluster.name,
        syncs_settings=ask(lambda: cluster.topic_settings([*infos]).get(syncs_topic or ""), None),
        syncs_replicas=infos[syncs_topic].replicas if syncs_topic and infos else None,
        heartbeats_topic=beats,
        has_heartbeats=ask(lambda: beats in pair.target.topics([beats]), None)
        if pair.has_syncs
        else None,
        connect_version=ask(pair.connect.check, None) if pair.connect else None,
        unanswered=tuple(unanswered),
    )


def _synced_topics(pair: ClusterPair) -> set[str]:
    if not pair.has_syncs:
        return set()
    index = read_syncs(pair.syncs_cluster, pair.syncs_topic).index
    return {partition.topic for partition in index.partitions}


def _copied_topics(pair: ClusterPair, topics: Collection[str]) -> tuple[CopiedTopic, ...]:
    names = {topic: pair.naming.target_topic(topic) for topic in sorted(topics)}
    source = _settings_of_existing(pair.source, names.keys())
    target = _settings_of_existing(pair.target, names.values())
    return tuple(
        CopiedTopic(
            source=topic,
            target=copy,
            source_settings=source[topic],
            target_settings=target[copy],
        )
        for topic, copy in names.items()
        if topic in source and copy in target
    )


def _settings_of_existing(cluster: KafkaCluster, names: Collection[str]) -> dict[str, _Settings]:
    return cluster.topic_settings([*cluster.topics(names)])
