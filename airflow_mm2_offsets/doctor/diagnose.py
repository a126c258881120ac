"""Examines a set-up by all rules; ``offline`` asks no cluster."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connection_check import check_connection
from airflow_mm2_offsets.core import SyncsLocation
from airflow_mm2_offsets.doctor.client_rules import CLIENT_RULES
from airflow_mm2_offsets.doctor.delivery_rules import DELIVERY_RULES
from airflow_mm2_offsets.doctor.diagnosis import Diagnosis, worst_first
from airflow_mm2_offsets.doctor.finding import Finding, Hit, Rule, Severity, SubjectT
from airflow_mm2_offsets.doctor.flow import Flow, find_reverses, find_siblings
from airflow_mm2_offsets.doctor.flow_rules import FLOW_RULES
from airflow_mm2_offsets.doctor.kept_syncs_rules import KEPT_SYNCS_RULES, KeptSyncs
from airflow_mm2_offsets.doctor.live_facts import read_live_facts
from airflow_mm2_offsets.doctor.live_rules import CONNECTION_RULES, LIVE_RULES
from airflow_mm2_offsets.doctor.record_rules import RECORD_RULES
from airflow_mm2_offsets.doctor.sync_rules import SYNC_RULES
from airflow_mm2_offsets.doctor.topic_rules import POLICY_UNKNOWN, TOPIC_RULES
from airflow_mm2_offsets.errors import ClusterUnreachableError, Mm2OffsetsError
from airflow_mm2_offsets.health import PartHealth
from airflow_mm2_offsets.planning.mirror_config import as_connectors, read_mirror_connectors
from airflow_mm2_offsets.planning.mirror_connector import SYNCS_LOCATION, MirrorConnector

_CONNECTOR_RULES = (*SYNC_RULES, *DELIVERY_RULES, *RECORD_RULES, *TOPIC_RULES)
_OFF_IN_SETTINGS, _MISSING_ON_TARGET = "no_heartbeats", "heartbeats_missing"
"""Two rules that find the same fault of the heartbeats."""

SETTINGS_RULES: tuple[Rule[Sequence[str]], ...] = (
    Rule(
        check="settings_unusable",
        severity=Severity.ERROR,
        why="No pair of clusters can be made of the settings: no command can use them.",
        remedy="correct what the message names; --offline examines the file alone",
        find=lambda problems: map(Hit, problems),
    ),
)
ALL_RULES: tuple[Rule[Any], ...] = (
    *SETTINGS_RULES,
    *CONNECTION_RULES,
    *KEPT_SYNCS_RULES,
    *CLIENT_RULES,
    *_CONNECTOR_RULES,
    *FLOW_RULES,
    *LIVE_RULES,
)
"""Every rule, as docs/doctor.md lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """What is to be examined."""

    connectors: Sequence[MirrorConnector] = ()
    """Of a settings file; none: those that Connect runs, if it can be asked."""
    are_running: bool = False
    """Whether ``connectors`` are what Connect runs, and not what a file says."""
    enabled: Sequence[MirrorConnector] = ()
    """All that copy, to find the way back."""
    disabled: Sequence[MirrorConnector] = ()
    pair: ClusterPair | None = None
    pair_problem: str = ""
    """Why there is no pair."""
    has_archive: bool = False
    topics: Sequence[str] = ()
    """The job's, by the source's names; none: those that have offset syncs."""
    offline: bool = False


def diagnose(request: DoctorRequest) -> Diagnosis:
    """Examine connectors, connections and, unless ``offline``, what the clusters say."""
    skipped = [request.pair_problem] if request.pair_problem and request.offline else []
    if not request.connectors and request.pair is not None:
        request, reasons = _with_running_connectors(request, request.pair)
        skipped += reasons
    findings = [*_examine_settings(request)]
    examined = [f"settings of {each.name}" for each in request.connectors]
    if request.pair is not None:
        clusters = (request.pair.source, request.pair.target)
        findings += chain.from_iterable(_examine(CLIENT_RULES, each) for each in clusters)
        examined += [f"login of the {each.name}" for each in clusters]
    if request.pair is not None and not request.offline:
        parts = check_connection(request.pair)
        findings += _examine(CONNECTION_RULES, parts)
        if any(_is_silent(part) for part in parts):
            skipped += ["topics of the clusters: a cluster does not answer"]
        else:
            facts = read_live_facts(request.pair, request.topics)
            findings += _examine(LIVE_RULES, facts)
            skipped += facts.unanswered
            examined += ["topics of both clusters"]
    return Diagnosis(
        findings=worst_first(_heartbeats_once(findings)),
        examined=tuple(examined),
        skipped=tuple(dict.fromkeys(skipped)),
    )


