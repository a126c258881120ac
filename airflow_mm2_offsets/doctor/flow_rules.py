"""Rules about a flow beside its reverse: loops, heartbeats, and whether the job's topics flow."""

from collections.abc import Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.flow import Flow
from airflow_mm2_offsets.doctor.hits import hit_of
from airflow_mm2_offsets.doctor.topic_rules import separator_in_alias
from airflow_mm2_offsets.planning.mirror_connector import (
    INTERNAL_SEPARATOR,
    SEPARATOR,
    SYNCS_LOCATION,
    MirrorConnector,
)
from airflow_mm2_offsets.planning.topic_filter import (
    TopicFilter,
    copied_by_both,
    named_in_both,
    same_patterns,
)

_EMIT = "emit.heartbeats.enabled"
_COPY_HEARTBEATS = "heartbeats.replication.enabled"
_INTERNAL = (".internal", "-internal")
_IDENTITY = "IdentityReplicationPolicy"


def _syncs_mixed(flow: Flow) -> Iterator[Hit]:
    """Find flows that share an offset-syncs topic, by ``MirrorSourceConfig.offsetSyncsTopic``.

    Its name has the alias of the cluster that does not hold it, and not the flow's direction.
    """
    back = _copying_back(flow)
    if back is None or not (flow.connector.emits_syncs and back.emits_syncs):
        return
    here, there = (each.text(SYNCS_LOCATION) for each in (flow.connector, back))
    if here != there and _internal_separator(flow.connector) == _internal_separator(back):
        yield Hit(f"{SYNCS_LOCATION} = {here} in {flow.connector.name}, and {there} in {back.name}")


def _internal_separator(connector: MirrorConnector) -> str:
    return "." if connector.flag(INTERNAL_SEPARATOR) is False else connector.text(SEPARATOR)


def _topic_not_copied(flow: Flow) -> Iterator[Hit]:
    for topic in flow.topics:
        reason = TopicFilter(flow.connector).why_not(topic)
        # Siblings split the topics between them.
        if reason and all(TopicFilter(each).why_not(topic) for each in flow.siblings):
            yield Hit(f"topic {topic}: {reason} in {flow.connector.name}", topic)


def _copied_twice(flow: Flow) -> Iterator[Hit]:
    for sibling in flow.siblings:
        if sibling.name > flow.connector.name:  # each two are compared once
            for shared in copied_by_both(flow.connector, sibling, flow.topics):
                names = f"{flow.connector.name} and {sibling.name}"
                yield Hit(f"{names} both copy {shared}", shared)


def _internal_name(flow: Flow) -> Iterator[Hit]:
    for topic in flow.topics:
        if topic.endswith(_INTERNAL):
            yield Hit(f"topic {topic} of {flow.connector.name}")


def _loop(flow: Flow) -> Iterator[Hit]:
    back = _copying_back(flow)
    if back is None:
        return
    names = f"{flow.connector.name} and {back.name}"
    if flow.connector.policy == back.policy == _IDENTITY:
        shared = named_in_both(flow.connector, back, flow.topics)
        for topic in shared:
            yield Hit(f"{names} both copy topic {topic} under its own name")
        if not shared and same_patterns(flow.connector, back):
            yield Hit(f"{names} both copy topics = {back.text('topics')} under their own names")
    elif separator_in_alias(flow.connector) and separator_in_alias(back):
        # With one such alias, ``isCycle`` still finds the other one in the name.
        aliases = f"{flow.connector.source_alias} and {back.source_alias}"
        yield Hit(f"{names}: aliases {aliases} both hold the separator")


def _loop_possible(flow: Flow) -> Iterator[Hit]:
    back = _copying_back(flow)
    if back is None or not flow.connector.policy == back.policy == _IDENTITY:
        return
    here, named = flow.connector, named_in_both(flow.connector, back, flow.topics)
    are_literal = TopicFilter(here).is_literal or TopicFilter(back).is_literal
    if not are_literal and not same_patterns(here, back) and not named:
        patterns = f"{flow.connector.text('topics')} and {back.text('topics')}"
        yield Hit(f"topics = {patterns} in {flow.connector.name} and {back.name}")


def _copying_back(flow: Flow) -> MirrorConnector | None:
    return flow.reverse if flow.copies_back else None


def _no_heartbeats(flow: Flow) -> Iterator[Hit]:
    # The reverse herder writes the source's heartbeats (``MirrorMakerConfig.clusterPairs``).
    if flow.reverse is not None and flow.reverse.flag(_EMIT) is False:
        yield hit_of(flow.reverse, _EMIT, subject=f"{flow.reverse.name}.{_EMIT} = true")
    copying = (flow.connector, *flow.siblings)
    if all(each.flag(_COPY_HEARTBEATS) is False for each in copying):
        yield hit_of(flow.connector, _COPY_HEARTBEATS, subject=f"{_COPY_HEARTBEATS} = true")


FLOW_RULES: tuple[Rule[Flow], ...] = (
    Rule(
        check="syncs_mixed",
        severity=Severity.ERROR,
        why=(
            "Both flows write their offset syncs to one topic: a position would be translated by "
            "the syncs of the other direction."
        ),
        remedy=(
            "the same offset-syncs.topic.location for both flows; MirrorMaker 2 then begins a new "
            "topic"
        ),
        find=_syncs_mixed,
    ),
    Rule(
        check="topic_not_copied",
        severity=Severity.ERROR,
        why="MirrorMaker 2 does not copy the job's topic: the target has nothing to read.",
        remedy="add {subject} to topics, or take what matches it out of topics.exclude",
        find=_topic_not_copied,
    ),
    Rule(
        check="topic_copied_twice",
        severity=Severity.ERROR,
        why=(
            "Two connectors of the pair copy a topic: each record is there twice, and the offset "
            "syncs of both are mixed. Positions are translated to a much wider range."
        ),
        remedy=(
            "let only one of the connectors copy {subject} (topics, topics.exclude), and forget "
            "the other's offsets of it (AlterConnectorOffsetsOperator)"
        ),
        find=_copied_twice,
    ),
    Rule(
        check="loop",
        severity=Severity.ERROR,
        why=(
            "Two flows copy a topic back and forth without end: it fills both clusters, and no "
            "offset of it means anything."
        ),
        remedy=(
            "let only one of the flows copy it (topics, topics.exclude, enabled), or use "
            "DefaultReplicationPolicy with aliases that do not hold the separator"
        ),
        find=_loop,
    ),
    Rule(
        check="topic_internal_name",
        severity=Severity.WARNING,
        why=(
            "MirrorMaker 2 before Kafka 4.0 takes a topic with this ending for an internal one, "
            "and does not copy it."
        ),
        remedy="run MirrorMaker 2 of Kafka 4.0 or newer, or rename the topic",
        find=_internal_name,
    ),
    Rule(
        check="loop_possible",
        severity=Severity.WARNING,
        why=(
            "IdentityReplicationPolicy sees no loops: a topic that both patterns match is copied "
            "back and forth without end."
        ),
        remedy="name the topics of one flow one by one, instead of by a pattern",
        find=_loop_possible,
    ),
    Rule(
        check="no_heartbeats",
        severity=Severity.WARNING,
        why=(
            "No heartbeats of the source reach the target: nobody can tell how many seconds "
            "MirrorMaker 2 lags, nor how much a disaster would lose."
        ),
        remedy="{subject}",
        find=_no_heartbeats,
    ),
)
