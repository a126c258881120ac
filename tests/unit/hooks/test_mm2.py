"""The hook: from three connections to two clusters."""

from threading import Barrier

import pytest

from airflow_mm2_offsets import provider
from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka.client_properties.msk_iam import MskIamToken
from tests.support.pairs import STOPPED, STOPPED_CONNECT
from tests.unit.hooks.properties import KAFKA, SECRET
from tests.unit.operators.clusters import SYNCS, Clusters, define


def test_nothing_but_defaults_is_enough(names: pytest.MonkeyPatch) -> None:
    """Empty fields, left out or null, take MirrorMaker 2's defaults and two well-known ids."""
    define(names, "mm2_nulls", extra=dict.fromkeys(("source_alias", "connect_url"), None))
    for conn_id in ("mm2_default", "mm2_nulls"):
        pair = Mm2OffsetHook(conn_id).get_conn()
        assert pair.source.name == "source cluster (kafka_source)"
        assert pair.target.name == "target cluster (kafka_target)"
        assert (pair.naming.source_alias, pair.naming.target_alias) == ("source", "target")
        assert pair.naming.policy is ReplicationPolicy.DEFAULT
        assert pair.naming.target_topic("orders") == "source.orders"
        assert pair.syncs_location is SyncsLocation.SOURCE
        assert pair.syncs_topic == SYNCS
        assert pair.connect is None


def test_every_field_counts(names: pytest.MonkeyPatch) -> None:
    """What the form says is what the pair is."""
    define(names, "east", conn_type="kafka", extra={"bootstrap.servers": "east.invalid:1"})
    define(names, "west", conn_type="kafka", extra={"bootstrap.servers": "west.invalid:2"})
    extra = {
        "source_kafka_conn_id": "east",
        "target_kafka_conn_id": "west",
        "source_alias": "e",
        "target_alias": "w",
        "replication_policy": "default",
        "replication_policy_separator": "_",
        "replication_policy_internal_topic_separator_enabled": "false",
        "offset_syncs_topic_location": "target",
        "connect_url": "http://connect.invalid:8083",
        "mapping": "offset_syncs",
    }
    assert set(extra) == set(provider.get_provider_info()["connection-types"][0]["conn-fields"])
    define(names, "mm2_default", extra=extra, login="airflow", password=SECRET)
    pair = Mm2OffsetHook(timeout=7).get_conn()
    assert pair.source.config == {"bootstrap.servers": "east.invalid:1"}
    assert pair.target.config == {"bootstrap.servers": "west.invalid:2"}
    assert pair.naming.target_topic("orders") == "e_orders"
    assert pair.syncs_cluster is pair.target
    assert pair.syncs_topic == "mm2-offset-syncs.e.internal"
    assert pair.connect is not None
    assert (pair.connect.username, pair.connect.password) == ("airflow", SECRET)
    assert pair.connect.timeout == pair.source.timeout == pair.target.timeout == 7


def test_a_java_clients_properties_work_in_an_extra(names: pytest.MonkeyPatch) -> None:
    """What people paste from a Java client's file is translated, and its numbers may be JSON's."""
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    extra = {
        "bootstrap.servers": "east.invalid:1",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": f"{plain} required username=airflow password='{SECRET}';",
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "request.timeout.ms": 20000,
    }
    define(names, "kafka_source", conn_type="kafka", extra=extra)
    assert Mm2OffsetHook().get_conn().source.config == {
        "bootstrap.servers": "east.invalid:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "airflow",
        "sasl.password": SECRET,
        "socket.timeout.ms": "20000",
    }


def test_amazons_iam_works_in_an_extra(names: pytest.MonkeyPatch) -> None:
    """Airflow's Kafka hook respects the callback that the translation has made."""
    extra = {
        "bootstrap.servers": "b-1.x.kafka.eu-west-1.amazonaws.com:9098",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required "
        "awsProfileName=p;",
    }
    define(names, "kafka_source", conn_type="kafka", extra=extra)
    config = Mm2OffsetHook().get_conn().source.config
    assert config["sasl.mechanism"] == "OAUTHBEARER"
    assert config["oauth_cb"] == MskIamToken(region="eu-west-1", profile="p")


