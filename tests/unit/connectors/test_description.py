"""The settings of the three connectors: Kafka's names (MirrorSourceConfig and its siblings)."""

import json
from dataclasses import replace

import httpx
import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connectors.apply import apply, compare
from airflow_mm2_offsets.connectors.description import ConnectorKind, MirrorDescription
from airflow_mm2_offsets.connectors.differences import find_setting_differences
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError, ConnectError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

SECURE = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "mm2",
    "sasl.password": "hunter2",
}
PAIR = ClusterPair(
    source=KafkaCluster(name="source", config={"bootstrap.servers": "eu:9092", **SECURE}),
    target=KafkaCluster(name="target", config={"bootstrap.servers": "us:9092"}),
    naming=Naming(source_alias="eu", target_alias="us", policy=ReplicationPolicy.IDENTITY),
    syncs_location=SyncsLocation.TARGET,
)
MIRROR = MirrorDescription(topics=["orders", "clicks.*"], groups=["billing"])
_SOURCE, CHECKPOINT, HEARTBEAT = ConnectorKind


def test_the_source_connector_has_both_clusters_and_the_names_of_the_pair() -> None:
    """Login and policy in the words of Java; a login of librdkafka's becomes a JAAS text."""
    config = MIRROR.configs(PAIR)[ConnectorKind.SOURCE]
    jaas = config.pop("source.cluster.sasl.jaas.config")
    assert jaas.startswith("org.apache.kafka.common.security.plain.PlainLoginModule required")
    converters = {name for name in config if name.endswith(".converter")}
    assert {config.pop(name) for name in converters} == {
        "org.apache.kafka.connect.converters.ByteArrayConverter"
    }
    assert config == {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "eu",
        "target.cluster.alias": "us",
        "source.cluster.bootstrap.servers": "eu:9092",
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "target.cluster.bootstrap.servers": "us:9092",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "replication.policy.separator": ".",
        "replication.policy.internal.topic.separator.enabled": "true",
        "offset-syncs.topic.location": "target",
        "topics": "orders,clicks.*",
    }


def test_a_description_is_json_and_back() -> None:
    """Airflow renders it as JSON; a template's text with commas is a list, a truth value Java's."""
    made = MirrorDescription(
        topics=["orders", "clicks.*"],
        topics_exclude=["x"],
        groups=["billing"],
        name="new",
        kinds=[ConnectorKind.SOURCE, HEARTBEAT],
        settings={"a": "1"},
        settings_of={HEARTBEAT: {"b": "true"}},
    )
    assert MirrorDescription.from_json(json.loads(json.dumps(made.to_json()))) == made
    written = {
        "topics": "orders, clicks.*",
        "topics_exclude": "x",
        "groups": "billing",
        "name": "new",
        "kinds": "source,heartbeat",
        "settings": {"a": 1},
        "settings_of": {"heartbeat": {"b": True}},
    }
    assert MirrorDescription.from_json(written) == made
    plain = MirrorDescription(topics=["orders"])
    assert MirrorDescription.from_json({"topics": ["orders"]}).to_json() == plain.to_json()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "new"}, "^it has no topics; give a MirrorDescription, or a mapping with topics"),
        ('{"topics": ["orders"]}', "^it has no topics; give a MirrorDescription, or a mapping"),
        ({"topics": 1}, "^topics is 1; give a list, or a text with commas$"),
        ({"topics": "x", "setings": 1}, "^'setings' is no field of a mirror; did you mean setting"),
        ({"topics": "x", "kinds": "sauce"}, "^'sauce' is no connector of a mirror; did you mean"),
        ({"topics": "x", "kinds": []}, "^kinds is empty; give some of source, checkpoint, heart"),
        (
            {"topics": "x", "settings_of": {"y": {}}},
            "^'y' is no connector of a mirror; give some of source, checkpoint, heartbeat$",
        ),
        ({"topics": "x", "settings": "hunter2"}, "^settings is str; give a mapping$"),
        (
            {"topics": "x", "settings_of": {"source": ["hunter2"]}},
            "^settings_of: source is list; give a mapping$",
        ),
    ],
)
def test_a_wrong_description_is_refused(values: object, said: str) -> None:
    """The error names the field and the nearest one, and no value of a setting."""
    with pytest.raises(ConfigurationError, match=said):
        MirrorDescription.from_json(values)


