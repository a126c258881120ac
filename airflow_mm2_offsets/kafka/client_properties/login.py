"""The login of a Java client: ``sasl.jaas.config``, the mechanism, and handlers that are classes.

``librdkafka`` calls ``translate_login``.
"""

from collections.abc import Mapping

from airflow_mm2_offsets.kafka.client_properties import kerberos, msk_iam, oauth
from airflow_mm2_offsets.kafka.client_properties.jaas import (
    JAAS_CONFIG,
    JaasError,
    LoginEntry,
    parse_jaas,
)
from airflow_mm2_offsets.kafka.client_properties.problem import (
    Config,
    PropertyError,
    as_text,
    take,
)
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OPTIONS = ("username", "password")
"""The options of a login by password; librdkafka puts ``sasl.`` before them."""
_MECHANISMS: Mapping[str, tuple[str, ...]] = {
    PLAIN_MODULE: ("PLAIN",),
    SCRAM_MODULE: SCRAM,
    kerberos.MODULE: (kerberos.MECHANISM,),
    oauth.MODULE: (oauth.MECHANISM,),
    msk_iam.MODULE: (msk_iam.MECHANISM, oauth.MECHANISM),
}
"""The mechanisms of each login module."""
LOGIN_HANDLER = "sasl.login.callback.handler.class"
_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_GOOGLE_HANDLER = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
_HANDLERS: Mapping[str, tuple[str, ...]] = {
    LOGIN_HANDLER: (
        *oauth.KAFKA_HANDLERS,
        oauth.STRIMZI_HANDLER,
        msk_iam.LOGIN_HANDLER,
        msk_iam.CLIENT_HANDLER,
        _GOOGLE_HANDLER,
    ),
    _CLIENT_HANDLER: (msk_iam.CLIENT_HANDLER,),
}
"""The classes whose work librdkafka or a callback of ours does."""
_NO_SOURCE = (
    "is OAUTHBEARER, and nothing says where tokens come from; give sasl.jaas.config with client "
    "credentials, librdkafka's sasl.oauthbearer.method=oidc with its properties, or a callback as "
    "oauth_cb"
)


def translate_login(config: Config) -> None:
    """Replace a Java client's login, in place, by librdkafka's properties.

    Raises:
        PropertyError: The JAAS text does not have its form, contradicts the mechanism, or names a
            class that only Java can run; or a name is no word for the shell that runs ``kinit``.
    """
    mechanism = (take(config, "sasl.mechanism") or "").strip().upper()
    mechanism = (take(config, "sasl.mechanisms") or mechanism).strip().upper()
    try:
        _translate(config, mechanism, take(config, JAAS_CONFIG))
    finally:
        oauth.drop_unused(config)
    kerberos.translate_kinit(config)
    kerberos.check_command(config)
    if as_text(config.get("security.protocol", "")).upper().startswith("SASL"):
        _check_mechanism(config)


def _translate(config: Config, mechanism: str, jaas: str | None) -> None:
    handler = _take_handler(config)
    if jaas is None:
        if mechanism:
            config["sasl.mechanism"] = mechanism
        _translate_without_jaas(config, mechanism, handler)
        return
    entry = _parse(jaas)
    module = _known_module(entry.module)
    config["sasl.mechanism"] = mechanism = _mechanism(module, mechanism)
    _translate_options(config, module, mechanism, handler, entry.options)


def _translate_without_jaas(config: Config, mechanism: str, handler: str) -> None:
    is_iam = mechanism == msk_iam.MECHANISM or handler.endswith(
        "IAMOAuthBearerLoginCallbackHandler"
    )
    servers = as_text(config.get(BOOTSTRAP_SERVERS, ""))
    # Airflow's Kafka hook takes IAM for granted there, too.
    is_iam |= mechanism == oauth.MECHANISM and msk_iam.is_msk(servers) and not _has_token(config)
    if is_iam:
        msk_iam.translate_options(config, {})
    elif handler.endswith(oauth.KAFKA_HANDLERS):
        oauth.translate_options(config, {})