def test_airflow_masks_what_the_extras_hide(names: pytest.MonkeyPatch) -> None:
    """Airflow masks a field by its name; a password in a JAAS text and a key in PEM have others."""
    masked: list[str] = []
    names.setattr("airflow_mm2_offsets.hooks.kafka_config.mask_secret", masked.append)
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f"{plain} required username=airflow password='in the JAAS text';"
    extra = {key: value for key, value in KAFKA.items() if key != "sasl.password"}
    extra |= {"sasl.jaas.config": jaas}
    del extra["sasl.username"]
    define(names, "kafka_source", conn_type="kafka", extra=extra)
    Mm2OffsetHook().get_conn()
    assert {jaas, "in the JAAS text", KAFKA["ssl.key.pem"]} <= {*masked}


def test_get_conn_asks_nothing(names: pytest.MonkeyPatch) -> None:
    """The pair is there without a socket: a form can be checked while the clusters are down."""

    def no_socket(*_args: object, **_options: object) -> None:
        raise AssertionError("the network was asked")

    names.setattr("confluent_kafka.admin.AdminClient.__init__", no_socket)
    names.setattr("socket.socket.connect", no_socket)
    define(names, "mm2_default", extra={"connect_url": "http://connect.invalid:8083"})
    assert Mm2OffsetHook().get_conn().connect is not None


RIGHTS = "source: rights: ok; target: rights: ok"


def test_the_test_button_tells_that_all_is_well(clusters: Clusters) -> None:
    """Each part that answered is listed; without a Connect URL Connect is not asked."""
    assert clusters
    assert Mm2OffsetHook(timeout=5).test_connection() == (
        True,
        f"source: ok; target: ok; syncs topic {SYNCS} on source: ok; {RIGHTS}",
    )


def test_the_test_button_tells_part_by_part(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What answers is told apart from what does not, with who was asked and for how long."""
    down, connect = STOPPED.bootstrap_servers, STOPPED_CONNECT.url
    define(monkeypatch, "kafka_target", conn_type="kafka", extra={"bootstrap.servers": down})
    extra = {"target_alias": "other", "connect_url": connect}
    define(monkeypatch, "mm2_default", extra=extra)
    assert clusters
    is_well, text = Mm2OffsetHook(timeout=1).test_connection()
    source, target, syncs, worker = _parts(text)
    assert not is_well
    assert source == "source: ok"
    assert target.startswith(f"target: target cluster (kafka_target) (bootstrap.servers={down})")
    assert syncs.startswith("syncs topic mm2-offset-syncs.other.internal on source: ")
    assert "does not exist" in syncs
    assert worker.startswith(f"Connect: Connect at {connect} did not answer")


def _parts(text: str) -> list[str]:
    starts = [
        text.index(name) for name in ("source: ", "; target: ", "; syncs topic", "; Connect: ")
    ]
    return [
        text[start:end].removeprefix("; ")
        for start, end in zip(starts, [*starts[1:], None], strict=True)
    ]


def test_the_test_button_tells_of_a_wrong_connection(names: pytest.MonkeyPatch) -> None:
    """A connection that can't be used is told as the error would."""
    define(names, "mm2_default", extra={"replication_policy": "none"})
    is_well, text = Mm2OffsetHook().test_connection()
    assert not is_well
    assert text.startswith("connection mm2_default: replication_policy: is 'none'; give one of ")


def test_the_test_button_waits_once(names: pytest.MonkeyPatch) -> None:
    """Parts that do not answer are asked side by side: one timeout, not one each."""
    together = Barrier(3, timeout=5)

    def ask(*_args: object) -> None:
        together.wait()
        raise Mm2OffsetsError("down")

    names.setattr("airflow_mm2_offsets.kafka.cluster.KafkaCluster.walk", ask)
    names.setattr("airflow_mm2_offsets.connection_check.read_syncs", ask)
    assert Mm2OffsetHook().test_connection() == (
        False,
        f"source: down; target: down; syncs topic {SYNCS} on source: down",
    )


def test_the_index_comes_from_the_clusters(clusters: Clusters) -> None:
    """It has the syncs that MirrorMaker 2 wrote."""
    clusters.copy_the_rest()
    assert Mm2OffsetHook(timeout=5).get_index().translate("orders", 1, 0).target == 0