def test_heartbeats_go_to_the_source() -> None:
    """Aliases and clusters are exchanged, and Connect's producer is led to the pair's source."""
    settings = {"source.cluster.bootstrap.servers": "inside:1", "producer.override.acks": "1"}
    config = replace(MIRROR, settings=settings).configs(PAIR)[HEARTBEAT]
    assert (config["source.cluster.alias"], config["target.cluster.alias"]) == ("us", "eu")
    assert config["target.cluster.bootstrap.servers"] == "inside:1"
    assert config["source.cluster.bootstrap.servers"] == "us:9092"
    assert config["producer.override.bootstrap.servers"] == "inside:1"
    assert config["producer.override.security.protocol"] == "SASL_SSL"
    assert "hunter2" in config["producer.override.sasl.jaas.config"]
    assert "producer.override.acks" not in config
    assert "topics" not in config


def test_the_checkpoint_connector_has_the_groups() -> None:
    """Its own settings win over those of all."""
    described = replace(
        MIRROR,
        settings={"tasks.max": "4"},
        settings_of={CHECKPOINT: {"tasks.max": "1"}},
    )
    config = described.configs(PAIR)[CHECKPOINT]
    assert (config["groups"], config["topics"], config["tasks.max"]) == (
        "billing",
        "orders,clicks.*",
        "1",
    )


@pytest.mark.parametrize("name", ["topics", "target.cluster.alias", "offset-syncs.topic.location"])
def test_a_setting_that_contradicts_is_refused(name: str) -> None:
    """Where it says the same, it may stand there."""
    with pytest.raises(ConfigurationError, match=rf"{name} is 'x' in its further settings"):
        replace(MIRROR, settings={name: "x"}).configs(PAIR)
    same = MIRROR.configs(PAIR)[ConnectorKind.SOURCE][name]
    agreeing = replace(MIRROR, settings_of={ConnectorKind.SOURCE: {name: same}})
    assert agreeing.configs(PAIR) == MIRROR.configs(PAIR)


def test_a_mirror_is_not_described_from_behind() -> None:
    """An exchanged pair is the way of a job, not of MirrorMaker 2."""
    with pytest.raises(ConfigurationError, match="not exchanged"):
        MIRROR.configs(PAIR.exchanged())


@pytest.mark.parametrize(
    "name",
    [
        "source.cluster.sasl.jaas.config",
        "producer.override.ssl.keystore.key",
        "target.cluster.ssl.key.pem",
        "target.cluster.ssl.truststore.password",
        "transforms.x.api.key",
        "header.converter.basic.auth.user.info",
        "topic.filter.auth.token",
    ],
)
def test_a_secret_is_hidden_whatever_stands_before_its_name(name: str) -> None:
    """Some of Kafka's secrets are known by their whole names."""
    (difference,) = find_setting_differences({name: "hunter2"}, {name: "hunter3"})
    assert str(difference) == f"~ {name} = *** (was ***)"
    assert "hunter" not in repr(difference)


def test_a_login_in_a_url_is_hidden() -> None:
    """A setting that is no secret may hold one."""
    (difference,) = find_setting_differences({}, {"schema.url": "http://me:hunter2@registry"})
    assert "hunter2" not in str(difference)


def test_an_error_that_quotes_a_secret_hides_it() -> None:
    """Connect's message may hold the value of a setting."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            return httpx.Response(400, json={"message": 'bad value password="hunter2"'})
        body: object = {} if request.url.path == "/connectors" else {"version": "4.3.1"}
        return httpx.Response(200, json=body)

    connect = ConnectClient(url="http://connect:8083", transport=httpx.MockTransport(answer))
    described = replace(MIRROR, settings={"source.cluster.sasl.password": "hunter2"})
    pair = replace(PAIR, connect=connect)
    changes = compare(pair, described)
    assert "hunter2" not in repr(changes)
    with pytest.raises(ConnectError, match=r"connector mm2-heartbeat: HTTP 400: bad") as caught:
        apply(pair, changes)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
