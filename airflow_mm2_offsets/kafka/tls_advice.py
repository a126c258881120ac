"""Advice on TLS and its files; each function gets a report of librdkafka and its properties.

``kafka.explain`` calls them. The reports are those of ``rdkafka_ssl.c`` and of OpenSSL.
"""

import os
import re

from airflow_mm2_offsets.kafka.advice import Advice, Config, Rule, protocol, server_of, uses_tls
from airflow_mm2_offsets.kafka.certificates import find_certificate_problem
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.kafka.port_probe import speaks_tls

_CLIENT_CERTIFICATE = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
_KEY = ("ssl.key.location", "ssl.key.pem")


def _key_password(_: re.Match[str], config: Config) -> Advice:
    wrong = "wrong" if config.get("ssl.key.password") else "missing"
    cause = f"the private key is encrypted, and ssl.key.password is {wrong}"
    return Advice(("ssl.key.password",), cause, "correct ssl.key.password")


def _store_password(_: re.Match[str], config: Config) -> Advice:
    cause = f"{config.get('ssl.keystore.location')} can't be opened by ssl.keystore.password"
    settings = ("ssl.keystore.password", "ssl.keystore.location")
    return Advice(settings, cause, "correct ssl.keystore.password, or give a PKCS#12 file")


def _key_of_another(_: re.Match[str], config: Config) -> Advice:
    key = "ssl.key.pem" if "ssl.key.pem" in config else "ssl.key.location"
    cause = "the private key does not belong to the client's certificate"
    return Advice((key,), cause, f"give in {key} the key that the certificate was made for")


def _no_certificate(_: re.Match[str], __: Config) -> Advice:
    cause = "there is a private key, and no certificate for it"
    return Advice(
        _CLIENT_CERTIFICATE[:1], cause, f"set {_CLIENT_CERTIFICATE[0]} or {_CLIENT_CERTIFICATE[1]}"
    )


def _file(match: re.Match[str], config: Config) -> Advice | None:
    name = match["setting"]
    path = str(config.get(name, ""))
    if not os.path.exists(path):  # noqa: PTH110 - any text, as librdkafka takes it
        problem = "does not exist here"
    elif not os.access(path, os.R_OK):
        problem = "can't be read by this user"
    else:
        problem = "holds no usable PEM text"
    step = f"correct {name}, or put the text itself into {name.replace('.location', '.pem')}"
    if name == "ssl.keystore.location":
        problem = problem.replace("PEM text", "PKCS#12 store")
        step = f"correct {name}"
    return Advice((name,), f"{name} is {path}, which {problem}", step)


def _pem_text(match: re.Match[str], _: Config) -> Advice:
    name = match["setting"]
    cause = f"{name} holds no usable PEM text"
    return Advice((name,), cause, f"give in {name} the whole text, from BEGIN to END")


def _untrusted(match: re.Match[str], config: Config) -> Advice:
    server = server_of(match.string, config)
    problem = find_certificate_problem(server, config)
    settings = (problem.setting,) if problem.setting else ()
    return Advice(
        settings,
        f"the certificate of {server} {problem.cause}",
        problem.step,
        blames_settings=problem.is_of_unknown_ca,
    )


def _client_certificate(_: re.Match[str], config: Config) -> Advice:
    if not any(config.get(name) for name in _CLIENT_CERTIFICATE):
        cause = "the broker demands a client certificate, and none is set"
        step = (
            "set ssl.certificate.location and ssl.key.location, or ssl.keystore.location; or use a "
            "listener that asks for none"
        )
        return Advice(_CLIENT_CERTIFICATE[:1], cause, step)
    if "ssl.keystore.location" not in config and not any(config.get(name) for name in _KEY):
        cause = "the broker demands a client certificate, and the one that is set has no key"
        return Advice(_KEY[:1], cause, f"set {' or '.join(_KEY)} to the certificate's private key")
    cause = "the broker does not accept the client's certificate"
    step = (
        "give one that is valid now and that a CA in the broker's truststore signed, with its key "
        "(ssl.certificate.location and ssl.key.location, or ssl.keystore.location)"
    )
    return Advice(_CLIENT_CERTIFICATE[:1], cause, step)


def _plaintext_listener(match: re.Match[str], config: Config) -> Advice | None:
    server = server_of(match.string, config)
    if not uses_tls(config) or speaks_tls(server):
        return None
    without = protocol(config).replace("SASL_SSL", "SASL_PLAINTEXT").replace("SSL", "PLAINTEXT")
    cause = f"security.protocol is {protocol(config)}, and {server} does not speak TLS"
    step = f"give the address of a TLS listener, or set security.protocol to {without}"
    return Advice(("security.protocol", BOOTSTRAP_SERVERS), cause, step)


def _tls_listener(match: re.Match[str], config: Config) -> Advice | None:
    server = server_of(match.string, config)
    if uses_tls(config) or not speaks_tls(server):
        return None
    wanted = "SASL_SSL" if protocol(config).startswith("SASL") else "SSL or SASL_SSL"
    cause = f"security.protocol is {protocol(config)}, and {server} speaks TLS"
    return Advice(("security.protocol",), cause, f"set security.protocol to {wanted}")


TLS_RULES: tuple[Rule, ...] = (
    Rule(
        re.compile(r"ssl\.key\.\w+ failed: .*(?:wrong password|bad password|bad decrypt)"),
        _key_password,
    ),
    Rule(re.compile(r"key values mismatch"), _key_of_another),
    Rule(re.compile(r"no certificate assigned"), _no_certificate),
    Rule(re.compile(r"PKCS12|mac verify failure"), _store_password),
    Rule(re.compile(r"(?P<setting>ssl\.[a-z.]+\.location) *(?:failed)?:"), _file),
    Rule(re.compile(r"(?P<setting>ssl\.[a-z.]+\.pem) failed"), _pem_text),
    Rule(re.compile(r"certificate verify failed"), _untrusted),
    Rule(re.compile(r"alert (?:\w+ )*certificate|alert unknown ca"), _client_certificate),
    Rule(
        re.compile(r"PLAINTEXT broker listener|wrong version number|SSL_HANDSHAKE"),
        _plaintext_listener,
    ),
    Rule(re.compile(r"Disconnected|brokers are down"), _tls_listener),
)
"""The first that applies counts; a rule may decline."""