def _translate_options(
    config: Config, module: str, mechanism: str, handler: str, options: Mapping[str, str]
) -> None:
    if module in {PLAIN_MODULE, SCRAM_MODULE}:
        _translate_password(config, options)
    elif module == kerberos.MODULE:
        kerberos.translate_options(config, options)
    elif module == msk_iam.MODULE or handler.endswith(msk_iam.LOGIN_HANDLER):
        msk_iam.translate_options(config, options)
    elif handler.endswith(_GOOGLE_HANDLER) or "oauth_cb" in config:
        return
    elif mechanism == oauth.MECHANISM:
        oauth.translate_options(config, options)


def _translate_password(config: Config, options: Mapping[str, str]) -> None:
    if options.get("tokenauth", "").lower() == "true":
        raise PropertyError(
            JAAS_CONFIG,
            "logs in by a delegation token, which librdkafka does not know; give a user",
        )
    if missing := [option for option in OPTIONS if option not in options]:
        raise PropertyError(JAAS_CONFIG, f"lacks {' and '.join(missing)}; add it")
    for option in OPTIONS:
        # Which of two logins was meant is not ours to guess.
        if as_text(config.setdefault(f"sasl.{option}", options[option])) != options[option]:
            raise PropertyError(
                JAAS_CONFIG, f"and sasl.{option} give different logins; remove one of them"
            )


def _parse(jaas: str) -> LoginEntry:
    try:
        return parse_jaas(jaas)
    except JaasError as error:
        raise PropertyError(
            JAAS_CONFIG,
            f"does not have the form 'module required name=\"value\" ...;': {error}; correct it, "
            f"or give sasl.mechanism, sasl.username and sasl.password instead",
        ) from None


def _known_module(name: str) -> str:
    """Return the module that a class is, which may be shaded (``kafkashaded.org.apache...``)."""
    for module in _MECHANISMS:
        if name == module or name.endswith(f".{module}"):
            return module
    if name.endswith(".Krb5LoginModule"):  # every vendor of a JVM has its own
        return kerberos.MODULE
    raise PropertyError(
        JAAS_CONFIG,
        f"names {_class_name(name)}, a login module that only Java can run; give one of "
        f"{', '.join(module.rpartition('.')[2] for module in _MECHANISMS)}, or a callback as "
        f"oauth_cb",
    )


def _mechanism(module: str, mechanism: str) -> str:
    possible, name = _MECHANISMS[module], module.rpartition(".")[2]
    if mechanism in possible:
        return mechanism
    if mechanism:
        problem = f"is {mechanism}, but sasl.jaas.config names {name}"
    elif len(possible) == 1 or module == msk_iam.MODULE:
        return possible[0]
    else:
        problem = f"is missing; sasl.jaas.config names {name}"
    raise PropertyError("sasl.mechanism", f"{problem}: give {' or '.join(possible)}")


def _take_handler(config: Config) -> str:
    """Return the login's callback handler; remove the handlers that are understood."""
    taken = {name: (take(config, name) or "").strip() for name in _HANDLERS}
    for name, handler in taken.items():
        if handler and not handler.endswith(_HANDLERS[name]):
            raise PropertyError(
                name,
                f"is {_class_name(handler)}, a class that only Java can run; give client "
                f"credentials (Kafka's OAuthBearerLoginCallbackHandler), or a callback as oauth_cb",
            )
    return taken[LOGIN_HANDLER] or taken[_CLIENT_HANDLER]


def _class_name(text: str) -> str:
    """Return the name of a class as it may be shown: a secret in its place may not."""
    is_name = text.replace(".", "").replace("_", "").replace("$", "").isalnum() and "." in text
    return text if is_name else "no name of a Java class"


def _check_mechanism(config: Config) -> None:
    # GSSAPI is the default of both clients.
    mechanism = as_text(config.get("sasl.mechanism", kerberos.MECHANISM))
    kerberos.check_build(mechanism)
    if mechanism == oauth.MECHANISM and not _has_token(config):
        raise PropertyError("sasl.mechanism", _NO_SOURCE)


def _has_token(config: Config) -> bool:
    servers = as_text(config.get(BOOTSTRAP_SERVERS, ""))
    is_google = "managedkafka" in servers and "cloud.goog" in servers  # Airflow's hook gives it
    unsecured = as_text(config.get("enable.sasl.oauthbearer.unsecure.jwt", "")).lower() == "true"
    is_oidc = as_text(config.get(oauth.METHOD, "")).lower() == "oidc"
    return is_google or unsecured or is_oidc or "oauth_cb" in config
