"""Advice on logins by SASL; each function gets a report of librdkafka and the client's properties.

``kafka.explain`` calls them. The reports are those of ``rdkafka_sasl*.c``, and what Kafka's
``SaslServerAuthenticator`` and an OAuth token endpoint (RFC 6749, section 5.2) answer.
"""

import re

from airflow_mm2_offsets.kafka.advice import Advice, Config, Rule, mechanism
from airflow_mm2_offsets.kafka.kerberos_advice import KERBEROS_RULES

_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a property's name


def _login_missing(_: re.Match[str], config: Config) -> Advice:
    names = tuple(name for name in ("sasl.username", "sasl.password") if not config.get(name))
    return Advice(names, f"{' and '.join(names)} missing", f"set {' and '.join(names)}")


def _mechanism_missing(match: re.Match[str], config: Config) -> Advice:
    wanted, offered = mechanism(config), match["offered"].strip()
    cause = f"the broker does not offer the SASL mechanism {wanted}; it offers {offered}"
    step = f"set sasl.mechanism to one of {offered}"
    return Advice(("sasl.mechanism",), cause, step, blames_settings=True)


_TOKEN_RULES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        r"trust anchors|certificate|SSL",
        ("https.ca.location",),
        "the token endpoint's certificate can't be verified",
    ),
    (
        r"[Ii]nvalid_scope|scope",
        ("sasl.oauthbearer.scope",),
        "the token endpoint does not grant the scope",
    ),
    (
        r"[Ii]nvalid_client|[Uu]nauthorized|\b401\b|\b403\b",
        ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
        "the token endpoint does not accept the client",
    ),
    (r"", (_TOKEN_URL,), "the token endpoint gives no token"),
)


def _token(match: re.Match[str], config: Config) -> Advice | None:
    for pattern, settings, cause in _TOKEN_RULES:
        if re.search(pattern, match["why"]):
            names = " and ".join(settings)
            text = f"{cause} ({_TOKEN_URL}={config.get(_TOKEN_URL)})"
            return Advice(settings, text, f"check {names}")
    return None


def _token_refused(_: re.Match[str], __: Config) -> Advice:
    return Advice(
        ("sasl.oauthbearer.scope", _TOKEN_URL),
        "the broker does not accept the token",
        f"compare issuer, audience and scope of the tokens of {_TOKEN_URL} with the broker's "
        f"sasl.oauthbearer.expected.issuer and .audience; check sasl.oauthbearer.scope",
    )


def _no_token(_: re.Match[str], config: Config) -> Advice | None:
    if mechanism(config) != "OAUTHBEARER" or "oauth_cb" in config:
        return None
    if str(config.get("sasl.oauthbearer.method", "")).lower() == "oidc":
        return None
    step = (
        f"set sasl.oauthbearer.method=oidc, {_TOKEN_URL}, sasl.oauthbearer.client.id and "
        f"sasl.oauthbearer.client.secret; or an oauth_cb"
    )
    return Advice(("sasl.oauthbearer.method",), "nothing is set that gets a token", step)


def _login_refused(_: re.Match[str], config: Config) -> Advice:
    settings = ("sasl.username", "sasl.password")
    cause = f"the broker does not accept user or password by {mechanism(config)}"
    step = (
        "check user, password, mechanism and security.protocol of its settings "
        "(sasl.username, sasl.password, sasl.mechanism)"
    )
    # A token is refused for a while where the broker can't get the issuer's keys.
    is_password = mechanism(config) == "PLAIN" or mechanism(config).startswith("SCRAM-")
    return Advice(settings, cause, step, blames_settings=is_password)


LOGIN_RULES: tuple[Rule, ...] = (
    *KERBEROS_RULES,
    Rule(re.compile(r"sasl\.username and sasl\.password must be set"), _login_missing),
    Rule(re.compile(r"supported mechanisms: (?P<offered>[\w, -]+)"), _mechanism_missing),
    Rule(re.compile(r"Failed to acquire SASL OAUTHBEARER token: (?P<why>.*)"), _token),
    Rule(re.compile(r"invalid_token|OAUTHBEARER"), _token_refused),
    Rule(re.compile(r"^$|^Failed to get metadata"), _no_token),
    Rule(re.compile(r"[Aa]uthentication failed|invalid credentials"), _login_refused),
)
"""The first that applies counts; a rule may decline."""
