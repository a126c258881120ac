"""Client properties: Java's to librdkafka's, and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import format_properties, to_java, to_librdkafka

SERVERS = {"bootstrap.servers": "broker:9092"}
SECRET = "hunter2"  # noqa: S105 - what must not be seen
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        (
            {"sasl.jaas.config": f'{PLAIN} required username="u" password="p\\"w;";'},
            {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": 'p"w;'},
        ),
        (
            {
                "sasl.jaas.config": f"{SCRAM} required username='u' password=pw;",
                "sasl.mechanism": "SCRAM-SHA-512",
                "security.protocol": "SASL_SSL",
            },
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "u",
                "sasl.password": "pw",
                "security.protocol": "SASL_SSL",
            },
        ),
        (
            {"ssl.truststore.location": "/ca.pem", "ssl.truststore.type": "PEM"},
            {"ssl.ca.location": "/ca.pem"},
        ),
        (
            {"ssl.keystore.location": "/me.pem"},
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        ),
        (
            {"ssl.truststore.certificates": "ca", "ssl.keystore.key": "key"},
            {"ssl.ca.pem": "ca", "ssl.key.pem": "key"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        ({"fetch.max.wait.ms": "100", "key.deserializer": "X"}, {"fetch.wait.max.ms": "100"}),
        *(
            ({name: "x"}, {name: "x"})
            for name in ("ssl.keystore.password", "client.id", "socket.timeout.ms")
        ),
        ({"ssl.keystore.location": "/me.p12"}, {"ssl.keystore.location": "/me.p12"}),
    ],
)
def test_javas_properties_become_librdkafkas(
    java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    """Properties with a counterpart are translated; names that librdkafka knows stay."""
    assert to_librdkafka("source", java) == librdkafka


@pytest.mark.parametrize(
    ("java", "message"),
    [
        ({"sasl.jaas.config": f'{PLAIN} required username="{SECRET}'}, "does not have the form"),
        (
            {"sasl.jaas.config": f'{PLAIN} required username="u" {SECRET};'},
            "does not have the form",
        ),
        ({"sasl.jaas.config": f'{PLAIN} required username="{SECRET}";'}, "lacks password"),
        ({"sasl.jaas.config": f"{PLAIN} required;"}, "lacks username and password"),
        (
            {"sasl.jaas.config": f'{SCRAM} required username="u" password="{SECRET}";'},
            "sasl.mechanism is missing; .*: give SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        (
            {"sasl.jaas.config": f"com.sun.Krb5LoginModule required keyTab={SECRET};"},
            "names Krb5LoginModule, which only Java has; give .*sasl.kerberos",
        ),
        (
            {"ssl.truststore.location": "/t.jks", "ssl.truststore.password": SECRET},
            "/t.jks, a Java keystore; export",
        ),
        ({"ssl.keystore.location": "/k.jks", "ssl.keystore.password": SECRET}, "convert it to PKC"),
    ],
)
def test_a_property_that_only_java_has_is_refused(java: dict[str, str], message: str) -> None:
    """One sentence says what to give instead, and shows no secret."""
    with pytest.raises(ConfigurationError, match=f"^source: .*{message}") as raised:
        to_librdkafka("source", java)
    assert SECRET not in str(raised.value)


def test_a_cluster_without_a_login() -> None:
    """Properties that do not decide about address or login are left out."""
    config = SERVERS | {"group.id": "g", "socket.timeout.ms": 10, "security.protocol": "plaintext"}
    assert to_java("source", config) == SERVERS | {"security.protocol": "PLAINTEXT"}


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_a_login_by_password(mechanism: str, module: str) -> None:
    """User and password become a JAAS line, quoted as Java reads it."""
    config = SERVERS | {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": mechanism,
        "sasl.username": "ann",
        "sasl.password": 'a"b\\c',
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert to_java("source", config) == SERVERS | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="ann" password="a\\"b\\\\c";',
        "ssl.endpoint.identification.algorithm": "",
    }


@given(user=st.text(), password=st.text(), ca=st.text(min_size=1))
def test_a_login_survives_both_ways(user: str, password: str, ca: str) -> None:
    """Whatever characters a password has, Java's properties give the same login back."""
    config = SERVERS | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.pem": ca,
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert to_librdkafka("source", to_java("source", config)) == config


def test_keys_and_certificates_are_read(tmp_path: Path) -> None:
    """PEM files come along as text: Spark's executors do not have the files."""
    names = ("ca", "certificate", "key")
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    config = SERVERS | {f"ssl.{name}.location": str(tmp_path / name) for name in names}
    assert to_java("source", config) == SERVERS | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "ca\n",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "certificate\n",
        "ssl.keystore.key": "key\n",
    }


def test_a_keystore_file_is_pkcs12() -> None:
    """Librdkafka reads no other keystore, and Java must be told its type."""
    config = SERVERS | {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": "pw"}
    assert to_java("source", config) == config | {"ssl.keystore.type": "PKCS12"}


@pytest.mark.parametrize(
    "config",
    [
        {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"},
        {"enable.ssl.certificate.verification": False},
        {"ssl.ca.location": "/nowhere"},
        {"sasl.oauthbearer.config": SECRET},
    ],
)
def test_a_login_without_a_java_counterpart_is_refused(config: dict[str, object]) -> None:
    """The property is named without its value; none is dropped in silence."""
    with pytest.raises(ConfigurationError, match=r"^source: .*give ") as raised:
        to_java("source", SERVERS | config)
    assert SECRET not in str(raised.value)


def test_a_key_file_that_is_not_pem_is_not_shown(tmp_path: Path) -> None:
    """The decoding error behind the message would carry the whole file."""
    path = tmp_path / "key"
    path.write_bytes(SECRET.encode() + b"\xfe")
    with pytest.raises(ConfigurationError, match=r"ssl.key.location is .* can't be") as raised:
        to_java("source", SERVERS | {"ssl.key.location": str(path)})
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_properties_file() -> None:
    """Line ends, backslashes, leading spaces and non-ASCII letters survive Java's escaping."""
    assert format_properties({"b": "1\n2\\", "a": " é=😀"}) == (
        "a=\\ \\u00e9\\=\\ud83d\\ude00\nb=1\\n2\\\\\n"
    )
