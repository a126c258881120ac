"""The login of Kafka's Java client for librdkafka's; ``java`` calls it."""

from collections.abc import Mapping
from functools import partial

from airflow_mm2_offsets.kafka.client_properties import kerberos, msk_iam, oauth
from airflow_mm2_offsets.kafka.client_properties.jaas import JAAS_CONFIG, format_jaas
from airflow_mm2_offsets.kafka.client_properties.login import (
    LOGIN_HANDLER,
    OPTIONS,
    PLAIN_MODULE,
    SCRAM,
    SCRAM_MODULE,
)
from airflow_mm2_offsets.kafka.client_properties.problem import GIVE_JAVA_FILE, PropertyError
from airflow_mm2_offsets.kafka.config import Setting

TRANSLATED = frozenset(
    {
        *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
        *(f"sasl.kerberos.{name}" for name in ("keytab", "kinit.cmd", "principal", "service.name")),
        "sasl.kerberos.min.time.before.relogin",
        *("https.ca.location", "https.ca.pem", oauth.METHOD, oauth.CLIENT_ID),
        *(oauth.CLIENT_SECRET, oauth.SCOPE, oauth.URL, oauth.EXTENSIONS, oauth.GRANT),
        *(oauth.METADATA, "sasl.oauthbearer.sub.claim.name"),
    }
)
"""librdkafka's properties that ``login_properties`` reads."""
_MODULES = {"PLAIN": PLAIN_MODULE} | dict.fromkeys(SCRAM, SCRAM_MODULE)
_INSTEAD = f"which can't be translated for Spark's Java client; {GIVE_JAVA_FILE}"
_AIRFLOWS_SIGNER = "_msk_iam_oauth_cb"
"""Airflow's Kafka hook binds a region to this function for brokers of Amazon MSK."""


def login_properties(config: Mapping[str, str], *, callback: Setting | None) -> dict[str, str]:
    """Return the login; empty if the protocol has none.

    Args:
        config: librdkafka's properties as texts.
        callback: The ``oauth_cb``, if there is one.

    Raises:
        PropertyError: The mechanism, or the way to get tokens, has no counterpart.
    """
    mechanism = config.get("sasl.mechanism") or config.get("sasl.mechanisms") or ""
    mechanism = mechanism.upper() or kerberos.MECHANISM
    if not config.get("security.protocol", "").upper().startswith("SASL"):
        return {}
    if module := _MODULES.get(mechanism):
        options = {option: config.get(f"sasl.{option}", "") for option in OPTIONS}
        return {"sasl.mechanism": mechanism, JAAS_CONFIG: format_jaas(module, options)}
    if mechanism == kerberos.MECHANISM:
        return _kerberos(config)
    if mechanism != oauth.MECHANISM:
        raise PropertyError("sasl.mechanism", f"is {mechanism}, {_INSTEAD}")
    if token := _msk_iam_token(callback):
        return _msk_iam(token)
    return _oauth(config, callback)


def _kerberos(config: Mapping[str, str]) -> dict[str, str]:
    options = kerberos.jaas_options(config)
    return {
        "sasl.mechanism": kerberos.MECHANISM,
        "sasl.kerberos.service.name": options.pop("serviceName"),
        JAAS_CONFIG: format_jaas(kerberos.MODULE, options),
    }


def _msk_iam(token: msk_iam.MskIamToken) -> dict[str, str]:
    # The jar aws-msk-iam-auth must be on the class path of the job.
    return {
        "sasl.mechanism": msk_iam.MECHANISM,
        "sasl.client.callback.handler.class": msk_iam.CLIENT_HANDLER,
        JAAS_CONFIG: format_jaas(msk_iam.MODULE, token.jaas_options()),
    }


def _msk_iam_token(callback: Setting | None) -> msk_iam.MskIamToken | None:
    if isinstance(callback, msk_iam.MskIamToken):
        return callback
    if isinstance(callback, partial) and callback.func.__name__ == _AIRFLOWS_SIGNER:
        return msk_iam.MskIamToken(region=callback.args[0])
    return None


def _oauth(config: Mapping[str, str], callback: Setting | None) -> dict[str, str]:
    if callback is not None or config.get(oauth.METHOD, "").lower() != "oidc":
        raise PropertyError("sasl.mechanism", f"is {oauth.MECHANISM} by a callback, {_INSTEAD}")
    for name, default in ((oauth.GRANT, "client_credentials"), (oauth.METADATA, "none")):
        if (value := config.get(name, default)) != default:
            raise PropertyError(name, f"is {value}, {_INSTEAD}")
    try:
        options = oauth.jaas_options(config)
    except (OSError, ValueError) as error:
        raise PropertyError(
            "https.ca.location",
            f"is {config['https.ca.location']}, which can't be read here as PEM "
            f"({type(error).__name__}); give the text as https.ca.pem",
        ) from None
    properties = {
        "sasl.mechanism": oauth.MECHANISM,
        LOGIN_HANDLER: oauth.KAFKA_HANDLER,
        oauth.URL: config.get(oauth.URL, ""),
        JAAS_CONFIG: format_jaas(oauth.MODULE, options),
    }
    claim = "sasl.oauthbearer.sub.claim.name"
    return properties | ({claim: config[claim]} if claim in config else {})
