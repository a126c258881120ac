"""Rules about what the clusters and Connect tell of themselves."""

import re
from collections.abc import Callable, Iterable, Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.live_facts import LiveFacts
from airflow_mm2_offsets.health import PartHealth
from airflow_mm2_offsets.planning.topic_settings import has_log_append_time, shorter_retention

_KEEPS_IDLE_SYNCS = (3, 7)
"""The first Kafka whose MirrorMaker 2 writes a last sync of an idle topic (KAFKA-15906)."""
_VERSION = re.compile(r"(\d+)\.(\d+)")
_MAX_LISTED = 10
"""The most topics that are named one by one."""


def _listed(find: Callable[[LiveFacts], Iterator[Hit]]) -> Callable[[LiveFacts], Iterator[Hit]]:
    """Let a rule name some topics, and count the others."""

    def find_some(facts: LiveFacts) -> Iterator[Hit]:
        hits = [*find(facts)]
        yield from hits[:_MAX_LISTED]
        if rest := hits[_MAX_LISTED:]:
            yield Hit(f"the same of {len(rest)} more topics", "each of them")

    return find_some


def _unanswered(parts: Iterable[PartHealth]) -> Iterator[Hit]:
    for part in parts:
        if part.error:
            yield Hit(f"{part.part}: {part.error}")


def _syncs_deleted(facts: LiveFacts) -> Iterator[Hit]:
    if facts.syncs_topic is None:
        return
    policy = (facts.syncs_settings or {}).get("cleanup.policy", "compact")
    if policy != "compact":
        retention = (facts.syncs_settings or {}).get("retention.ms", "unknown")
        yield Hit(
            f"topic {facts.syncs_topic} on the {facts.syncs_cluster} has cleanup.policy={policy} "
            f"and retention.ms={retention}",
            facts.syncs_topic,
        )


def _few_replicas(facts: LiveFacts) -> Iterator[Hit]:
    if facts.syncs_topic is not None and facts.syncs_replicas == 1:
        place = f"topic {facts.syncs_topic} on the {facts.syncs_cluster}"
        yield Hit(f"{place} has 1 replica", facts.syncs_topic)


@_listed
def _shorter_on_target(facts: LiveFacts) -> Iterator[Hit]:
    for topic in facts.topics:
        shorter = shorter_retention(topic.target_settings, topic.source_settings)
        for name, (target, source) in shorter.items():
            value = (
                f"{name} is {target} for {topic.target} on the target, and {source} on the source"
            )
            yield Hit(value, f"{topic.target} --add-config {name}={source}")


@_listed
def _shorter_on_source(facts: LiveFacts) -> Iterator[Hit]:
    for topic in facts.topics:
        shorter = shorter_retention(topic.source_settings, topic.target_settings)
        for name, (source, target) in shorter.items():
            value = (
                f"{name} is {source} for {topic.source} on the source, and {target} on the target"
            )
            yield Hit(value)


@_listed
def _stamped(facts: LiveFacts) -> Iterator[Hit]:
    for topic in facts.topics:
        if has_log_append_time(topic.target_settings):
            value = f"topic {topic.target} on the target has message.timestamp.type=LogAppendTime"
            yield Hit(value, topic.target)


def _no_heartbeats(facts: LiveFacts) -> Iterator[Hit]:
    if facts.has_heartbeats is False:
        yield Hit(f"the target has no topic {facts.heartbeats_topic}")


def _old_version(facts: LiveFacts) -> Iterator[Hit]:
    version = _VERSION.match(facts.connect_version or "")
    if version and (int(version[1]), int(version[2])) < _KEEPS_IDLE_SYNCS:
        yield Hit(f"Kafka Connect is {facts.connect_version}")


CONNECTION_RULES: tuple[Rule[Iterable[PartHealth]], ...] = (
    Rule(
        check="connection",
        severity=Severity.ERROR,
        why="A part that a failover needs does not answer, or contradicts the settings.",
        remedy="do what the message says; check-connection shows each step",
        find=_unanswered,
    ),
)

LIVE_RULES: tuple[Rule[LiveFacts], ...] = (
    Rule(
        check="syncs_deleted",
        severity=Severity.ERROR,
        why=(
            "The offset-syncs topic deletes by age: of an idle topic-partition the last sync is "
            "lost, and its position is refused."
        ),
        remedy=(
            "kafka-configs.sh --alter --entity-type topics --entity-name {subject} --add-config "
            "cleanup.policy=compact"
        ),
        find=_syncs_deleted,
    ),
    Rule(
        check="syncs_topic_replicas",
        severity=Severity.WARNING,
        why="One lost broker takes all offset syncs.",
        remedy="give {subject} 3 replicas by kafka-reassign-partitions.sh",
        find=_few_replicas,
    ),
    Rule(
        check="retention_shorter_on_target",
        severity=Severity.WARNING,
        why=(
            "The target deletes records that the source still has: a job that lags can't continue "
            "where it stands."
        ),
        remedy=(
            "kafka-configs.sh --alter --entity-type topics --entity-name {subject} on the target, "
            "or more"
        ),
        find=_shorter_on_target,
    ),
    Rule(
        check="log_append_time",
        severity=Severity.WARNING,
        why=(
            "Two copies of a record differ in their timestamp: records can't be matched or "
            "counted, so more of them are read again."
        ),
        remedy=(
            "kafka-configs.sh --alter --entity-type topics --entity-name {subject} --add-config "
            "message.timestamp.type=CreateTime"
        ),
        find=_stamped,
    ),
    Rule(
        check="heartbeats_missing",
        severity=Severity.WARNING,
        why="Nobody can tell how many seconds MirrorMaker 2 lags, nor how much a disaster loses.",
        remedy=(
            "run a MirrorHeartbeatConnector that writes to the source, and let MirrorMaker 2 copy "
            "its topic (heartbeats.replication.enabled = true)"
        ),
        find=_no_heartbeats,
    ),
    Rule(
        check="mirrormaker_old",
        severity=Severity.WARNING,
        why=(
            "Before 3.7 MirrorMaker 2 writes no last sync of an idle topic: a position at its end "
            "stays BOUNDED. Before 3.5 Connect does not tell what was copied, either."
        ),
        remedy="upgrade Kafka Connect to 3.7 or newer",
        find=_old_version,
    ),
    Rule(
        check="retention_shorter_on_source",
        severity=Severity.NOTE,
        why=(
            "The source deletes sooner: records that are deleted before they are copied are "
            "missing on the target, and no longer prove an answer."
        ),
        remedy="keep records on the source longer than MirrorMaker 2 may stand still",
        find=_shorter_on_source,
    ),
)
