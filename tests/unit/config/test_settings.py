"""Settings from files and the environment."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.config.settings_files import SECRET, SERVERS, load

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_addresses_are_enough() -> None:
    """The defaults are MirrorMaker 2's; the server listens on loopback; there is no archive."""
    settings = load_settings(None, SERVERS)
    pair = settings.pair()
    assert pair.source.config == pair.target.config == {"bootstrap.servers": "shared.invalid:1"}
    assert pair.naming.policy is ReplicationPolicy.DEFAULT
    assert pair.syncs_location is SyncsLocation.SOURCE
    assert pair.syncs_topic == "mm2-offset-syncs.target.internal"
    assert pair.connect is None
    assert settings.archive() is None
    assert settings.refresh_seconds == 30
    assert (settings.serve.host, settings.serve.port) == ("127.0.0.1", 8080)


def test_every_key_is_read(tmp_path: Path) -> None:
    """A properties file can hold every setting, in the syntax that Java reads."""
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    settings = load(
        tmp_path,
        f"""# a comment
        ! another
        source.bootstrap.servers = a.invalid:1,\\
            b.invalid:2
        target.bootstrap.servers: c.invalid:3
        source.alias east
        target.alias=west
        replication.policy=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
        replication.policy.separator=_
        offset-syncs.topic.location=target
        connect.url=http\\://connect.invalid:8083
        connect.username=u
        connect.password=\\u0070=w
        archive={tmp_path}/archive
        refresh.seconds=5
        serve.port=9000
        serve.token.file={token}
        """,
    )
    pair = settings.pair(timeout=7)
    assert pair.source.config == {"bootstrap.servers": "a.invalid:1,b.invalid:2"}
    assert pair.naming.policy is ReplicationPolicy.IDENTITY
    assert pair.syncs_topic == "mm2-offset-syncs_east_internal"
    assert pair.connect is not None
    assert (pair.connect.username, pair.connect.password) == ("u", "p=w")
    assert pair.connect.timeout == pair.target.timeout == 7
    archive = settings.archive()
    assert archive is not None
    assert str(archive.location) == f"{tmp_path}/archive"
    assert (settings.refresh_seconds, settings.serve.port) == (5, 9000)
    assert settings.serve.token == SECRET


def test_the_cluster_takes_precedence_and_then_the_environment(tmp_path: Path) -> None:
    """A cluster's own property replaces a shared one; a variable replaces the same key."""
    settings = load(
        tmp_path,
        "kafka.bootstrap.servers=s.invalid:1\nsource.client.id=own\nkafka.client.id=shared\n",
        MM2_OFFSETS_KAFKA_CLIENT_ID="variable",
        MM2_OFFSETS_TARGET_BOOTSTRAP_SERVERS="t.invalid:2",
        MM2_OFFSETS_OFFSET_SYNCS_TOPIC_LOCATION="target",
    )
    assert settings.source == {"bootstrap.servers": "s.invalid:1", "client.id": "own"}
    assert settings.target == {"bootstrap.servers": "t.invalid:2", "client.id": "variable"}
    assert settings.syncs_location is SyncsLocation.TARGET


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    """A container needs no other setting."""
    (tmp_path / "mm2.properties").write_text("kafka.bootstrap.servers=s.invalid:1")
    settings = load_settings(None, {"MM2_OFFSETS_CONFIG": str(tmp_path / "mm2.properties")})
    assert settings.source["bootstrap.servers"] == "s.invalid:1"


