"""Java's truststores and keystores: read where they are PEM or PKCS#12, named where they are JKS.

``librdkafka`` translates a Java client's stores with it; ``java_tls`` and ``oauth`` read single
files.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12KeyAndCertificates,
    load_pkcs12,
)

from airflow_mm2_offsets.kafka.advice import uses_tls
from airflow_mm2_offsets.kafka.client_properties.problem import (
    Config,
    PropertyError,
    as_text,
    take,
)

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How files of Java's own formats JKS and JCEKS begin."""
_PEM_MARK = b"-----BEGIN "
_TRUST = ("ssl.ca.location", "ssl.ca.pem", "ssl.truststore.location")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keystore:
    """The key and the certificates of a PKCS#12 file, as PEM."""

    key: str | None = field(repr=False)
    """PKCS#8 without encryption."""
    chain: str
    """The certificate of the key, and those of its issuers."""
    trusted: str
    """Certificates without a key."""


class _StoreFile(NamedTuple):
    setting: str
    """The property that names the file."""
    location: str
    pkcs12: Keystore | None
    """Its content; None: it is PEM, which librdkafka reads itself."""


def check_trust(config: Config) -> None:
    """Refuse empty CA certificates, which librdkafka takes for none: it would trust the system's.

    Java refuses them, too (``DefaultSslEngineFactory.createTruststore``).

    Raises:
        PropertyError: All properties that say which CAs are trusted are empty.
    """
    trust = {name: config[name] for name in _TRUST if name in config}
    if trust and not any(map(as_text, trust.values())) and uses_tls(config):
        raise PropertyError(
            next(iter(trust)),
            "is empty, so any CA of this system would be trusted; give your CA's file or text, or "
            "remove the property",
        )


def translate_stores(config: Config) -> None:
    """Replace a Java truststore and keystore, in place, by what librdkafka reads.

    Certificates and keys that are given under librdkafka's names take precedence.

    The content decides about the format, as in Java: since Java 9 a file called ``.jks`` is
    PKCS#12 unless somebody asked for JKS.

    Raises:
        PropertyError: A file can't be read, its password does not open it, or it is JKS.
    """
    _translate_truststore(config)
    _translate_keystore(config)


def read_store(setting: str, path: str, password: str | None) -> Keystore | None:
    """Return a PKCS#12 file; None if the file is PEM, which librdkafka reads itself.

    Raises:
        PropertyError: See ``translate_stores``; ``setting`` is the property that names the file.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PropertyError(
            setting, f"is {path}, which can't be read: {error.strerror}; check path and permissions"
        ) from None
    if content.startswith(_JKS_MAGIC):
        converted = Path(path).with_suffix(".p12").name
        raise PropertyError(
            setting,
            f"is {path}, a keystore in Java's own format JKS, which only Java reads; convert it "
            f"(keytool -importkeystore -srckeystore {path} -destkeystore {converted} "
            f"-deststoretype PKCS12) and give {converted}",
        )
    if _PEM_MARK in content:
        return None
    try:
        store = load_pkcs12(content, password.encode() if password is not None else None)
    except ValueError:
        # The library's message may tell about the password.
        problem = "its password does not open it" if password else "its password is missing"
        raise PropertyError(
            setting,
            f"is {path}, which is neither PEM nor can be opened as PKCS#12: the file is damaged "
            f"or {problem}; check {setting.replace('location', 'password')}",
        ) from None
    return _as_pem(store)


def _as_pem(store: PKCS12KeyAndCertificates) -> Keystore:
    own = [store.cert] if store.cert else []
    own_pem, others = (
        "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in certificates)
        for certificates in (own, store.additional_certs)
    )
    key = store.key and store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Keystore(
        key=key.decode() if key else None,
        chain=own_pem + others,
        trusted=others,
    )


def _translate_truststore(config: Config) -> None:
    file = _take_store(config, "truststore", unless=("ssl.ca.location", "ssl.ca.pem"))
    if file is None:
        return
    if file.pkcs12 is None:
        config["ssl.ca.location"] = file.location
    elif file.pkcs12.trusted:
        config["ssl.ca.pem"] = file.pkcs12.trusted
    else:
        problem = f"is {file.location}, which holds no certificate without a key"
        raise PropertyError(file.setting, problem)


def _translate_keystore(config: Config) -> None:
    file = _take_store(config, "keystore", unless=("ssl.key.location", "ssl.key.pem"))
    if file is None:
        return
    if file.pkcs12 is None:
        config |= {"ssl.certificate.location": file.location, "ssl.key.location": file.location}
    elif file.pkcs12.key:
        config |= {"ssl.certificate.pem": file.pkcs12.chain, "ssl.key.pem": file.pkcs12.key}
        # It opened the key in the file; the text is without encryption.
        config.pop("ssl.key.password", None)
    else:
        raise PropertyError(file.setting, f"is {file.location}, which holds no private key")


def _take_store(config: Config, kind: str, *, unless: Collection[str]) -> _StoreFile | None:
    """Take a store's properties out of a configuration, and read the store.

    None if there is no store, or if one of the properties ``unless`` is there: it takes precedence.
    """
    setting = f"ssl.{kind}.location"
    location, password = take(config, setting), take(config, f"ssl.{kind}.password")
    config.pop(f"ssl.{kind}.type", None)
    if location is None or any(name in config for name in unless):
        return None
    return _StoreFile(setting, location, read_store(setting, location, password))
