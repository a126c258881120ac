"""Rules over a flow beside its reverse, over logins, and over what is left of the syncs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from airflow_mm2_offsets.doctor.client_rules import CLIENT_RULES
from airflow_mm2_offsets.doctor.flow import Flow, find_reverses
from airflow_mm2_offsets.doctor.flow_rules import FLOW_RULES
from airflow_mm2_offsets.doctor.kept_syncs_rules import KEPT_SYNCS_RULES, KeptSyncs
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def connector(source: str, target: str, **settings: str) -> MirrorConnector:
    """Return the connector of a flow; an underscore in a setting's name is a dot."""
    config = {name.replace("_", "."): value for name, value in settings.items()}
    aliases = {"source.cluster.alias": source, "target.cluster.alias": target}
    return MirrorConnector(name=f"{source}->{target}", config=aliases | config)


def find(
    there: dict[str, str],
    back: dict[str, str] | None = None,
    *,
    alias: str = "eu",
    topics: Sequence[str] = (),
    copies_back: bool = True,
) -> list[str]:
    """Return the rules that find something, with what they find."""
    flow = Flow(
        connector=connector(alias, "us", **there),
        reverse=None if back is None else connector("us", alias, **back),
        copies_back=back is not None and copies_back,
        topics=topics,
    )
    return [f"{f.check}: {f.value}" for rule in FLOW_RULES for f in rule.examine(flow)]


@pytest.mark.parametrize(
    ("there", "back", "topics", "found"),
    [
        ("orders,clicks", "orders|stock", (), "eu->us and us->eu both copy topic orders under"),
        ("orders", ".*", (), "eu->us and us->eu both copy topic orders under its own name"),
        ("shop.*", "shop-o.*", ("shop-orders",), "both copy topic shop-orders under its own name"),
        (".*", ".*", (), "eu->us and us->eu both copy topics = .* under their own names"),
    ],
)
def test_two_flows_that_copy_a_topic_are_a_loop(
    there: str, back: str, topics: Sequence[str], found: str
) -> None:
    """With IdentityReplicationPolicy both ways nothing tells a copy from an original."""
    policy = {"replication_policy_class": IDENTITY}
    (finding,) = find({"topics": there} | policy, {"topics": back} | policy, topics=topics)
    assert finding.startswith("loop: ")
    assert found in finding


@pytest.mark.parametrize(
    ("there", "back"), [("orders", "stock"), ("orders", "stock.*"), ("o.*", "stock")]
)
def test_flows_of_different_topics_are_none(there: str, back: str) -> None:
    """A name is compared with the other flow's pattern."""
    policy = {"replication_policy_class": IDENTITY}
    assert find({"topics": there} | policy, {"topics": back} | policy) == []


LOCATION = "offset-syncs.topic.location"


@pytest.mark.parametrize(
    ("there", "back"), [("target", "source"), ("source", "target"), ("target", None)]
)
def test_flows_that_share_a_syncs_topic_are_found(there: str, back: str | None) -> None:
    """mm2-offset-syncs.eu.internal on us is that of eu->us by target, and of us->eu by source."""
    reverse = {LOCATION: back} if back else {}
    (finding,) = find({LOCATION: there}, reverse)
    shown = f"{LOCATION} = {there} in eu->us, and {back or 'source'} in us->eu"
    assert finding == f"syncs_mixed: {shown}"
    assert find({LOCATION: there}, reverse, copies_back=False) == []


@pytest.mark.parametrize(
    "back",
    [
        {LOCATION: "target"},
        {"replication.policy.separator": "_"},
        {"emit.offset-syncs.enabled": "false"},
    ],
)
def test_flows_with_a_syncs_topic_each_are_not(back: dict[str, str]) -> None:
    """At the same location, by another name, or of one flow alone."""
    assert find({LOCATION: "target"}, back) == []


def test_patterns_that_can_not_be_compared_warn() -> None:
    """Whether some topic matches both is not known."""
    policy = {"replication_policy_class": IDENTITY}
    (finding,) = find({"topics": "o.*"} | policy, {"topics": "s.*"} | policy)
    assert finding == "loop_possible: topics = o.* and s.* in eu->us and us->eu"
    excluding = {"topics": ".*", "topics_exclude": "eu-.*"}
    (finding,) = find({"topics": ".*"} | policy, excluding | policy)
    assert finding.startswith("loop_possible: ")


def test_a_way_back_that_is_switched_off_is_no_loop() -> None:
    """Nor is one by DefaultReplicationPolicy, which knows its copies by their names."""
    policy = {"replication_policy_class": IDENTITY}
    assert find({"topics": ".*"} | policy, {"topics": ".*"} | policy, copies_back=False) == []
    assert find({}, {}) == []


