"""Security of a cluster in Strimzi's KafkaMirrorMaker2: ``tls`` and ``authentication``.

Rules: ``KafkaMirrorMaker2Connectors.addClusterToMirrorMaker2ConnectorConfig`` of Strimzi's
operator, and Strimzi's "API reference" for ``oauth``, which v1 no longer has.
"""

from collections.abc import Mapping
from typing import Any

from airflow_mm2_offsets.config.entries import Entries, Entry, flatten
from airflow_mm2_offsets.errors import ConfigurationError

_MECHANISMS = {
    "plain": "PLAIN",
    "scram-sha-256": "SCRAM-SHA-256",
    "scram-sha-512": "SCRAM-SHA-512",
    "oauth": "OAUTHBEARER",
}


def login_properties(cluster: Mapping[str, Any], place: str) -> Entries:
    """Return the client properties of a cluster's security; values of secrets are absent.

    Raises:
        ConfigurationError: ``authentication.type`` is not one of Strimzi's.
    """
    authentication = cluster.get("authentication") or {}
    kind = authentication.get("type")
    tls = cluster.get("tls")
    sasl = kind in _MECHANISMS or (kind == "custom" and authentication.get("sasl") is True)
    protocol = f"SASL_{'PLAINTEXT' if tls is None else 'SSL'}"
    if not sasl:
        protocol = "PLAINTEXT" if tls is None else "SSL"
    properties = {"security.protocol": Entry(value=protocol, origin=place)}
    if tls and (certificates := tls.get("trustedCertificates")):
        names = ", ".join(str(each.get("secretName")) for each in certificates)
        reason = f"tls.trustedCertificates: it is in the secret {names} of Kubernetes"
        properties["ssl.ca.location"] = Entry(value="", origin=place, absent=reason)
    return properties | _authentication(kind, authentication, place)


def _authentication(kind: object, fields: Mapping[str, Any], place: str) -> Entries:
    if kind is None:
        return {}
    if kind == "tls":
        pair = fields.get("certificateAndKey") or {}
        return {
            f"ssl.{name}.location": _secret(pair, name, place) for name in ("certificate", "key")
        }
    if kind == "custom":
        # The operator sets the protocol itself, by ``tls`` and ``sasl``.
        return {
            name: Entry(value=value, origin=f"authentication.config.{name} of {place}")
            for name, value in flatten(fields.get("config") or {})
            if name != "security.protocol"
        }
    if kind not in _MECHANISMS:
        raise ConfigurationError(
            f"authentication.type is {kind!r}; give tls, custom, {', '.join(_MECHANISMS)}",
            setting=place,
        )
    login = _oauth(fields, place) if kind == "oauth" else _password(fields, place)
    return {"sasl.mechanism": Entry(value=_MECHANISMS[kind], origin=place), **login}


def _password(fields: Mapping[str, Any], place: str) -> Entries:
    return {
        "sasl.username": Entry(
            value=str(fields.get("username", "")), origin=f"authentication.username of {place}"
        ),
        "sasl.password": _secret(fields.get("passwordSecret") or {}, "password", place),
    }


def _oauth(fields: Mapping[str, Any], place: str) -> Entries:
    texts = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": fields.get("clientId"),
        "sasl.oauthbearer.token.endpoint.url": fields.get("tokenEndpointUri"),
        "sasl.oauthbearer.scope": fields.get("scope"),
    }
    properties = {
        name: Entry(value=str(value), origin=f"authentication of {place}")
        for name, value in texts.items()
        if value is not None
    }
    secret = fields.get("clientSecret") or {}
    properties["sasl.oauthbearer.client.secret"] = _secret(secret, "key", place)
    return properties


def _secret(reference: Mapping[str, Any], field: str, place: str) -> Entry:
    """Return the entry of a value that a secret of Kubernetes has under ``reference[field]``."""
    name, key = reference.get("secretName"), reference.get(field)
    reason = f"it is in the secret {name} of Kubernetes, under {key}"
    return Entry(value="", origin=f"authentication of {place}", absent=reason)
