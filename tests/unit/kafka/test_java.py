"""A connection's properties as Kafka's Java client takes them."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.java import format_properties, java_properties

SERVERS = {"bootstrap.servers": "broker:9092"}


def test_a_plain_cluster() -> None:
    """What tells nothing of reach or login is left out."""
    given = SERVERS | {"group.id": "g", "socket.timeout.ms": 10, "security.protocol": "plaintext"}
    assert java_properties("source", given) == SERVERS | {"security.protocol": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")],
)
def test_a_login_by_password(mechanism: str, module: str) -> None:
    """User and password become a JAAS line, quoted as Java reads it."""
    given = SERVERS | {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": mechanism,
        "sasl.username": "ann",
        "sasl.password": 'a"b\\c',
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert java_properties("source", given) == SERVERS | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        'username="ann" password="a\\"b\\\\c";',
        "ssl.endpoint.identification.algorithm": "",
    }


def test_keys_and_certificates_are_read(tmp_path: Path) -> None:
    """PEM files come along, for Spark's executors have not got them."""
    names = ("ca", "certificate", "key")
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    given = SERVERS | {f"ssl.{name}.location": str(tmp_path / name) for name in names}
    assert java_properties("source", given) == SERVERS | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "ca\n",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "certificate\n",
        "ssl.keystore.key": "key\n",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"},
        {"enable.ssl.certificate.verification": False},
        {"ssl.ca.location": "/nowhere"},
        {"sasl.oauthbearer.config": "secret"},
    ],
)
def test_a_login_that_can_not_be_handed_on_is_refused(given: dict[str, object]) -> None:
    """What Java has no counterpart for is named, without its value; nothing is dropped."""
    with pytest.raises(ConfigurationError, match=r"^source: .*give ") as caught:
        java_properties("source", SERVERS | given)
    assert "secret" not in str(caught.value)


def test_a_properties_file() -> None:
    """Line ends, backslashes, leading spaces and other letters come through Java's reader."""
    assert format_properties({"b": "1\n2\\", "a": " é=😀"}) == (
        "a=\\ \\u00e9=\\ud83d\\ude00\nb=1\\n2\\\\\n"
    )
