"""Rules about topics: which are copied, what they are called, and with which settings."""

from collections.abc import Iterator

from airflow_mm2_offsets.core import ReplicationPolicy
from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.hits import hit_of
from airflow_mm2_offsets.planning.mirror_connector import (
    INTERNAL_SEPARATOR,
    POLICY,
    SEPARATOR,
    MirrorConnector,
)
from airflow_mm2_offsets.planning.topic_filter import TopicFilter, matches

_KNOWN_POLICIES = frozenset(f"{each.value.title()}ReplicationPolicy" for each in ReplicationPolicy)
POLICY_UNKNOWN = "policy_unknown"
"""The rule that does not count where the user has told how the policy names topics."""
_REFRESH = "refresh.topics.enabled"
_CONFIGS, _EXCLUDED_CONFIGS = "sync.topic.configs.enabled", "config.properties.exclude"
_ACLS, _REPLICATION, _TASKS = "sync.topic.acls.enabled", "replication.factor", "tasks.max"
_TIMESTAMP_TYPE = "message.timestamp.type"
_GROUPS = "sync.group.offsets.enabled"
_NAME_CHARACTERS = "-_"
"""Of the characters that people write into topic names; a dot is the default separator."""


def _custom_policy(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.policy and connector.policy not in _KNOWN_POLICIES:
        yield hit_of(connector, POLICY)


def _filter_of_vendor(connector: MirrorConnector) -> Iterator[Hit]:
    if not TopicFilter(connector).is_known:
        yield hit_of(connector, "topic.filter.class")


def _ambiguous_separator(connector: MirrorConnector) -> Iterator[Hit]:
    separator = connector.text(SEPARATOR)
    if separator and separator in _NAME_CHARACTERS:
        yield hit_of(connector, SEPARATOR)


def _internal_separator(connector: MirrorConnector) -> Iterator[Hit]:
    separator = connector.text(SEPARATOR)
    if separator not in {"", "."} and INTERNAL_SEPARATOR not in connector.config:
        yield hit_of(connector, SEPARATOR, subject=separator)


def separator_in_alias(connector: MirrorConnector) -> bool:
    """Tell whether MirrorMaker 2 can't read the source's alias back from a topic's name.

    ``DefaultReplicationPolicy.topicSource`` cuts the name at the first separator.
    """
    separator = connector.text(SEPARATOR)
    is_default = connector.policy == "DefaultReplicationPolicy"
    return is_default and bool(separator) and separator in connector.source_alias


def _separator_in_alias(connector: MirrorConnector) -> Iterator[Hit]:
    if separator_in_alias(connector):
        alias, separator = connector.source_alias, connector.text(SEPARATOR)
        yield Hit(f"source.cluster.alias = {alias} holds {separator!r} in {connector.name}")


def _refresh_off(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.flag(_REFRESH) is False:
        yield hit_of(connector, _REFRESH)


def _configs_off(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.flag(_CONFIGS) is False:
        yield hit_of(connector, _CONFIGS)


def _timestamp_type_copied(connector: MirrorConnector) -> Iterator[Hit]:
    is_excluded = matches(connector.words(_EXCLUDED_CONFIGS), _TIMESTAMP_TYPE)
    is_copied = connector.tells(_EXCLUDED_CONFIGS) and is_excluded is False
    if is_copied and connector.flag(_CONFIGS) is not False:
        yield hit_of(connector, _EXCLUDED_CONFIGS)


def _acls_off(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.flag(_ACLS) is False:
        yield hit_of(connector, _ACLS)


def _one_replica(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.number(_REPLICATION) == 1:
        yield hit_of(connector, _REPLICATION)


def _one_task(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.number(_TASKS) == 1:
        yield hit_of(connector, _TASKS)


def _group_offsets(connector: MirrorConnector) -> Iterator[Hit]:
    if _GROUPS in connector.config:
        yield hit_of(connector, _GROUPS)


TOPIC_RULES: tuple[Rule[MirrorConnector], ...] = (
    Rule(
        check=POLICY_UNKNOWN,
        severity=Severity.ERROR,
        why=(
            "This package can't tell what a topic is called on the target: a position would be "
            "translated into another topic."
        ),
        remedy=(
            "replication.policy.class = "
            "org.apache.kafka.connect.mirror.DefaultReplicationPolicy, or "
            "IdentityReplicationPolicy of the same package; or tell which of the two your class "
            "names topics like, by the variable MM2_OFFSETS_REPLICATION_POLICY"
        ),
        find=_custom_policy,
    ),
    Rule(
        check="separator_in_alias",
        severity=Severity.WARNING,
        why=(
            "MirrorMaker 2 cuts a topic's name at the first separator and does not know its own "
            "copies: it restarts its tasks at each refresh, and copies no topic settings."
        ),
        remedy="use an alias without the separator, or another replication.policy.separator",
        find=_separator_in_alias,
    ),
    Rule(
        check="separator_ambiguous",
        severity=Severity.WARNING,
        why=(
            "Topic names often hold this character: a topic whose name begins with the target's "
            "alias and the separator is taken for a copy, and is not copied."
        ),
        remedy="replication.policy.separator = . (topics get new names: plan it as a migration)",
        find=_ambiguous_separator,
    ),
    Rule(
        check="topics_not_refreshed",
        severity=Severity.WARNING,
        why=(
            "New topics and partitions are copied only after a restart: until then the target "
            "lacks partitions, and a failover of their job is refused."
        ),
        remedy="refresh.topics.enabled = true",
        find=_refresh_off,
    ),
    Rule(
        check="topic_configs_not_copied",
        severity=Severity.WARNING,
        why=(
            "Target topics keep the target's defaults: a shorter retention deletes records that a "
            "job has yet to read there."
        ),
        remedy="sync.topic.configs.enabled = true, or set retention.ms of the target's topics",
        find=_configs_off,
    ),
    Rule(
        check="timestamp_type_copied",
        severity=Severity.WARNING,
        why=(
            "message.timestamp.type is copied to the target: with LogAppendTime two copies of a "
            "record differ in their timestamp, and records can't be matched or counted."
        ),
        remedy=r"add message\.timestamp\.type to config.properties.exclude",
        find=_timestamp_type_copied,
    ),
    Rule(
        check="replication_factor",
        severity=Severity.WARNING,
        why="Target topics get one replica: one lost broker of the target takes the copies.",
        remedy="replication.factor = 3; it counts for new topics",
        find=_one_replica,
    ),
    Rule(
        check="topic_filter_unknown",
        severity=Severity.NOTE,
        why="A filter of your own decides what is copied: whether a job's topic is, can't be told.",
        remedy="see that it keeps the job's topics, and drops those that were copied to the source",
        find=_filter_of_vendor,
    ),
    Rule(
        check="internal_separator",
        severity=Severity.NOTE,
        why=(
            "From Kafka 3.1 on, internal topics use the separator too: after an upgrade "
            "MirrorMaker 2 begins a new offset-syncs topic, and the older syncs stay in the old "
            "one."
        ),
        remedy=(
            "archive the syncs before an upgrade, or keep the old names by "
            "replication.policy.internal.topic.separator.enabled = false"
        ),
        find=_internal_separator,
    ),
    Rule(
        check="acls_not_copied",
        severity=Severity.NOTE,
        why="The job's user gets no rights on the target from MirrorMaker 2.",
        remedy="grant it READ and DESCRIBE on the target's topics before a failover",
        find=_acls_off,
    ),
    Rule(
        check="one_task",
        severity=Severity.NOTE,
        why="One task copies all partitions: a failover waits for it if there are many.",
        remedy="tasks.max = as many as the partitions and workers allow",
        find=_one_task,
    ),
    Rule(
        check="group_offsets",
        severity=Severity.NOTE,
        why="Spark keeps its positions in its checkpoint: group offsets move no Spark job.",
        remedy="nothing; it counts for other consumers only",
        find=_group_offsets,
    ),
)