def _is_silent(part: PartHealth) -> bool:
    """Tell whether each further question to a cluster would cost its timeout."""
    is_cluster = not part.part.startswith("Connect")
    return is_cluster and isinstance(part.error, ClusterUnreachableError)


def _examine_settings(request: DoctorRequest) -> Iterator[Finding]:
    if request.pair_problem and not request.offline:
        yield from _examine(SETTINGS_RULES, [request.pair_problem])
    for kept in _kept_syncs(request):
        yield from _examine(KEPT_SYNCS_RULES, kept)
    for connector in request.connectors:
        # A pair was made of the file's settings: a variable tells how the policy names topics.
        is_told = request.pair is not None and not request.are_running
        rules = [each for each in _CONNECTOR_RULES if each.check != POLICY_UNKNOWN or not is_told]
        yield from _examine(rules, connector)
        found = (_examine(FLOW_RULES, each) for each in _flows(request, connector))
        # A rule that does not look at the way back finds the same for each of several.
        yield from dict.fromkeys(chain.from_iterable(found))


def _examine(rules: Iterable[Rule[SubjectT]], subject: SubjectT) -> list[Finding]:
    return [finding for rule in rules for finding in rule.examine(subject)]


def _flows(request: DoctorRequest, connector: MirrorConnector) -> list[Flow]:
    """Return a connector's flow beside each that copies back; once alone if there is none."""
    back = find_reverses(connector, request.enabled)
    others: list[MirrorConnector | None] = [*(back or find_reverses(connector, request.disabled))]
    siblings = find_siblings(connector, request.enabled)
    return [
        Flow(
            connector=connector,
            siblings=siblings,
            reverse=each,
            copies_back=bool(back),
            topics=request.topics,
        )
        for each in others or [None]
    ]


def _kept_syncs(request: DoctorRequest) -> Iterator[KeptSyncs]:
    pair = request.pair
    has_connect = None if pair is None else pair.connect is not None
    locations = {each.name: each.text(SYNCS_LOCATION) for each in request.connectors}
    if pair is not None and not pair.has_syncs:
        return
    if not locations and pair is not None:
        locations = {"the connection": pair.syncs_location.value}
    for name, location in locations.items():
        if location:
            yield KeptSyncs(
                name=name,
                on_target=location == SyncsLocation.TARGET,
                has_archive=request.has_archive,
                has_connect=has_connect,
            )


def _with_running_connectors(
    request: DoctorRequest, pair: ClusterPair
) -> tuple[DoctorRequest, list[str]]:
    """Return the request with the connectors that Connect runs, or why it can't be asked."""
    if not pair.has_syncs:
        return request, ["the connector's settings: the copies keep offsets (mapping identity)"]
    if pair.connect is None or request.offline:
        reason = "the connector's settings: Connect was not asked, and no file has them"
        return request, [reason]
    try:
        connectors = read_mirror_connectors(pair.mirrored)
        others = as_connectors(pair.connect.mirror_sources())
    except Mm2OffsetsError as error:
        return request, [f"the connector's settings: {error}"]
    return replace(request, connectors=connectors, enabled=others, are_running=True), []


def _heartbeats_once(findings: list[Finding]) -> list[Finding]:
    """Leave out that the target has no heartbeats, where the settings say why."""
    if not any(each.check == _OFF_IN_SETTINGS for each in findings):
        return findings
    return [each for each in findings if each.check != _MISSING_ON_TARGET]
