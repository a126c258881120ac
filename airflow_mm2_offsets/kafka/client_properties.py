"""Kafka client properties: from Java's names and values to librdkafka's, and back.

``config`` translates to librdkafka what users bring from a Java client's file. The reconcile
operator translates a cluster's properties to Java, for the consumer inside its Spark job.
Names and values differ for SASL, and for keys and certificates in PEM (KIP-651). ``cluster`` is the
cluster's name in error messages.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

import javaproperties

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, admin_config

_PEM_TEXT: Mapping[str, str] = {
    "ssl.ca": "ssl.truststore.certificates",
    "ssl.certificate": "ssl.keystore.certificate.chain",
    "ssl.key": "ssl.keystore.key",
}
"""Java's property for a PEM text; librdkafka adds ``.pem`` for a text, ``.location`` for a file."""
_JAVA_TO_LIBRDKAFKA: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    **{java: f"{name}.pem" for name, java in _PEM_TEXT.items()},
}
_JAVA_ONLY = frozenset({"key.deserializer", "value.deserializer"})
"""Dropped: librdkafka returns bytes."""
_LOGIN_MODULES: Mapping[str, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""Java's login module by SASL mechanism, for logins by user and password."""
_LOGIN_OPTIONS = ("username", "password")
"""A login module's options; librdkafka's properties are ``sasl.username``, ``sasl.password``."""
_HOST_NAME_CHECK = "ssl.endpoint.identification.algorithm"
"""Switched off by an empty text in Java, by ``none`` in librdkafka."""

_SAME_IN_BOTH = frozenset(
    {
        BOOTSTRAP_SERVERS,
        "client.id",
        "client.dns.lookup",
        "sasl.kerberos.service.name",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)
_SECURITY_PREFIXES = ("sasl.", "ssl.", "oauth", "enable.ssl.", "enable.sasl.")
_TRANSLATED_TO_JAVA = {
    *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", _HOST_NAME_CHECK),
    *(f"{name}.{form}" for name in _PEM_TEXT for form in ("location", "pem")),
}

_JAAS = re.compile(r"\s*(?P<module>[\w.]+)\s+required\b(?P<options>.*);\s*", re.DOTALL)
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'([^']*)'|([^\s;"']+))""")
_PEM_SUFFIXES = frozenset({".pem", ".crt", ".cer", ".cert"})


def to_librdkafka(cluster: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties under librdkafka's names; their names may be Java's, librdkafka's, or both.

    Raises:
        ConfigurationError: A property has no counterpart. The message does not show its value,
            which may be a secret.
    """
    config = {
        _JAVA_TO_LIBRDKAFKA.get(key, key): value
        for key, value in properties.items()
        if key not in _JAVA_ONLY
    }
    _login_from_java(cluster, config)
    _truststore_from_java(cluster, config)
    _keystore_from_java(cluster, config)
    if config.get(_HOST_NAME_CHECK) == "":
        config[_HOST_NAME_CHECK] = "none"
    return config


def to_java(cluster: str, librdkafka_config: Mapping[str, object]) -> dict[str, str]:
    """Return properties of Kafka's Java client for the same cluster and login.

    Files of keys and certificates are read here: Spark may run where they do not exist.
    Properties that do not decide about address or login are left out.

    Raises:
        ConfigurationError: A property that decides about security has no counterpart, or a file
            can't be read.
    """
    config = {key: _text(value) for key, value in admin_config(cluster, librdkafka_config).items()}
    for key in config:
        if key.startswith(_SECURITY_PREFIXES) and key not in _TRANSLATED_TO_JAVA | _SAME_IN_BOTH:
            raise ConfigurationError(
                f"{cluster}: {key} has no counterpart in Kafka's Java client; give a file of Java "
                f"client properties for this cluster instead"
            )
    properties = {key: value for key, value in config.items() if key in _SAME_IN_BOTH}
    if "security.protocol" in config:
        properties["security.protocol"] = config["security.protocol"].upper()
    if (algorithm := config.get(_HOST_NAME_CHECK)) is not None:
        properties[_HOST_NAME_CHECK] = "" if algorithm == "none" else algorithm
    return properties | _login_to_java(cluster, config) | _pem_to_java(cluster, config)


def format_properties(properties: Mapping[str, str]) -> str:
    """Return properties as the text of a file that ``java.util.Properties`` reads."""
    return javaproperties.dumps(properties, timestamp=None, sort_keys=True)


