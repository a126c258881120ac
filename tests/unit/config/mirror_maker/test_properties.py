"""Files of MirrorMaker 2's dedicated mode, by the rules of Kafka's ``MirrorMakerConfig``."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError
from tests.support.mirror_setups import COMPOSE, KAFKA_DOCS
from tests.unit.config.settings_files import SECRET, load


def test_a_flow_is_chosen_by_its_aliases(tmp_path: Path) -> None:
    """Two flows are enabled; each has its own source, target and syncs topic."""
    there = load(tmp_path, KAFKA_DOCS, MM2_OFFSETS_SOURCE_ALIAS="oslo").pair()
    assert there.source.config["bootstrap.servers"] == "oslo-1.invalid:9092,oslo-2.invalid:9092"
    assert there.target.config["bootstrap.servers"] == "rome-1.invalid:9092"
    assert there.syncs_topic == "mm2-offset-syncs.rome.internal"
    back = load(tmp_path, f"{KAFKA_DOCS}\ntarget.alias=oslo").pair()
    assert back.target.config["bootstrap.servers"] == "oslo-1.invalid:9092,oslo-2.invalid:9092"
    assert (back.naming.source_alias, back.naming.target_alias) == ("rome", "oslo")


def test_the_flows_are_listed_where_none_is_chosen(tmp_path: Path) -> None:
    """One error says what to set."""
    with pytest.raises(
        ConfigurationError,
        match=r"mm2.properties: no flow is chosen, and not exactly one is enabled. Enabled flows: "
        r"oslo->rome, rome->oslo. Choose .* MM2_OFFSETS_SOURCE_ALIAS",
    ):
        load(tmp_path, KAFKA_DOCS)
    with pytest.raises(ConfigurationError, match="no flow is chosen"):
        load(tmp_path, KAFKA_DOCS, MM2_OFFSETS_SOURCE_ALIAS="")
    with pytest.raises(ConfigurationError, match=r"paris->\* is chosen, which matches no enabled"):
        load(tmp_path, KAFKA_DOCS, MM2_OFFSETS_SOURCE_ALIAS="paris")


def test_the_only_enabled_flow_is_chosen(tmp_path: Path) -> None:
    """Clusters may be named source and target, whose prefixes this package has too."""
    settings = load(tmp_path, COMPOSE)
    pair = settings.pair()
    assert pair.source.config == {"bootstrap.servers": "left.invalid:9092"}
    assert pair.target.config == {"bootstrap.servers": "right.invalid:9092"}
    assert pair.naming.policy is ReplicationPolicy.IDENTITY
    assert settings.syncs_location is SyncsLocation.TARGET
    assert pair.syncs_topic == "mm2-offset-syncs.source.internal"


def test_a_flow_that_is_switched_off_can_be_named(tmp_path: Path) -> None:
    """A failover may have disabled it; its settings of other flows don't count."""
    names = {"MM2_OFFSETS_SOURCE_ALIAS": "target", "MM2_OFFSETS_TARGET_ALIAS": "source"}
    pair = load(tmp_path, COMPOSE, **names).pair()
    assert pair.source.config == {"bootstrap.servers": "right.invalid:9092"}
    assert pair.syncs_topic == "mm2-offset-syncs.source.internal"
    assert pair.syncs_location is SyncsLocation.SOURCE


def test_a_clusters_client_has_its_own_and_the_shared_properties(tmp_path: Path) -> None:
    """``clusterProps``: consumer's, then the cluster's, then those for all clusters."""
    settings = load(
        tmp_path,
        f"""clusters = a, b
        a->b.enabled = TRUE
        a->b.source.consumer.ssl.key.password = {SECRET}
        security.protocol = SSL
        ssl.ca.location = /all.pem
        ssl.key.password = unused
        consumer.ssl.ca.location = /never.pem
        max.poll.records = 7
        a.bootstrap.servers = a.invalid:1
        a.ssl.ca.location = /a.pem
        a.consumer.ssl.certificate.location = /consumer.pem
        a.admin.ssl.certificate.location = /admin.pem
        a.producer.ssl.certificate.location = /producer.pem
        a.admin.ssl.key.location = /key.pem
        a.consumer.max.poll.records = 5
        b.bootstrap.servers = b.invalid:1
        b.security.protocol = PLAINTEXT
        """,
    )
    assert settings.source == {
        "bootstrap.servers": "a.invalid:1",
        "security.protocol": "SSL",
        "ssl.ca.location": "/a.pem",
        "ssl.certificate.location": "/consumer.pem",
        "ssl.key.location": "/key.pem",
        "ssl.key.password": SECRET,
    }
    assert settings.target["security.protocol"] == "PLAINTEXT"
    assert settings.target["ssl.ca.location"] == "/all.pem"


