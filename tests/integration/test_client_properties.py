"""What Java client properties become, taken by the installed librdkafka: a client is made of it."""

import logging
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.kafka.client_properties import kerberos, to_librdkafka
from airflow_mm2_offsets.kafka.clients import make_admin, make_consumer
from airflow_mm2_offsets.kafka.session import ClientSession
from tests.unit.kafka.client_properties.material import OAUTH, PLAIN, SCRAM, SECRET, material
from tests.unit.kafka.client_properties.test_contract import JAVA
from tests.unit.kafka.client_properties.test_oauth import KAFKA_HANDLER

NOWHERE = {"bootstrap.servers": "localhost:1"}
SUITES = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


def _makes_clients(java: dict[str, str]) -> None:
    config = to_librdkafka("source", NOWHERE | java)
    assert make_admin("source", config, 1).client is not None
    assert make_consumer("source", config, 1, "read_committed").client is not None


def test_javas_defaults() -> None:
    """A file that spells out all of Java's defaults makes clients."""
    _makes_clients({name: default for name, default in JAVA.items() if default})


@pytest.mark.parametrize(
    "java",
    [
        {"sasl.jaas.config": f"{PLAIN} required username=u password=p;"},
        {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f"{SCRAM} required username=u password=p;",
        },
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH} required clientId=me clientSecret=s scope='a b';",
            "sasl.login.callback.handler.class": KAFKA_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": "http://localhost:1/token",
        },
    ],
)
def test_logins(java: dict[str, str]) -> None:
    """Each login makes clients."""
    _makes_clients({"security.protocol": "SASL_SSL"} | java)


def test_stores(tmp_path: Path) -> None:
    """OpenSSL takes the certificates and the key that came out of PKCS#12 files."""
    (tmp_path / "me.p12").write_bytes(material().keystore(SECRET))
    (tmp_path / "trust.p12").write_bytes(material().truststore(SECRET))
    _makes_clients(
        {
            "security.protocol": "SSL",
            "ssl.keystore.location": str(tmp_path / "me.p12"),
            "ssl.keystore.password": SECRET,
            "ssl.truststore.location": str(tmp_path / "trust.p12"),
            "ssl.truststore.password": SECRET,
            "ssl.cipher.suites": SUITES,
        }
    )


def test_one_line_pem() -> None:
    """OpenSSL takes texts that came without line breaks, and an encrypted key."""
    made = material()
    _makes_clients(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": made.cert_pem.replace("\n", ""),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": made.cert_pem.replace("\n", " "),
            "ssl.keystore.key": made.encrypted_key_pem(SECRET).replace("\n", "\\n"),
            "ssl.key.password": SECRET,
        }
    )


def test_the_build_is_asked_about_kerberos() -> None:
    """The answer agrees with what librdkafka says when a client is made."""
    config = {"group.id": "g", "security.protocol": "sasl_plaintext", "sasl.mechanism": "GSSAPI"}
    if kerberos.has_gssapi():
        Consumer(config).close()
    else:
        with pytest.raises(KafkaException, match="No provider for SASL mechanism GSSAPI"):
            Consumer(config)


def test_librdkafkas_log_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """With all of librdkafka's debug contexts on, a secret in a line is stars."""
    caplog.set_level(logging.DEBUG)
    # The log shows the client's id, as a line might show anything.
    config = NOWHERE | {"debug": "all", "client.id": SECRET, "sasl.password": SECRET}
    session = ClientSession("source", 1, config, AdminClient)
    session.client.poll(0.3)
    assert any("***" in message for message in caplog.messages)
    assert SECRET not in caplog.text
