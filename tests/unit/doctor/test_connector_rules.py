"""Each rule over a connector's settings: what it finds, and beside it what it lets pass."""

from collections.abc import Mapping

import pytest

from airflow_mm2_offsets.doctor.delivery_rules import DELIVERY_RULES
from airflow_mm2_offsets.doctor.finding import Finding
from airflow_mm2_offsets.doctor.record_rules import RECORD_RULES
from airflow_mm2_offsets.doctor.sync_rules import SYNC_RULES
from airflow_mm2_offsets.doctor.topic_rules import TOPIC_RULES
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

MIRROR = "org.apache.kafka.connect.mirror"
TRANSFORMS = "org.apache.kafka.connect.transforms"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SOUND = {
    "source.cluster.alias": "eu",
    "target.cluster.alias": "us",
    "source.consumer.isolation.level": "read_committed",
    "producer.override.enable.idempotence": "true",
    "tasks.max": "4",
}
"""Nothing is found in them."""
ELSEWHERE = "${file:/run/mm2:value}"


def find(settings: Mapping[str, str]) -> list[Finding]:
    """Return what is found in a sound connector with some settings changed."""
    connector = MirrorConnector(name="eu->us", config={**SOUND, **settings})
    rules = (*SYNC_RULES, *DELIVERY_RULES, *RECORD_RULES, *TOPIC_RULES)
    return [finding for rule in rules for finding in rule.examine(connector)]


def checks(settings: Mapping[str, str]) -> list[str]:
    """Return the rules that find something."""
    return [each.check for each in find(settings)]


def test_a_sound_connector_has_no_finding() -> None:
    """Kafka's defaults beside it are harmless."""
    assert find({}) == []


@pytest.mark.parametrize(
    ("check", "settings", "value"),
    [
        ("syncs_not_emitted", {"emit.offset-syncs.enabled": "FALSE"}, "= FALSE in eu->us"),
        ("offset_lag_large", {"offset.lag.max": "101"}, "offset.lag.max = 101 in eu->us"),
        ("offset_lag_zero", {"offset.lag.max": "0"}, "offset.lag.max = 0 in eu->us"),
        ("offset_lag_zero", {"offset.lag.max": "-1"}, "offset.lag.max = -1 in eu->us"),
        ("syncs_replication", {"offset-syncs.topic.replication.factor": "1"}, "factor = 1 in"),
        ("offset_flush_slow", {"target.cluster.offset.flush.interval.ms": "60001"}, "= 60001 in"),
        ("errors_tolerated", {"errors.tolerance": "all"}, "errors.tolerance = all in eu->us"),
        ("old_records_skipped", {"consumer.auto.offset.reset": "latest"}, "consumer.auto.offset"),
        ("aborted_copied", {"source.consumer.isolation.level": "read_uncommitted"}, "uncommitted"),
        (
            "records_filtered",
            {"transforms": "f", "transforms.f.type": f"{TRANSFORMS}.Filter"},
            ".f.",
        ),
        (
            "records_changed",
            {"transforms": "a, b", "transforms.b.type": f"{TRANSFORMS}.InsertField$Value"},
            "transforms.b.type = org.apache.kafka.connect.transforms.InsertField$Value in",
        ),
        (
            "topic_routed",
            {"transforms": "r", "transforms.r.type": f"{TRANSFORMS}.RegexRouter"},
            "transforms.r.type = org.apache.kafka.connect.transforms.RegexRouter in eu->us",
        ),
        (
            "records_converted",
            {"value.converter": "org.example.JsonConverter"},
            "value.converter =",
        ),
        ("policy_unknown", {"replication.policy.class": "com.example.Mine"}, "com.example.Mine"),
        ("topic_filter_unknown", {"topic.filter.class": "com.example.Mine"}, "com.example.Mine"),
        ("separator_in_alias", {"source.cluster.alias": "eu.1"}, "eu.1 holds '.' in eu->us"),
        ("topics_not_refreshed", {"refresh.topics.enabled": "false"}, "enabled = false"),
        ("topic_configs_not_copied", {"sync.topic.configs.enabled": "false"}, "enabled = false"),
        ("timestamp_type_copied", {"config.properties.exclude": "a, b"}, "exclude = a, b in"),
        ("acls_not_copied", {"sync.topic.acls.enabled": "false"}, "enabled = false"),
        ("replication_factor", {"replication.factor": "1"}, "replication.factor = 1 in eu->us"),
        ("one_task", {"tasks.max": "1"}, "tasks.max = 1 in eu->us"),
        ("group_offsets", {"sync.group.offsets.enabled": "false"}, "enabled = false"),
        ("duplicates_possible", {"producer.override.enable.idempotence": "false"}, "= false in"),
    ],
)
def test_a_setting_is_found(check: str, settings: Mapping[str, str], value: str) -> None:
    """The finding shows the setting with its value, and names a remedy."""
    found = {each.check: each for each in find(settings)}
    assert value in found[check].value
    assert found[check].remedy
    assert found[check].why