def test_javas_client_properties_are_translated() -> None:
    """A Java property works under a cluster's prefix; an error names the cluster."""
    jaas = f'{PLAIN} required username="u" password="p";'
    environ = SERVERS | {"MM2_OFFSETS_SOURCE_SASL_JAAS_CONFIG": jaas}
    assert load_settings(None, environ).source == {
        "bootstrap.servers": "shared.invalid:1",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    environ["MM2_OFFSETS_SOURCE_SASL_JAAS_CONFIG"] = SECRET
    with pytest.raises(
        ConfigurationError, match=r"^source: sasl.jaas.config does not have the form"
    ) as raised:
        load_settings(None, environ)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "sorce.alias=x",
            r"sorce.alias in .*mm2.properties is not a known setting; did you mean source.al",
        ),
        ("gibberish=x", r"gibberish in .* is not a known setting; docs/settings.md lists them"),
        (
            "refresh.seconds=soon",
            r"refresh.seconds in .*: is 'soon'; give a number from 1 to 86400",
        ),
        ("refresh.seconds=nan", "give a number"),
        ("serve.port=65536", "give a number from 0 to 65535"),
        ("offset-syncs.topic.location=middle", "give one of source, target"),
        ("replication.policy=my.Policy", "give one of identity, default"),
        ("serve.without.auth=maybe", "give true or false"),
        ("offset-syncs.topic=syncs", r"give a name of the form mm2-offset-syncs.<alias>.internal"),
        ("connect.url=connect", "the Connect URL lacks http:// or a host"),
        ("serve.username=u", r"serve.username in .* is set without serve.password"),
        ("serve.tls.key=k", r"serve.tls.key in .* is set without serve.tls.certificate"),
        ("serve.token.file=/nowhere", "/nowhere: serve.token.file in .*: can't be read"),
        ("mm2.offset-map.bootstrap=x", "is not a setting of mm2-offset-map; its settings are"),
        ("mm2.offset-map.refresh-interval=soon", "is 'soon'; give a duration like 30s"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    """The error names the file and an allowed value."""
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path, f"kafka.bootstrap.servers=a.invalid:1\n{line}")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, r"source.bootstrap.servers: is missing.*MM2_OFFSETS_SOURCE_BOOTSTRAP_SERVERS"),
        (
            {"MM2_OFFSETS_SOURCE_BOOTSTRAP_SERVERS": "a.invalid:1"},
            "target.bootstrap.servers: is mi",
        ),
        (
            SERVERS | {"MM2_OFFSETS_REFRESH": "1"},
            "variable MM2_OFFSETS_REFRESH is not a known setting",
        ),
        (SERVERS | {"MM2_OFFSETS_CONFIG": "/nowhere"}, "/nowhere: can't be read: No such file"),
        (
            SERVERS | {"SPRING_APPLICATION_JSON": "x"},
            "SPRING_APPLICATION_JSON: is not a JSON object",
        ),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], message: str) -> None:
    """The error names the variable, not only its key."""
    with pytest.raises(ConfigurationError, match=message):
        load_settings(None, environ)


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    """The settings and the pair of clusters hide passwords and tokens."""
    settings = load(
        tmp_path,
        f"""kafka.bootstrap.servers=a.invalid:1
        kafka.sasl.password={SECRET}
        connect.url=http://connect.invalid:8083
        connect.username=u
        connect.password={SECRET}
        serve.token={SECRET}
        serve.username=u
        serve.password={SECRET}
        """,
    )
    assert SECRET not in f"{settings!r}{settings.pair()!r}"


def test_unknown_settings_are_named_all_at_once(tmp_path: Path) -> None:
    """The error names each origin, and the most similar known setting."""
    text = "replication.polcy=identity\nserve.prot=1\nsource.bootstrap.servers=a\n"
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path, text, MM2_OFFSETS_TARGET_BOOTSTRAP_SERVERS="b")
    message = str(raised.value)
    assert "replication.polcy in" in message
    assert "did you mean replication.policy?; serve.prot in" in message
    assert "did you mean serve.port?" in message


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("source.alais=a", "source.alais"),
        ("target.aliass=b", "target.aliass"),
        ("source.cluster.alias=a", "source.cluster.alias"),
    ],
)
def test_a_misspelt_alias_is_refused(tmp_path: Path, text: str, name: str) -> None:
    """As a client property it would go unnoticed where the source cluster is lost."""
    with pytest.raises(ConfigurationError, match=rf"{name} in .* is not a known setting"):
        load(tmp_path, text, **SERVERS)


@pytest.mark.parametrize(
    "variable", ["MM2_OFFSET_REPLICATION_POLICY", "MM2_OFFSET_MAPS_TARGET_CLUSTER"]
)
def test_a_variable_with_a_misspelt_prefix_is_refused(variable: str) -> None:
    """It is not ignored, as the variables of other programs are."""
    with pytest.raises(ConfigurationError, match=f"variable {variable} is not a known setting"):
        load_settings(None, SERVERS | {variable: "identity"})
