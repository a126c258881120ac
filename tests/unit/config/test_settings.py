"""Settings from files and the environment."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.config import Settings, load_settings
from airflow_mm2_offsets.core import ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError

SECRET = "hunter2"  # noqa: S105 - what must not be seen
BOTH = {"MM2_OFFSETS_KAFKA_BOOTSTRAP_SERVERS": "shared.invalid:1"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def load(tmp_path: Path, text: str, name: str = "mm2.properties", **environ: str) -> Settings:
    file = tmp_path / name
    file.write_text(text)
    return load_settings(file, environ)


def test_addresses_are_enough() -> None:
    """All else has MirrorMaker 2's defaults, loopback and no archive."""
    settings = load_settings(None, BOTH)
    pair = settings.pair()
    assert pair.source.config == pair.target.config == {"bootstrap.servers": "shared.invalid:1"}
    assert pair.naming.policy is ReplicationPolicy.DEFAULT
    assert pair.syncs_location is SyncsLocation.SOURCE
    assert pair.syncs_topic == "mm2-offset-syncs.target.internal"
    assert pair.connect is None
    assert settings.archive() is None
    assert settings.refresh_seconds == 30
    assert (settings.serve.host, settings.serve.port) == ("127.0.0.1", 8080)


@pytest.mark.parametrize(
    ("written", "password"),
    [
        ("pa ss\u2028w\x85o\x0br\x1cd", "pa ss\u2028w\x85o\x0br\x1cd"),
        ("ends with a blank ", "ends with a blank "),
        ("\\  begins with blanks", "  begins with blanks"),
        ("\\\n  \\\n  goes on\\\n  #here", "goes on#here"),
        ("a\\=b\\:c\\\\", "a=b:c\\"),
        ("\\u00e9\\ud83d\\ude00", "é😀"),
    ],
)
def test_a_password_is_what_java_reads(tmp_path: Path, written: str, password: str) -> None:
    """Lines end with CR and LF alone; blanks at the end count, as in MirrorMaker 2's own file."""
    text = f"kafka.bootstrap.servers=s.invalid:1\nconnect.password={written}\nsource.alias=e\r\n"
    settings = load(tmp_path, text)
    assert (settings.connect_password, settings.naming.source_alias) == (password, "e")


def test_every_key_counts(tmp_path: Path) -> None:
    """A properties file says all there is to say, as Java reads such files."""
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


def test_toml_nests(tmp_path: Path) -> None:
    """Tables are the parts of a key; numbers, truths and lists are taken as they are meant."""
    settings = load(
        tmp_path,
        """
        refresh = {seconds = 7}
        "offset-syncs".topic.location = "target"
        [kafka]
        bootstrap.servers = ["a.invalid:1", "b.invalid:2"]
        enable.ssl.certificate.verification = false
        """,
        "mm2.toml",
    )
    assert settings.refresh_seconds == 7
    assert settings.syncs_location is SyncsLocation.TARGET
    assert settings.source["bootstrap.servers"] == "a.invalid:1,b.invalid:2"
    assert settings.source["enable.ssl.certificate.verification"] == "false"


def test_the_closer_property_counts_and_then_the_environment(tmp_path: Path) -> None:
    """A side's own over the shared ones, wherever it stands; a variable over the same key."""
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
    """For containers that set nothing else."""
    (tmp_path / "mm2.properties").write_text("kafka.bootstrap.servers=s.invalid:1")
    settings = load_settings(None, {"MM2_OFFSETS_CONFIG": str(tmp_path / "mm2.properties")})
    assert settings.source["bootstrap.servers"] == "s.invalid:1"


THEIRS = """
mm2:
  offset-map:
    source-cluster: east
    target-cluster: west
    bootstrap-servers: t.invalid:2
    source-bootstrap-servers: s.invalid:1
    offset-syncs-topic: mm2-offset-syncs.east.internal
    refresh-interval: 1m
    consumer-properties:
      security.protocol: PLAINTEXT
      client.id: shared
    source-consumer-properties:
      client.id: own
spring:
  application: {name: offsets}
"""


