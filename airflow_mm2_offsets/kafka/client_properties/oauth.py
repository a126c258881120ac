"""OAuth client credentials: Kafka's own options and Strimzi's, as librdkafka's method ``oidc``.

Kafka's are those of its ``OAuthBearerLoginCallbackHandler`` (KIP-768, KIP-1139), Strimzi's those
of its ``JaasClientOauthLoginCallbackHandler``. ``login`` calls this, ``java`` the way back.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from airflow_mm2_offsets.kafka.client_properties.jaas import JAAS_CONFIG
from airflow_mm2_offsets.kafka.client_properties.pem import PemError, with_lines
from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError, take
from airflow_mm2_offsets.kafka.client_properties.stores import read_store

MECHANISM = "OAUTHBEARER"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KAFKA_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
"""In kafka-clients from 3.4 on; 4.0 removed the older name."""
KAFKA_HANDLERS = (
    KAFKA_HANDLER,
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"

METHOD, CLIENT_ID, CLIENT_SECRET, SCOPE, URL, EXTENSIONS, GRANT, METADATA = (
    f"sasl.oauthbearer.{name}"
    for name in (
        *("method", "client.id", "client.secret", "scope", "token.endpoint.url", "extensions"),
        *("grant.type", "metadata.authentication.type"),
    )
)
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
URL_ENCODED = "sasl.oauthbearer.header.urlencode"
_CLAIM = "sasl.oauthbearer.sub.claim.name"
_ASSERTION = "sasl.oauthbearer.assertion."
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_GRANTS = {"DefaultJwtRetriever": "", "ClientCredentialsJwtRetriever": ""} | {
    "JwtBearerJwtRetriever": _JWT_BEARER
}
"""The grant of Kafka's classes that fetch a token; empty: client credentials."""
_EXTENSION = "extension_"
_STRIMZI = {
    "oauth.client.id": CLIENT_ID,
    "oauth.client.secret": CLIENT_SECRET,
    "oauth.scope": SCOPE,
    "oauth.token.endpoint.uri": URL,
}
_STRIMZI_REFUSED = frozenset(
    f"oauth.{name}"
    for name in (
        *("access.token", "access.token.location", "audience", "client.assertion"),
        *("client.assertion.location", "client.assertion.type", "password.grant.password"),
        *("password.grant.username", "refresh.token"),
    )
)
_KAFKA = {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, "scope": SCOPE}


def translate_options(config: Config, options: Mapping[str, str]) -> None:
    """Add librdkafka's properties for the options of an ``OAuthBearerLoginModule``, in place.

    Raises:
        PropertyError: Something is missing, or librdkafka has no counterpart of an option.
    """
    is_strimzi = any(name.startswith("oauth.") for name in options)
    names = _STRIMZI if is_strimzi else _KAFKA
    if is_strimzi:
        _refuse_of_strimzi(options)
    for option, name in names.items():
        if value := options.get(option):
            # librdkafka puts the scope into a form as it is.
            config.setdefault(name, quote(value, safe=":/") if name == SCOPE else value)
    if extensions := [
        f"{name.removeprefix(_EXTENSION)}={value}"
        for name, value in options.items()
        if name.startswith(_EXTENSION)
    ]:
        config.setdefault(EXTENSIONS, ",".join(extensions))
    _translate_ca(config, options, "oauth." if is_strimzi else "")
    _translate_grant(config)
    _check(config)


def drop_unused(config: Config) -> None:
    """Leave out, in place, what Java's file says about tokens and this login does not need."""
    for name in (RETRIEVER, URL_ENCODED):
        config.pop(name, None)
    if config.get(_CLAIM) == "sub":  # the default of both clients
        del config[_CLAIM]
    if config.get(GRANT) != _JWT_BEARER:
        for name in [name for name in config if name.startswith(_ASSERTION)]:
            del config[name]


def jaas_options(config: Mapping[str, str]) -> dict[str, str]:
    """Return Kafka's options of an ``OAuthBearerLoginModule`` for librdkafka's properties."""
    options = {option: config[name] for option, name in _KAFKA.items() if config.get(name)}
    if "scope" in options:
        options["scope"] = unquote(options["scope"])
    for pair in filter(None, config.get(EXTENSIONS, "").split(",")):
        name, _, value = pair.partition("=")
        options[_EXTENSION + name] = value
    ca = config.get("https.ca.pem")
    if not ca and (location := config.get("https.ca.location", "probe")) != "probe":
        ca = Path(location).read_text(encoding="ascii")
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca} if ca else {}
    return options | trust


def _refuse_of_strimzi(options: Mapping[str, str]) -> None:
    refused = [
        name
        for name in options
        if name in _STRIMZI_REFUSED
        or (name.endswith("endpoint.identification.algorithm") and not options[name])
    ]
    if refused:
        raise PropertyError(
            JAAS_CONFIG,
            f"has {', '.join(sorted(refused))}, which librdkafka does not know; give a client "
            f"that logs in by oauth.client.id and oauth.client.secret, or a callback as oauth_cb",
        )


def _translate_ca(config: Config, options: Mapping[str, str], prefix: str) -> None:
    location = options.get(f"{prefix}ssl.truststore.location")
    setting = f"{JAAS_CONFIG}: {prefix}ssl.truststore.location"
    text = options.get(f"{prefix}ssl.truststore.certificates")
    if location:
        store = read_store(setting, location, options.get(f"{prefix}ssl.truststore.password"))
        if store is None:
            config.setdefault("https.ca.location", location)
        else:
            config.setdefault("https.ca.pem", store.trusted)
    elif text:
        try:
            config.setdefault("https.ca.pem", with_lines(text))
        except PemError as error:
            raise PropertyError(
                f"{JAAS_CONFIG}: {prefix}ssl.truststore.certificates", str(error)
            ) from None


def _translate_grant(config: Config) -> None:
    retriever = take(config, RETRIEVER)
    if retriever:
        grant = _GRANTS.get(retriever.rpartition(".")[2])
        if grant is None:
            raise PropertyError(
                RETRIEVER,
                f"is {retriever}, a Java class; give client credentials or a callback as oauth_cb",
            )
        if grant:
            config[GRANT] = grant
    if (take(config, URL_ENCODED) or "").lower() == "true":
        for name in (CLIENT_ID, CLIENT_SECRET):
            if name in config:
                config[name] = quote(str(config[name]), safe="")


def _check(config: Config) -> None:
    url = str(config.get(URL, ""))
    if url.lower().startswith("file:"):
        raise PropertyError(
            URL, "names a file, and librdkafka asks HTTP(S) alone; give a callback as oauth_cb"
        )
    needed = {URL: "sasl.oauthbearer.token.endpoint.url (Strimzi: oauth.token.endpoint.uri)"}
    if config.get(GRANT) != _JWT_BEARER:
        needed |= {
            CLIENT_ID: "clientId (Strimzi: oauth.client.id)",
            CLIENT_SECRET: "clientSecret (Strimzi: oauth.client.secret)",
        }
    if missing := [word for name, word in needed.items() if not config.get(name)]:
        raise PropertyError(
            JAAS_CONFIG, f"logs in by OAuth and lacks {' and '.join(missing)}; add it"
        )
    config[METHOD] = "oidc"
