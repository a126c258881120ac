"""Certificates and keys as PEM text: with line breaks for OpenSSL, and as PKCS#8 for Java.

Java's client takes a PEM without line breaks (KIP-651), as a properties file with continuations
gives it; OpenSSL, so librdkafka, does not. ``librdkafka`` and ``java`` call this.
"""

import re
import textwrap

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError, as_text

_BLOCK = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=label)-----", re.DOTALL
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LINE = 64
"""Characters of a line (RFC 7468, section 2)."""
_TEXTS = {
    "ssl.ca.pem": False,
    "https.ca.pem": False,
    "ssl.certificate.pem": False,
    "ssl.key.pem": True,
}
"""librdkafka's properties of a PEM text; whether it is a private key."""
_JAVA_READS = ("-----BEGIN PRIVATE KEY-----",)


class PemError(ValueError):
    """A text is not PEM; the message shows nothing of it."""


def with_lines(text: str) -> str:
    r"""Return the blocks of a PEM text with their line breaks; what stands around them is dropped.

    Blanks and a literal ``\n`` may stand for line breaks.

    Raises:
        PemError: There is no whole block, or one is not base64.
    """
    text = text.replace("\\n", "\n").replace("\\r", "")
    blocks = [_with_lines(match["label"], match["body"]) for match in _BLOCK.finditer(text)]
    if not blocks or text.count("-----BEGIN ") != len(blocks):
        raise PemError(
            "is not a whole PEM text, from BEGIN to END; in a properties file each line of it but "
            "the last ends in a backslash"
        )
    return "".join(blocks)


def translate_pem_texts(config: Config) -> None:
    """Give the PEM texts of a configuration their line breaks, in place.

    Raises:
        PropertyError: A text is not PEM, or a certificate stands in the place of a key.
    """
    for name, is_key in _TEXTS.items():
        if not config.get(name):
            config.pop(name, None)
            continue
        try:
            text = with_lines(as_text(config.pop(name)))
        except PemError as error:
            raise PropertyError(name, str(error)) from None
        if ("PRIVATE KEY-----" in text) is not is_key:
            wanted = "a private key alone" if is_key else "certificates alone"
            raise PropertyError(name, f"holds another kind of PEM; give {wanted}")
        config[name] = text


def private_key_for_java(text: str, password: str | None) -> str:
    """Return a private key as Java's client reads it: PKCS#8, here without encryption.

    Kafka's ``DefaultSslEngineFactory`` reads no PKCS#1 (``BEGIN RSA PRIVATE KEY``).

    Raises:
        PemError: It is not a private key, or the password does not open it.
    """
    if not password and text.startswith(_JAVA_READS):
        return text
    try:
        key = load_pem_private_key(text.encode(), password.encode() if password else None)
    except (ValueError, TypeError) as error:
        # The library's message may tell about the key.
        raise PemError(
            f"can't be read as a private key ({type(error).__name__}); check ssl.key.password"
        ) from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _with_lines(label: str, body: str) -> str:
    # The two headers of an encrypted PKCS#1 key (RFC 1421) end with an empty line.
    headers, separator, data = body.strip().rpartition("\n\n")
    if not separator and ":" in data:
        raise PemError("has headers (Proc-Type) without line breaks; convert the key to PKCS#8")
    data = re.sub(r"\s+", "", data)
    if not _BASE64.fullmatch(data):
        raise PemError(f"has a {label} that is not base64; paste it again")
    lines = [f"-----BEGIN {label}-----"]
    lines += [headers, ""] if separator else []
    lines += [*textwrap.wrap(data, _LINE), f"-----END {label}-----", ""]
    return "\n".join(lines)