def check_theirs(settings: Settings) -> None:
    pair = settings.pair()
    assert pair.source.config == {
        "bootstrap.servers": "s.invalid:1",
        "security.protocol": "PLAINTEXT",
        "client.id": "own",
    }
    assert pair.target.config == {
        "bootstrap.servers": "t.invalid:2",
        "security.protocol": "PLAINTEXT",
        "client.id": "shared",
    }
    assert (pair.naming.source_alias, pair.naming.target_alias) == ("east", "west")
    assert pair.syncs_cluster is pair.target
    assert pair.syncs_topic == "mm2-offset-syncs.east.internal"
    assert settings.refresh_seconds == 60


def test_an_application_yaml_of_mm2_offset_map_is_read(tmp_path: Path) -> None:
    """Its users bring it along; what configures Spring is passed over."""
    check_theirs(load(tmp_path, THEIRS, "application.yaml"))


def test_properties_and_variables_of_mm2_offset_map_are_read(tmp_path: Path) -> None:
    """Under all the names that Spring Boot would bind."""
    check_theirs(
        load(
            tmp_path,
            """mm2.offset-map.source-cluster=east
            mm2.offsetMap.targetCluster=west
            mm2.offset-map.bootstrap-servers=t.invalid:2
            mm2.offset-map.offset-syncs-topic=mm2-offset-syncs.east.internal
            mm2.offset-map.enabled=true
            mm2.offset-map.consumer-properties[security.protocol]=PLAINTEXT
            mm2.offset-map.consumer-properties.client.id=shared
            """,
            MM2_OFFSETMAP_SOURCEBOOTSTRAPSERVERS="s.invalid:1",
            MM2_OFFSETMAP_REFRESHINTERVAL="PT1M",
            MM2_OFFSET_MAP_SOURCE_CONSUMER_PROPERTIES_CLIENT_ID="own",
        )
    )


def test_their_chart_passes_json() -> None:
    """Their Helm chart puts everything into one variable."""
    text = (
        '{"mm2": {"offset-map": {"bootstrap-servers": "t.invalid:2",'
        ' "refresh-interval": 500}}, "spring": {}}'
    )
    with pytest.raises(ConfigurationError, match=r"SPRING_APPLICATION_JSON is '0.5'; give a num"):
        load_settings(None, {"SPRING_APPLICATION_JSON": text})
    settings = load_settings(None, {"SPRING_APPLICATION_JSON": text.replace("500", '"30s"')})
    # One address: the source's falls back to it.
    assert settings.source == settings.target == {"bootstrap.servers": "t.invalid:2"}
    assert settings.refresh_seconds == 30


def test_javas_client_properties_are_translated() -> None:
    """Prefixed with a cluster's name, as every other client property."""
    jaas = f'{PLAIN} required username="u" password="p";'
    environ = BOTH | {"MM2_OFFSETS_SOURCE_SASL_JAAS_CONFIG": jaas}
    assert load_settings(None, environ).source == {
        "bootstrap.servers": "shared.invalid:1",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    environ["MM2_OFFSETS_SOURCE_SASL_JAAS_CONFIG"] = SECRET
    with pytest.raises(ConfigurationError, match=r"^source: sasl.jaas.config is not of") as raised:
        load_settings(None, environ)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sorce.alias=x", r"sorce.alias in .*mm2.properties is no setting; did you mean source.al"),
        ("gibberish=x", r"gibberish in .* is no setting; docs/rest.md lists them"),
        ("refresh.seconds=soon", r"refresh.seconds in .* is 'soon'; give a number from 1 to 86400"),
        ("refresh.seconds=nan", "give a number"),
        ("serve.port=65536", "give a number from 0 to 65535"),
        ("offset-syncs.topic.location=middle", "give one of source, target"),
        ("replication.policy=my.Policy", "give one of identity, default"),
        ("serve.without.auth=maybe", "give true or false"),
        ("offset-syncs.topic=syncs", r"give a name of the form mm2-offset-syncs.<alias>.internal"),
        ("connect.url=connect", "the Connect URL lacks http:// or a host"),
        ("serve.username=u", r"serve.username in .* is given without serve.password"),
        ("serve.tls.key=k", r"serve.tls.key in .* is given without serve.tls.certificate"),
        ("serve.token.file=/nowhere", "/nowhere can't be read"),
        ("mm2.offset-map.bootstrap=x", "is not a setting of mm2-offset-map; it has"),
        ("mm2.offset-map.refresh-interval=soon", "is 'soon'; give a duration like 30s"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    """With its file, and what would be right."""
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path, f"kafka.bootstrap.servers=a.invalid:1\n{line}")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, r"source.bootstrap.servers is missing.*MM2_OFFSETS_SOURCE_BOOTSTRAP_SERVERS"),
        ({"MM2_OFFSETS_SOURCE_BOOTSTRAP_SERVERS": "a.invalid:1"}, "target.bootstrap.servers is mi"),
        (BOTH | {"MM2_OFFSETS_REFRESH": "1"}, "variable MM2_OFFSETS_REFRESH is no setting"),
        (BOTH | {"MM2_OFFSETS_CONFIG": "/nowhere"}, "/nowhere can't be read: No such file"),
        (BOTH | {"SPRING_APPLICATION_JSON": "x"}, "SPRING_APPLICATION_JSON is not a JSON object"),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], message: str) -> None:
    """The variable itself, not only the key that it stands for."""
    with pytest.raises(ConfigurationError, match=message):
        load_settings(None, environ)


