"""What an Airflow ``kafka`` connection holds, as Kafka's Java client takes it.

The keys differ from librdkafka's for SASL and for keys and certificates in PEM (KIP-651).
"""

from collections.abc import Mapping
from pathlib import Path

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, admin_config

_SAME = (
    BOOTSTRAP_SERVERS,
    "client.id",
    "client.dns.lookup",
    "sasl.kerberos.service.name",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
)
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_TRANSLATED = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.key.location",
        "ssl.key.pem",
        "ssl.endpoint.identification.algorithm",
    }
)
_SECURITY = ("sasl.", "ssl.", "oauth", "enable.ssl.", "enable.sasl.")


def java_properties(cluster: str, extra: Mapping[str, object]) -> dict[str, str]:
    """Return properties of Kafka's Java client for the same cluster and login.

    Files of keys and certificates are read here, so that they need not be where Spark runs.

    Args:
        cluster: What the cluster is called in messages.
        extra: librdkafka properties.

    Raises:
        ConfigurationError: A property that decides about security has no counterpart, or a file
            can't be read.
    """
    given = {key: _text(value) for key, value in admin_config(cluster, extra).items()}
    for key in given:
        if key.startswith(_SECURITY) and key not in _TRANSLATED | set(_SAME):
            raise ConfigurationError(
                f"{cluster}: {key} has no counterpart in Kafka's Java client; give a file of Java "
                f"client properties for this cluster instead"
            )
    properties = {key: given[key] for key in _SAME if key in given}
    if "security.protocol" in given:
        properties["security.protocol"] = given["security.protocol"].upper()
    if "ssl.endpoint.identification.algorithm" in given:
        named = given["ssl.endpoint.identification.algorithm"]
        properties["ssl.endpoint.identification.algorithm"] = "" if named == "none" else named
    return properties | _sasl(cluster, given) | _pem(cluster, given)


def format_properties(properties: Mapping[str, str]) -> str:
    """Return properties as the text of a file that ``java.util.Properties`` reads."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(properties.items()))


def _sasl(cluster: str, given: Mapping[str, str]) -> dict[str, str]:
    mechanism = given.get("sasl.mechanism") or given.get("sasl.mechanisms")
    if not mechanism or not given.get("security.protocol", "").upper().startswith("SASL"):
        return {}
    module = _LOGIN_MODULES.get(mechanism.upper())
    if module is None:
        raise ConfigurationError(
            f"{cluster}: the login by {mechanism} can't be handed on to Spark; give a file of Java "
            f"client properties for this cluster instead"
        )
    user, password = (_quoted(given.get(f"sasl.{each}", "")) for each in ("username", "password"))
    return {
        "sasl.mechanism": mechanism.upper(),
        "sasl.jaas.config": f"{module} required username={user} password={password};",
    }


def _pem(cluster: str, given: Mapping[str, str]) -> dict[str, str]:
    authority = _content(cluster, given, "ssl.ca")
    certificate, key = (_content(cluster, given, f"ssl.{each}") for each in ("certificate", "key"))
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority}
    own = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
    }
    stored = {"ssl.keystore.type": "PKCS12"} if "ssl.keystore.location" in given else {}
    return (trust if authority else {}) | (own if certificate and key else stored)


def _content(cluster: str, given: Mapping[str, str], name: str) -> str:
    path = given.get(f"{name}.location")
    if not path or f"{name}.pem" in given:
        return given.get(f"{name}.pem", "")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{cluster}: {name}.location is {path}, which can't be read here as PEM "
            f"({type(error).__name__}); give one file, or {name}.pem"
        ) from error


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    # JAAS reads a string as Java's StreamTokenizer does.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    text = "".join(each if " " <= each <= "~" else _unicode(each) for each in text)
    return f"\\{text}" if text.startswith(" ") else text


def _unicode(letter: str) -> str:
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