def _login_from_java(cluster: str, config: dict[str, str]) -> None:
    jaas = config.pop("sasl.jaas.config", None)
    if jaas is None:
        return
    name = f"{cluster}: sasl.jaas.config"
    module, options = _parse_jaas(name, jaas)
    mechanisms = [key for key, full in _LOGIN_MODULES.items() if full.endswith(f".{module}")]
    if not mechanisms:
        raise ConfigurationError(
            f"{name} names {module}, which only Java has; give librdkafka's properties instead: "
            f"sasl.kerberos.* for Kerberos, sasl.oauthbearer.* for OAuth"
        )
    if missing := [option for option in _LOGIN_OPTIONS if option not in options]:
        raise ConfigurationError(f"{name} lacks {' and '.join(missing)}; add it")
    if not config.keys() & {"sasl.mechanism", "sasl.mechanisms"}:
        if len(mechanisms) > 1:
            raise ConfigurationError(
                f"{cluster}: sasl.mechanism is missing; sasl.jaas.config names {module}: give "
                f"{' or '.join(mechanisms)}"
            )
        config["sasl.mechanism"] = mechanisms[0]
    config |= {f"sasl.{option}": options[option] for option in _LOGIN_OPTIONS}


def _parse_jaas(name: str, jaas: str) -> tuple[str, dict[str, str]]:
    """Return the login module, without its package, and its options."""
    match = _JAAS.fullmatch(jaas)
    if match is None or _JAAS_OPTION.sub("", match["options"]).strip():
        raise ConfigurationError(
            f'{name} does not have the form \'module required username="..." password="...";\'; '
            f"correct it, or give sasl.mechanism, sasl.username and sasl.password instead"
        )
    options = {
        option: re.sub(r"\\(.)", r"\1", double) if double else single or bare
        for option, double, single, bare in _JAAS_OPTION.findall(match["options"])
    }
    return match["module"].rpartition(".")[2], options


def _login_to_java(cluster: str, config: Mapping[str, str]) -> dict[str, str]:
    mechanism = (config.get("sasl.mechanism") or config.get("sasl.mechanisms") or "").upper()
    if not mechanism or not config.get("security.protocol", "").upper().startswith("SASL"):
        return {}
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        raise ConfigurationError(
            f"{cluster}: the login by {mechanism} can't be translated for Spark's Java client; "
            f"give a file of Java client properties for this cluster instead"
        )
    user, password = (_jaas_quoted(config.get(f"sasl.{key}", "")) for key in _LOGIN_OPTIONS)
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{module} required username={user} password={password};",
    }


def _truststore_from_java(cluster: str, config: dict[str, str]) -> None:
    store_type = config.pop("ssl.truststore.type", "")
    location = config.pop("ssl.truststore.location", None)
    config.pop("ssl.truststore.password", None)
    if location is None:
        return
    if not _is_pem(location, store_type):
        raise ConfigurationError(
            f"{cluster}: ssl.truststore.location is {location}, a Java keystore; export its "
            f"certificates (keytool -list -rfc -keystore {location}) and give that PEM file as "
            f"ssl.ca.location"
        )
    config["ssl.ca.location"] = location


def _keystore_from_java(cluster: str, config: dict[str, str]) -> None:
    store_type = config.pop("ssl.keystore.type", "")
    location = config.get("ssl.keystore.location")
    if location is None:
        return
    if _is_pem(location, store_type):
        del config["ssl.keystore.location"]
        config |= {"ssl.certificate.location": location, "ssl.key.location": location}
    elif store_type.upper() == "JKS" or PurePath(location).suffix == ".jks":
        raise ConfigurationError(
            f"{cluster}: ssl.keystore.location is {location}, a JKS keystore; convert it to "
            f"PKCS#12 (keytool -importkeystore -deststoretype pkcs12) and give that file"
        )


def _is_pem(location: str, store_type: str) -> bool:
    return store_type.upper() == "PEM" or (
        not store_type and PurePath(location).suffix in _PEM_SUFFIXES
    )


def _pem_to_java(cluster: str, config: Mapping[str, str]) -> dict[str, str]:
    ca, certificate, key = (_pem_text(cluster, config, name) for name in _PEM_TEXT)
    truststore = {"ssl.truststore.type": "PEM", _PEM_TEXT["ssl.ca"]: ca} if ca else {}
    if certificate and key:
        return truststore | {
            "ssl.keystore.type": "PEM",
            _PEM_TEXT["ssl.certificate"]: certificate,
            _PEM_TEXT["ssl.key"]: key,
        }
    keystore = {"ssl.keystore.type": "PKCS12"} if "ssl.keystore.location" in config else {}
    return truststore | keystore


def _pem_text(cluster: str, config: Mapping[str, str], name: str) -> str:
    path = config.get(f"{name}.location")
    if not path or f"{name}.pem" in config:
        return config.get(f"{name}.pem", "")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        # A decoding error carries the whole file, which may be a private key.
        raise ConfigurationError(
            f"{cluster}: {name}.location is {path}, which can't be read here as PEM "
            f"({type(error).__name__}); give a file that can be read here, or its text as "
            f"{name}.pem"
        ) from None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _jaas_quoted(text: str) -> str:
    # JAAS reads a string as Java's StreamTokenizer does.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