@pytest.mark.parametrize("name", ["mm2.toml", "mm2.yaml"])
def test_a_damaged_file_shows_nothing_of_itself(tmp_path: Path, name: str) -> None:
    """What a parser says of it may quote a secret."""
    with pytest.raises(ConfigurationError, match=f"{name} is not") as raised:
        load(tmp_path, f"kafka: [{SECRET}\n  = :", name)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_broken_escape_is_refused_without_its_value(tmp_path: Path) -> None:
    """As Java refuses it: a key file's path on Windows would become another path in silence."""
    text = f"connect.username=a\\\n  b\r\n# C:\\users\nconnect.password=C:\\u{SECRET}\n"
    with pytest.raises(
        ConfigurationError, match=r"mm2.properties: line 4 has \\u without"
    ) as raised:
        load(tmp_path, text)
    assert SECRET not in str(raised.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """Such as a Java keystore given in its place."""
    file = tmp_path / "mm2.properties"
    file.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(ConfigurationError, match="in UTF-8"):
        load_settings(file, {})


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    """Neither of the settings nor of the pair made of them."""
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
    """Each with its place, and with the name that it may stand for."""
    text = "replication.polcy=identity\nserve.prot=1\nsource.bootstrap.servers=a\n"
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text, MM2_OFFSETS_TARGET_BOOTSTRAP_SERVERS="b")
    message = str(caught.value)
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
def test_a_misspelt_alias_is_no_client_property(tmp_path: Path, text: str, name: str) -> None:
    """With the source lost no client is made of it, and nothing else would name it."""
    with pytest.raises(ConfigurationError, match=rf"{name} in .* is no setting"):
        load(tmp_path, text, **BOTH)


@pytest.mark.parametrize(
    "variable", ["MM2_OFFSET_REPLICATION_POLICY", "MM2_OFFSET_MAPS_TARGET_CLUSTER"]
)
def test_a_variable_with_a_misspelt_prefix_is_named(variable: str) -> None:
    """It would be passed over like the variables of other programs."""
    with pytest.raises(ConfigurationError, match=f"variable {variable} is no setting"):
        load_settings(None, BOTH | {variable: "identity"})


def test_a_yaml_file_without_our_settings_is_refused(tmp_path: Path) -> None:
    """Our own names are not read from YAML; a misspelt parent is named."""
    with pytest.raises(
        ConfigurationError, match=r"mm2.yaml: .* below mm2.offset-map, and there are none"
    ):
        load(tmp_path, "replication:\n  policy: identity\n", "mm2.yaml", **BOTH)
    with pytest.raises(ConfigurationError, match=r"mm2.offset-mapp.source-cluster in .* no "):
        load(tmp_path, "mm2:\n  offset-mapp:\n    source-cluster: a\n", "mm2.yaml", **BOTH)
