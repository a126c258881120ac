"""Truststores and keystores in files: PEM, PKCS#12, JKS."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from tests.unit.kafka.client_properties.material import SECRET, material


@pytest.fixture
def keystore(tmp_path: Path) -> str:
    # Java calls PKCS#12 files so too, since version 9.
    path = tmp_path / "me.jks"
    path.write_bytes(material().keystore(SECRET))
    return str(path)


def test_a_keystore_is_read(keystore: str) -> None:
    """Key and certificate come out as PEM; its name does not decide what a file is."""
    config = to_librdkafka(
        "source",
        {
            "ssl.keystore.location": keystore,
            "ssl.keystore.password": SECRET,
            "ssl.keystore.type": "JKS",
            "ssl.key.password": SECRET,
        },
    )
    assert config == {
        "ssl.certificate.pem": material().cert_pem,
        "ssl.key.pem": material().key_pem,
    }


def test_a_truststore_is_read(tmp_path: Path) -> None:
    """The certificates become the text that librdkafka verifies with."""
    path = tmp_path / "trust.p12"
    path.write_bytes(material().truststore(SECRET))
    java = {"ssl.truststore.location": str(path), "ssl.truststore.password": SECRET}
    assert to_librdkafka("source", java) == {"ssl.ca.pem": material().cert_pem}


def test_pem_files_are_left_to_librdkafka(tmp_path: Path) -> None:
    """KIP-651: one file holds the chain and the key; a truststore holds certificates."""
    path = tmp_path / "me"
    path.write_text(material().cert_pem + material().key_pem)
    java = {
        "ssl.truststore.location": str(path),
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": str(path),
        "ssl.keystore.type": "PEM",
    }
    assert to_librdkafka("source", java) == {
        "ssl.ca.location": str(path),
        "ssl.certificate.location": str(path),
        "ssl.key.location": str(path),
    }


@pytest.mark.parametrize("password", [None, "wrong"])
@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_password_that_does_not_open_it(keystore: str, store: str, password: str | None) -> None:
    """The error names file and property, and shows no password."""
    java = {f"ssl.{store}.location": keystore}
    if password:
        java[f"ssl.{store}.password"] = password
    with pytest.raises(ConfigurationError, match=f"check ssl.{store}.password") as raised:
        to_librdkafka("source", java)
    assert raised.value.fields["setting"] == f"ssl.{store}.location"
    assert "wrong" not in str(raised.value)


@pytest.mark.parametrize("magic", [b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"])
def test_javas_own_format_is_named_with_the_remedy(tmp_path: Path, magic: bytes) -> None:
    """No library here reads JKS; keytool converts it."""
    path = tmp_path / "old.jks"
    path.write_bytes(magic + SECRET.encode())
    with pytest.raises(ConfigurationError) as raised:
        to_librdkafka("source", {"ssl.truststore.location": str(path)})
    remedy = f"-srckeystore {path} -destkeystore old.p12 -deststoretype PKCS12"
    assert remedy in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_file_that_is_missing_and_one_that_is_empty_of_it(tmp_path: Path, keystore: str) -> None:
    """Each error names its file; several come at once."""
    path = tmp_path / "trust.p12"
    path.write_bytes(material().truststore(SECRET))
    java = {"ssl.keystore.location": str(path), "ssl.keystore.password": SECRET}
    with pytest.raises(ConfigurationError, match="holds no private key"):
        to_librdkafka("source", java)
    java = {"ssl.truststore.location": keystore, "ssl.truststore.password": SECRET}
    with pytest.raises(ConfigurationError, match="holds no certificate without a key"):
        to_librdkafka("source", java)
    with pytest.raises(ConfigurationError, match="/nowhere, which can't be read: No such file"):
        to_librdkafka("source", {"ssl.keystore.location": "/nowhere"})


def test_librdkafkas_own_certificates_and_keys_win(keystore: str) -> None:
    """Where both are given, the Java files are not even read."""
    own = {"ssl.ca.location": "/ca.pem", "ssl.key.pem": material().key_pem}
    java = {"ssl.truststore.location": "/nowhere", "ssl.keystore.location": keystore}
    assert to_librdkafka("source", java | own) == own
