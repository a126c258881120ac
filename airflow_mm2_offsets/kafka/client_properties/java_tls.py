"""The keys, certificates and checks of Kafka's Java client for librdkafka's; ``java`` calls it."""

from collections.abc import Mapping
from pathlib import Path

from airflow_mm2_offsets.kafka.client_properties.pem import PemError, private_key_for_java
from airflow_mm2_offsets.kafka.client_properties.problem import GIVE_JAVA_FILE, PropertyError
from airflow_mm2_offsets.kafka.client_properties.stores import read_store
from airflow_mm2_offsets.kafka.client_properties.tls import (
    CIPHERS,
    HOST_NAME_CHECK,
    suites_for_java,
)


def tls_properties(config: Mapping[str, str]) -> dict[str, str]:
    """Return what Java's client needs for the same TLS; certificates and keys as texts (KIP-651).

    Raises:
        PropertyError: A file can't be read, or a cipher suite has no counterpart.
    """
    properties = _trust(config) | _identity(config)
    if (algorithm := config.get(HOST_NAME_CHECK)) is not None:
        properties[HOST_NAME_CHECK] = "" if algorithm.lower() == "none" else algorithm
    if suites := config.get(CIPHERS):
        names = suites_for_java(suites)
        if names is None:
            raise PropertyError(
                CIPHERS,
                f"is {suites}, which has a suite without a known name in Java; {GIVE_JAVA_FILE}",
            )
        properties[CIPHERS] = names
    return properties


def _trust(config: Mapping[str, str]) -> dict[str, str]:
    ca = _pem(config, "ssl.ca")
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca} if ca else {}


def _identity(config: Mapping[str, str]) -> dict[str, str]:
    chain, key = _pem(config, "ssl.certificate"), _pem(config, "ssl.key")
    location = config.get("ssl.keystore.location")
    if location and not key:
        store = read_store("ssl.keystore.location", location, config.get("ssl.keystore.password"))
        chain, key = (store.chain, store.key or "") if store else ("", "")
    elif key:
        try:
            key = private_key_for_java(key, config.get("ssl.key.password"))
        except PemError as error:
            raise PropertyError("ssl.key.pem", str(error)) from None
    if not chain or not key:
        return {}
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": key,
    }


def _pem(config: Mapping[str, str], name: str) -> str:
    path = config.get(f"{name}.location")
    if not path or path == "probe" or f"{name}.pem" in config:
        return config.get(f"{name}.pem", "")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        # A decoding error carries the whole file, which may be a private key.
        raise PropertyError(
            f"{name}.location",
            f"is {path}, which can't be read here as PEM ({type(error).__name__}); give a file "
            f"that can be read here, or its text as {name}.pem",
        ) from None
