"""PEM texts: line breaks for OpenSSL, PKCS#8 for Java."""

import textwrap

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.kafka.client_properties.pem import (
    PemError,
    private_key_for_java,
    with_lines,
)
from tests.unit.kafka.client_properties.material import SECRET, material

BODIES = st.text("ABCabc019+/", min_size=1, max_size=200)


@given(
    bodies=st.lists(BODIES, min_size=1, max_size=3), glue=st.sampled_from(["", " ", "\\n", "\r\n"])
)
def test_one_line_is_as_good_as_many(bodies: list[str], glue: str) -> None:
    """However a text lost its line breaks, the blocks come back as OpenSSL writes them."""
    blocks = [
        "\n".join(
            ["-----BEGIN CERTIFICATE-----", *textwrap.wrap(body, 64), "-----END CERTIFICATE-----"]
        )
        for body in bodies
    ]
    text = "\n".join(blocks) + "\n"
    assert with_lines(text.replace("\n", glue)) == text
    assert with_lines(with_lines(text)) == text


def test_a_real_key_and_certificate_survive() -> None:
    """Without its line breaks, OpenSSL reads neither; with them, both are what they were."""
    made = material()
    for text in (made.key_pem, made.cert_pem, made.cert_pem + made.cert_pem):
        assert with_lines(text.replace("\n", "")) == text


def test_the_headers_of_an_encrypted_key_stay() -> None:
    """RFC 1421's headers say how a PKCS#1 key is encrypted, and end with an empty line."""
    head = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n"
    text = f"{head}QUJD\n-----END RSA PRIVATE KEY-----\n"
    assert with_lines(text) == text
    with pytest.raises(PemError, match="convert the key to PKCS#8"):
        with_lines(text.replace("\n", " "))


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "-----BEGIN PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
        f"-----BEGIN PRIVATE KEY-----{SECRET}!-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----",
        f"-----BEGIN A-----QUJD-----END A----------BEGIN B-----{SECRET}",
    ],
)
def test_what_is_not_pem_is_refused_without_it(text: str) -> None:
    """The usual mistake is a paste without continuations; its key line is not shown."""
    with pytest.raises(PemError) as raised:
        with_lines(text)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("password", [None, SECRET])
def test_a_key_for_java_is_pkcs8(password: str | None) -> None:
    """Kafka's PemStore reads ``BEGIN PRIVATE KEY`` alone; older forms are converted."""
    made = material()
    text = made.encrypted_key_pem(password) if password else made.traditional_key_pem
    java = private_key_for_java(text, password)
    assert java.startswith("-----BEGIN PRIVATE KEY-----")
    key = load_pem_private_key(java.encode(), None)
    assert key.private_numbers() == made.private_key.private_numbers()  # type: ignore[union-attr]
    assert private_key_for_java(made.key_pem, None) == made.key_pem


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_key_that_the_password_does_not_open(password: str | None) -> None:
    """The error says what to check, and nothing of the key."""
    with pytest.raises(PemError, match=r"check ssl\.key\.password"):
        private_key_for_java(material().encrypted_key_pem(SECRET), password)