@pytest.mark.parametrize(
    "settings",
    [
        {"offset.lag.max": "100"},
        {"offset.lag.max": "1"},
        {"offset.lag.max": "many"},
        {"offset.lag.max": ELSEWHERE},
        {"emit.offset-syncs.enabled": "true"},
        {"target.cluster.offset.flush.interval.ms": "60000"},
        {"errors.tolerance": "none"},
        {"source.consumer.isolation.level": ELSEWHERE},
        {"producer.override.enable.idempotence": ELSEWHERE},
        {"producer.override.max.in.flight.requests.per.connection": "5"},
        {"consumer.auto.offset.reset": "earliest"},
        {"value.converter": BYTES},
        {"replication.policy.class": f"{MIRROR}.IdentityReplicationPolicy"},
        {
            "replication.policy.class": f"{MIRROR}.IdentityReplicationPolicy",
            "source.cluster.alias": "eu.1",
        },
        {"replication.policy.class": ELSEWHERE},
        {"config.properties.exclude": r"a, message\.timestamp\.type"},
        {"config.properties.exclude": r"message\..*"},
        {"config.properties.exclude": ELSEWHERE},
        {"config.properties.exclude": "a("},
        {"refresh.topics.enabled": ELSEWHERE},
        {"tasks.max": ELSEWHERE},
    ],
)
def test_a_sound_or_an_untold_value_is_not_found(settings: Mapping[str, str]) -> None:
    """A value that a config provider holds, or that can't be read, is not guessed."""
    assert checks(settings) == []


def test_without_topic_settings_no_timestamp_type_is_copied() -> None:
    """``sync.topic.configs.enabled=false`` leaves the exclusions without effect."""
    settings = {"sync.topic.configs.enabled": "false", "config.properties.exclude": "a"}
    assert checks(settings) == ["topic_configs_not_copied"]


def test_a_consumers_own_isolation_counts_more() -> None:
    """``MirrorConnectorConfig.sourceConsumerConfig``: ``source.consumer.`` over ``consumer.``."""
    assert checks({"consumer.isolation.level": "read_uncommitted"}) == []
    without = {key: value for key, value in SOUND.items() if "isolation" not in key}
    connector = MirrorConnector(
        name="c", config={**without, "consumer.isolation.level": "read_uncommitted"}
    )
    (found,) = [
        finding for rule in (*DELIVERY_RULES, *RECORD_RULES) for finding in rule.examine(connector)
    ]
    assert found.value == "consumer.isolation.level = read_uncommitted in c"


def test_only_idempotence_keeps_several_batches_in_order() -> None:
    """Connect's own defaults are one batch at a time, and no idempotence."""
    settings = {
        "producer.override.enable.idempotence": "false",
        "producer.override.max.in.flight.requests.per.connection": "2",
    }
    assert checks(settings) == ["records_reordered", "duplicates_possible"]
    settings["producer.override.max.in.flight.requests.per.connection"] = "1"
    assert checks(settings) == ["duplicates_possible"]


def test_whose_producer_copies_depends_on_the_worker() -> None:
    """In the dedicated mode ``B.producer.*`` is the worker's; else it writes offset syncs alone."""
    without = {key: value for key, value in SOUND.items() if "idempotence" not in key}
    config = {**without, "target.producer.enable.idempotence": "true"}
    dedicated = MirrorConnector(name="eu->us", config=config)
    assert [f for rule in (*DELIVERY_RULES, *RECORD_RULES) for f in rule.examine(dedicated)] == []
    in_connect = MirrorConnector(
        name="mirror", config={**config, "connector.class": f"{MIRROR}.MirrorSourceConnector"}
    )
    found = [f.check for rule in (*DELIVERY_RULES, *RECORD_RULES) for f in rule.examine(in_connect)]
    assert found == ["duplicates_possible", *["converter_of_worker"] * 3]


@pytest.mark.parametrize(
    "name",
    [
        "exactly.once.support=required",
        "exactly.once.source.support=enabled",
        "target.cluster.exactly.once.source.support=enabled",
    ],
)
def test_exactly_once_needs_a_consumer_of_committed_records(name: str) -> None:
    """``MirrorSourceConnector.exactlyOnceSupport``; it makes markers, and its producer exact."""
    key, _, value = name.partition("=")
    settings = {key: value, "producer.override.enable.idempotence": "false"}
    assert checks(settings) == ["transactions_on_target"]
    settings["source.consumer.isolation.level"] = "read_uncommitted"
    assert checks(settings) == ["exactly_once_refused", "aborted_copied", "transactions_on_target"]
    assert checks({key: "preparing"}) == []


@pytest.mark.parametrize("separator", ["_", "-"])
def test_a_separator_of_names_is_ambiguous(separator: str) -> None:
    """And internal topics use it, if nothing says otherwise (KIP-949)."""
    settings = {"replication.policy.separator": separator}
    assert checks(settings) == ["separator_ambiguous", "internal_separator"]
    settings["replication.policy.internal.topic.separator.enabled"] = "false"
    assert checks(settings) == ["separator_ambiguous"]
    settings["source.cluster.alias"] = f"eu{separator}1"
    assert checks(settings) == ["separator_in_alias", "separator_ambiguous"]
    assert checks({"replication.policy.separator": "#"}) == ["internal_separator"]


def test_a_finding_shows_no_login() -> None:
    """A class or a pattern is shown as it is, but for a password in an address."""
    (found,) = find({"replication.policy.class": "ftp://me:word@host/Mine"})
    assert "word" not in found.value
