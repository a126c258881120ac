"""Keystores and truststores that Java's own keytool wrote."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import to_java, to_librdkafka
from airflow_mm2_offsets.kafka.clients import make_admin

PASSWORD = "change-it-canary"  # noqa: S105 - of stores that last as long as a test
SERVERS = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL"}


def _keytool(*arguments: str) -> None:
    password = "-srcstorepass" if "-importkeystore" in arguments else "-storepass"
    command = [str(shutil.which("keytool")), *arguments, password, PASSWORD, "-noprompt"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """A PKCS#12 keystore, the same in JKS, and truststores in both formats."""
    owner = ["-alias", "me", "-dname", "CN=me", "-keyalg", "EC", "-groupname", "secp256r1"]
    key, cert = str(tmp_path / "key.p12"), str(tmp_path / "cert.pem")
    _keytool("-genkeypair", *owner, "-storetype", "PKCS12", "-keystore", key)
    _keytool("-exportcert", "-rfc", "-alias", "me", "-keystore", key, "-file", cert)
    for store_type, suffix in (("PKCS12", "p12"), ("JKS", "jks")):
        trust = str(tmp_path / f"trust.{suffix}")
        _keytool(
            *("-importcert", "-alias", "ca", "-file", cert),
            *("-storetype", store_type, "-keystore", trust),
        )
    return tmp_path


def _java(trust: Path, key: Path) -> dict[str, str]:
    return SERVERS | {
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(key),
        "ssl.keystore.password": PASSWORD,
    }


def test_keytools_pkcs12_is_read(stores: Path) -> None:
    """The certificate that keytool exports is the one that is found; a client can be made of it."""
    config = to_librdkafka("source", _java(stores / "trust.p12", stores / "key.p12"))
    exported = load_pem_x509_certificates((stores / "cert.pem").read_bytes())
    assert load_pem_x509_certificates(str(config["ssl.ca.pem"]).encode()) == exported
    assert load_pem_x509_certificates(str(config["ssl.certificate.pem"]).encode()) == exported
    key = load_pem_private_key(str(config["ssl.key.pem"]).encode(), None)
    assert key.public_key() == exported[0].public_key()
    assert make_admin("source", config, 1).client is not None
    assert to_librdkafka("source", to_java("source", config)) == config


def test_the_remedy_for_jks_works(stores: Path) -> None:
    """The error's own keytool line makes a file that is read."""
    java = _java(stores / "trust.jks", stores / "key.p12")
    with pytest.raises(ConfigurationError, match=r"Java's own format JKS") as raised:
        to_librdkafka("source", java)
    assert PASSWORD not in str(raised.value)
    line = str(raised.value).partition("(keytool ")[2].partition(")")[0]
    arguments = line.replace("trust.p12", str(stores / "converted.p12")).split()
    _keytool(*arguments, "-deststorepass", PASSWORD)
    config = to_librdkafka("source", _java(stores / "converted.p12", stores / "key.p12"))
    assert "BEGIN CERTIFICATE" in str(config["ssl.ca.pem"])