def test_a_flow_overrides_what_counts_for_all_flows(tmp_path: Path) -> None:
    """``connectorBaseConfig``: settings of the flow come last; texts are trimmed."""
    text = COMPOSE + (
        "offset-syncs.topic.location = source\n"
        "replication.policy.separator = _\n"
        "source->target.replication.policy.separator = ..\n"
        "source->target.replication.policy.internal.topic.separator.enabled = false \n"
        "source->target.target.cluster.alias = prod\n"
    )
    settings = load(tmp_path, text)
    assert settings.syncs_location is SyncsLocation.TARGET
    naming = settings.naming
    assert (naming.separator, naming.internal_separator) == ("..", False)
    assert (naming.source_alias, naming.target_alias) == ("source", "prod")


def test_an_empty_separator_is_kafkas_empty_separator(tmp_path: Path) -> None:
    """Strimzi's older examples have it beside IdentityReplicationPolicy."""
    settings = load(tmp_path, f"{COMPOSE}\nreplication.policy.separator=\n")
    assert settings.pair().syncs_topic == "mm2-offset-syncssourceinternal"


def test_own_settings_stand_beside(tmp_path: Path) -> None:
    """Those in the file, and variables, which take precedence over MirrorMaker 2's."""
    settings = load(
        tmp_path,
        f"{COMPOSE}\nconnect.url=http://connect.invalid:8083\nserve.port=9\nkafka.client.id=x\n",
        MM2_OFFSETS_SOURCE_SSL_CA_LOCATION="/ca.pem",
        MM2_OFFSETS_REPLICATION_POLICY="default",
        MM2_OFFSETS_SERVE_PORT="10",
    )
    assert settings.connect_url == "http://connect.invalid:8083"
    assert settings.serve.port == 10
    assert settings.source["ssl.ca.location"] == "/ca.pem"
    assert settings.target["client.id"] == "x"
    assert settings.naming.policy is ReplicationPolicy.DEFAULT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters = one\none->one.enabled=true", "clusters in .* names fewer than two clusters"),
        (f"{COMPOSE}\nserve.prot=1", r"serve.prot in .* did you mean serve.port\?"),
        (f"{COMPOSE}\nconnect.ulr=x", r"connect.ulr in .* did you mean connect.url\?"),
        (COMPOSE.replace("target.bootstrap", "tarqet.bootstrap"), "target.bootstrap.servers: is m"),
        (COMPOSE.replace("org.apache.kafka.connect.mirror.I", "my.I"), "give one of identity, def"),
        (COMPOSE.replace("right.invalid", f"me:{SECRET}@right.invalid"), "contains a login"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """What this package needs must be there; its own misspelt keys are found among Kafka's."""
    with pytest.raises(ConfigurationError, match=message) as raised:
        load(tmp_path, text)
    assert SECRET not in str(raised.value)


def test_keys_of_connect_workers_are_not_misspelt_ones(tmp_path: Path) -> None:
    """A dedicated MirrorMaker 2 takes a Connect worker's settings, too."""
    text = f"{COMPOSE}\nconnect.protocol=sessioned\nconnector.client.config.override.policy=All\n"
    assert load(tmp_path, text).naming.source_alias == "source"


@pytest.mark.parametrize("name", ["ssl.endpoint.identification.algorithm", "ssl.crl.location"])
def test_an_empty_variable_counts_as_not_set(tmp_path: Path, name: str) -> None:
    """Docker compose and Helm set one that has no value: it must not switch a check off."""
    variable = f"MM2_OFFSETS_SOURCE_{name.replace('.', '_').upper()}"
    text = f"{COMPOSE}\nsource.{name} = https\n"
    assert load(tmp_path, text, **{variable: ""}) == load(tmp_path, text)
    assert load(tmp_path, COMPOSE, **{variable: ""}) == load(tmp_path, COMPOSE)


def test_an_empty_variable_is_no_empty_separator(tmp_path: Path) -> None:
    """As in a connection; only the file can have an empty one."""
    settings = load(tmp_path, COMPOSE, MM2_OFFSETS_REPLICATION_POLICY_SEPARATOR="")
    assert settings.naming.separator == "."


def test_a_check_is_switched_off_on_purpose(tmp_path: Path) -> None:
    """With the word for it."""
    variable = "MM2_OFFSETS_SOURCE_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM"
    settings = load(tmp_path, COMPOSE, **{variable: "none"})
    assert settings.source["ssl.endpoint.identification.algorithm"] == "none"


def test_the_admin_clients_layer_switches_nothing_off(tmp_path: Path) -> None:
    """An empty value there is for the admin client alone; its login counts where no other is."""
    settings = load(
        tmp_path,
        f"{COMPOSE}\nsource.admin.ssl.endpoint.identification.algorithm =\n"
        "source.admin.sasl.mechanism = PLAIN\n",
    )
    assert "ssl.endpoint.identification.algorithm" not in settings.source
    assert settings.source["sasl.mechanism"] == "PLAIN"