def test_aliases_with_the_separator_are_a_loop_both_ways() -> None:
    """``isCycle`` cuts ``eu.1.us.1.orders`` into eu, 1, us, 1 and finds neither alias in it."""
    both = Flow(connector=connector("eu.1", "us.1"), reverse=connector("us.1", "eu.1"))
    loop = "eu.1->us.1 and us.1->eu.1: aliases eu.1 and us.1 both hold the separator"
    found = [f.value for rule in FLOW_RULES for f in rule.examine(replace(both, copies_back=True))]
    assert found == [loop]
    assert [f for rule in FLOW_RULES for f in rule.examine(both)] == []
    assert find({}, {}, alias="eu.1") == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"topics": "clicks"}, "topics = clicks does not match it"),
        ({"topics": "order"}, "topics = order does not match it"),
        ({"topics_exclude": "ord.*, x"}, "topics.exclude = ord.*, x matches it"),
        ({"topics": "order(s|z)"}, None),
        ({"topics": "(?<a>orders)"}, None),
        ({"topics": "clicks", "topic_filter_class": "com.example.Mine"}, None),
        ({"topics": "${file:a:b}"}, None),
    ],
)
def test_the_jobs_topic_must_be_copied(settings: dict[str, str], reason: str | None) -> None:
    """By ``DefaultTopicFilter``: whole names; what can't be read is not guessed."""
    found = find(settings, topics=("orders",))
    expected = [f"topic_not_copied: topic orders: {reason} in eu->us"] if reason else []
    assert found == expected


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("mm2-offsets.us.internal", r"topics.exclude = mm2.*\.internal"),
        ("eu.checkpoints.internal", "its name is one of an internal topic"),
        (".hidden", "its name is one of an internal topic"),
        ("__state", "topics.exclude = "),
        ("us.orders", "its name has 'us' before a separator, as a copy from there"),
        ("asia.us.orders", "its name has 'us' before a separator, as a copy from there"),
    ],
)
def test_some_names_are_never_copied(topic: str, reason: str) -> None:
    """``MirrorSourceConnector.shouldReplicateTopic``: internal topics, and cycles."""
    finding, *_ = find({}, topics=(topic,))
    assert finding.startswith(f"topic_not_copied: topic {topic}: {reason}")
    identity = find({"replication_policy_class": IDENTITY}, topics=("us.orders",))
    assert identity == []


def test_other_names_of_internal_topics_are_copied_from_kafka_4_on() -> None:
    """``ReplicationPolicy.isInternalTopic`` took every such name until 3.9."""
    assert find({}, topics=("a-internal", "b.internal", "internal")) == [
        "topic_internal_name: topic a-internal of eu->us",
        "topic_internal_name: topic b.internal of eu->us",
    ]


def test_an_empty_list_of_topics_copies_nothing() -> None:
    """``MirrorUtils.compilePatternList``: a blank setting matches nothing."""
    (finding,) = find({"topics": ""}, topics=("orders",))
    assert finding == "topic_not_copied: topic orders: topics = (empty) does not match it in eu->us"
    assert find({"topics_exclude": ""}, topics=("orders",)) == []


def test_heartbeats_of_the_source_are_written_by_the_reverse() -> None:
    """``MirrorMakerConfig.clusterPairs``: the herder us->eu writes to eu, even if not enabled."""
    off = {"emit_heartbeats_enabled": "false"}
    (finding,) = find({}, off, copies_back=False)
    assert finding == "no_heartbeats: emit.heartbeats.enabled = false in us->eu"
    assert find(off, {}) == []
    (finding,) = find({"heartbeats_replication_enabled": "false"})
    assert finding == "no_heartbeats: heartbeats.replication.enabled = false in eu->us"


def test_the_reverse_has_the_aliases_exchanged() -> None:
    """Others are not."""
    there, back, other = connector("a", "b"), connector("b", "a"), connector("b", "c")
    assert find_reverses(there, [there, other, back]) == [back]
    assert find_reverses(there, [there, other]) == []


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({"security.protocol": "sasl_plaintext"}, "plaintext_login"),
        ({}, "login_unused"),
        ({"security.protocol": "SSL"}, "login_unused"),
        (
            {"security.protocol": "SASL_SSL", "enable.ssl.certificate.verification": False},
            "certificate_unchecked",
        ),
        (
            {"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "none"},
            "host_name_unchecked",
        ),
        ({"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "https"}, None),
        ({"security.protocol": "SASL_SSL", "sasl.password": "s3cr3t"}, None),
    ],
)
def test_a_login_that_can_be_stolen_is_found(
    properties: dict[str, object], found: str | None
) -> None:
    """The finding names the property and the cluster, and never the password."""
    config = {"bootstrap.servers": "x:1", "sasl.password": "s3cr3t", **properties}
    cluster = KafkaCluster(name="source", config=config)
    findings = [each for rule in CLIENT_RULES for each in rule.examine(cluster)]
    assert [each.check for each in findings] == ([found] if found else [])
    assert all("for the source" in each.value for each in findings)
    assert "s3cr3t" not in str(findings)


@pytest.mark.parametrize(
    ("on_target", "has_archive", "has_connect", "found"),
    [
        (False, False, True, ["syncs_lost_with_source"]),
        (True, False, None, ["no_archive"]),
        (False, True, False, ["no_connect_url"]),
        (True, True, True, []),
    ],
)
def test_syncs_must_outlive_the_source(
    *, on_target: bool, has_archive: bool, has_connect: bool | None, found: list[str]
) -> None:
    """An archive is enough; None: no connection was given that could name Connect."""
    kept = KeptSyncs(
        name="eu->us", on_target=on_target, has_archive=has_archive, has_connect=has_connect
    )
    assert [f.check for rule in KEPT_SYNCS_RULES for f in rule.examine(kept)] == found
