"""The JSON of a MirrorSourceConnector, by the rules of Kafka's ``MirrorConnectorConfig``."""

import json
from pathlib import Path

import pytest

from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.config.settings_files import load

CONFIG = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "tasks.max": 2,
    "source.cluster.alias": "oslo",
    "target.cluster.alias": "rome",
    "source.cluster.bootstrap.servers": "oslo.invalid:9098",
    "target.cluster.bootstrap.servers": "rome.invalid:9098",
    "source.cluster.security.protocol": "SASL_SSL",
    "source.cluster.sasl.mechanism": "SCRAM-SHA-512",
    "source.cluster.sasl.username": "copy",
    "source.cluster.sasl.password": "base",
    "consumer.sasl.password": "consumer",
    "source.consumer.sasl.username": "reader",
    "source.admin.sasl.username": "admin",
    "source.producer.sasl.username": "writer",
    "producer.sasl.password": "producer",
    "consumer.auto.offset.reset": "earliest",
    "target.cluster.max.poll.records": "1",
    "topics": "trips.*",
    "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": "-",
    "offset-syncs.topic.location": "target",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}


def test_a_key_that_kafka_ignores_makes_no_other_file_of_it(tmp_path: Path) -> None:
    """Amazon's samples give their connectors ``clusters``, which means something in mm2.properties.

    ``connector.class`` decides.
    """
    settings = load(tmp_path, json.dumps({**CONFIG, "clusters": "here,there"}), "c.json")
    assert (settings.naming.source_alias, settings.naming.target_alias) == ("oslo", "rome")


@pytest.mark.parametrize("form", [CONFIG, {"name": "mirror", "config": CONFIG}])
def test_both_forms_of_json_describe_both_clusters(tmp_path: Path, form: dict[str, object]) -> None:
    """What is PUT to /connectors/mirror/config, and what is POSTed to /connectors."""
    settings = load(tmp_path, json.dumps(form), "connector.json")
    # sourceConsumerConfig: source.consumer.* over consumer.* over source.cluster.*
    assert settings.source == {
        "bootstrap.servers": "oslo.invalid:9098",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "reader",
        "sasl.password": "consumer",
    }
    assert settings.target["bootstrap.servers"] == "rome.invalid:9098"
    assert "max.poll.records" not in settings.target
    assert settings.syncs_location is SyncsLocation.TARGET
    assert settings.naming.policy is ReplicationPolicy.DEFAULT
    assert settings.pair().syncs_topic == "mm2-offset-syncs-oslo-internal"


def test_own_settings_stand_beside_the_configuration(tmp_path: Path) -> None:
    """Beside ``name`` and ``config``, or by variables."""
    form = {"config": CONFIG, "connect": {"url": "http://connect.invalid:8083"}, "serve.port": 9}
    form["kafka"] = {"client.id": "mine"}
    password = {"MM2_OFFSETS_SOURCE_SASL_PASSWORD": "mine"}
    settings = load(tmp_path, json.dumps(form), "c.json", **password)
    assert settings.connect_url == "http://connect.invalid:8083"
    assert settings.serve.port == 9
    assert settings.target["client.id"] == "mine"
    assert settings.source["sasl.password"] == "mine"


def test_properties_of_a_standalone_worker_are_read(tmp_path: Path) -> None:
    """``connect-standalone.sh`` takes a connector as properties."""
    text = "\n".join(f"{key}={value}" for key, value in CONFIG.items())
    assert load(tmp_path, text).naming.target_alias == "rome"


def test_the_target_alias_has_kafkas_default(tmp_path: Path) -> None:
    """``TARGET_CLUSTER_ALIAS_DEFAULT``; the source's alias has none."""
    config = {key: each for key, each in CONFIG.items() if key != "target.cluster.alias"}
    assert load(tmp_path, json.dumps(config), "c.json").naming.target_alias == "target"
    del config["source.cluster.alias"]
    with pytest.raises(ConfigurationError, match=r"without source.cluster.alias, which Kafka req"):
        load(tmp_path, json.dumps(config), "c.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"c.json: is not valid JSON at line 1, column 2"),
        ("[]", r"c.json: is not a JSON object"),
        ("{}", r"connector.class is missing"),
        (
            json.dumps(CONFIG).replace("MirrorSource", "MirrorCheckpoint"),
            r"give the configuration of the MirrorSourceConnector",
        ),
    ],
)
def test_other_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The MirrorCheckpointConnector does not say how topics are copied."""
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path, text, "c.json")


def test_another_flow_than_the_connectors_is_refused(tmp_path: Path) -> None:
    """Variables that were left from another set-up."""
    with pytest.raises(ConfigurationError, match=r"paris->\* is chosen.*Enabled flows: oslo->rome"):
        load(tmp_path, json.dumps(CONFIG), "c.json", MM2_OFFSETS_SOURCE_ALIAS="paris")
