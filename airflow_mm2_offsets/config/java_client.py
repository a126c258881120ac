"""Java's Kafka client properties, as librdkafka wants them.

Only what has a plain counterpart is translated or refused; librdkafka judges the rest itself.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath

from airflow_mm2_offsets.errors import ConfigurationError

_JAAS = re.compile(r"\s*(?P<module>[\w.]+)\s+required\b(?P<options>.*);\s*", re.DOTALL)
_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'([^']*)'|([^\s;"']+))""")
_PEM_SUFFIXES = frozenset({".pem", ".crt", ".cer", ".cert"})
_RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_NO_COUNTERPART = frozenset({"key.deserializer", "value.deserializer"})
"""What says nothing to a client that hands on bytes."""


def to_librdkafka(side: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return ``properties`` under librdkafka's names.

    Args:
        side: ``source`` or ``target``, for messages.
        properties: Of either kind.

    Raises:
        ConfigurationError: One has no counterpart; its value, which may be a secret, is not shown.
    """
    config = {_RENAMED.get(key, key): value for key, value in properties.items()}
    for key in _NO_COUNTERPART:
        config.pop(key, None)
    _translate_login(side, config)
    _translate_truststore(side, config)
    _translate_keystore(side, config)
    if config.get("ssl.endpoint.identification.algorithm") == "":
        config["ssl.endpoint.identification.algorithm"] = "none"
    return config


def _translate_login(side: str, config: dict[str, str]) -> None:
    jaas = config.pop("sasl.jaas.config", None)
    if jaas is None:
        return
    place = f"{side}: sasl.jaas.config"
    match = _JAAS.fullmatch(jaas)
    if match is None or _OPTION.sub("", match["options"]).strip():
        raise ConfigurationError(
            f'{place} is not of the form \'module required username="..." password="...";\'; '
            f"correct it, or give sasl.mechanism, sasl.username and sasl.password in its stead"
        )
    module = match["module"].rpartition(".")[2]
    options = {
        name: re.sub(r"\\(.)", r"\1", double) if double else single or bare
        for name, double, single, bare in _OPTION.findall(match["options"])
    }
    if module not in {"PlainLoginModule", "ScramLoginModule"}:
        raise ConfigurationError(
            f"{place} names {module}, which is Java's; give librdkafka's properties in its stead: "
            f"sasl.kerberos.* for Kerberos, sasl.oauthbearer.* for OAuth"
        )
    if lacking := {"username", "password"} - set(options):
        raise ConfigurationError(f"{place} lacks {' and '.join(sorted(lacking))}; add it")
    if module == "PlainLoginModule":
        config.setdefault("sasl.mechanism", "PLAIN")
    elif "sasl.mechanism" not in config and "sasl.mechanisms" not in config:
        raise ConfigurationError(
            f"{side}: sasl.mechanism is missing; give SCRAM-SHA-256 or SCRAM-SHA-512, as "
            f"sasl.jaas.config names {module}"
        )
    config |= {"sasl.username": options["username"], "sasl.password": options["password"]}


def _translate_truststore(side: str, config: dict[str, str]) -> None:
    kind = config.pop("ssl.truststore.type", "")
    location = config.pop("ssl.truststore.location", None)
    config.pop("ssl.truststore.password", None)
    if location is None:
        return
    if not _is_pem(location, kind):
        raise ConfigurationError(
            f"{side}: ssl.truststore.location is {location}, a Java keystore; export its "
            f"certificates (keytool -list -rfc -keystore {location}) and give that PEM file as "
            f"ssl.ca.location"
        )
    config["ssl.ca.location"] = location


def _translate_keystore(side: str, config: dict[str, str]) -> None:
    kind = config.pop("ssl.keystore.type", "")
    location = config.get("ssl.keystore.location")
    if location is None:
        return
    if _is_pem(location, kind):
        del config["ssl.keystore.location"]
        config |= {"ssl.certificate.location": location, "ssl.key.location": location}
    elif kind.upper() == "JKS" or PurePath(location).suffix == ".jks":
        raise ConfigurationError(
            f"{side}: ssl.keystore.location is {location}, a JKS keystore; convert it to PKCS#12 "
            f"(keytool -importkeystore -deststoretype pkcs12) and give that file"
        )


def _is_pem(location: str, kind: str) -> bool:
    return kind.upper() == "PEM" or (not kind and PurePath(location).suffix in _PEM_SUFFIXES)
