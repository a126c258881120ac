"""TLS versions, cipher suites and host names: from Java's words to OpenSSL's, and back.

``librdkafka`` calls ``translate_tls``, ``java`` the rest.
"""

import re

from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError, take

HOST_NAME_CHECK = "ssl.endpoint.identification.algorithm"
CIPHERS = "ssl.cipher.suites"
_MODERN = frozenset({"TLSv1.2", "TLSv1.3"})
_JAVA_SUITE = re.compile(
    r"TLS_(?:(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_)"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>GCM|CBC)_SHA(?P<sha>256|384|)|CHACHA20_POLY1305_SHA256)"
)
_OPENSSL_SUITE = re.compile(
    r"(?:(?P<exchange>ECDHE-ECDSA|ECDHE-RSA|DHE-RSA)-)?"
    r"(?:AES(?P<bits>128|256)-(?P<gcm>GCM-)?SHA(?P<sha>256|384|)|CHACHA20-POLY1305)"
)
_TLS_1_3_SUITE = re.compile(r"TLS_(AES_\d+_(GCM|CCM|CCM_8)_SHA\d+|CHACHA20_POLY1305_SHA256)")


def translate_tls(config: Config) -> None:
    """Translate, in place, what Java's client says about TLS beside keys and certificates.

    Raises:
        PropertyError: Only versions are allowed that librdkafka can't be held to, or a cipher
            suite has no counterpart.
    """
    # Empty in Java: off. librdkafka's word for that is none; https is the default of both.
    if HOST_NAME_CHECK in config:
        algorithm = take(config, HOST_NAME_CHECK) or "none"
        config[HOST_NAME_CHECK] = algorithm.lower()
    _check_versions(config)
    if suites := take(config, CIPHERS):
        _translate_suites(config, suites)


def suites_for_java(suites: str) -> str | None:
    """Return OpenSSL's names of cipher suites as Java's; None if one has no counterpart."""
    names = [_java_suite(name) for name in re.split(r"[:, ]+", suites) if name]
    return ",".join(filter(None, names)) if all(names) else None


def _check_versions(config: Config) -> None:
    config.pop("ssl.protocol", None)  # Java negotiates among the enabled ones all the same.
    enabled = take(config, "ssl.enabled.protocols")
    versions = {version.strip() for version in (enabled or "").split(",") if version.strip()}
    if not versions or "TLSv1.2" in versions:
        return
    step = "librdkafka takes the newest version that the broker offers, TLSv1.2 or TLSv1.3"
    problem = "can't be enforced" if versions <= _MODERN else "is too old for librdkafka's OpenSSL"
    raise PropertyError(
        "ssl.enabled.protocols",
        f"is {','.join(sorted(versions))}, which {problem}; remove it: {step}",
    )


def _translate_suites(config: Config, suites: str) -> None:
    names = [name for name in re.split(r"[:,\s]+", suites) if name]
    # OpenSSL's list is about TLS 1.2; all suites of TLS 1.3 stay on.
    older = [name for name in names if not _TLS_1_3_SUITE.fullmatch(name)]
    translated = [_openssl_suite(name) for name in older]
    if unknown := [name for name, own in zip(older, translated, strict=True) if own is None]:
        raise PropertyError(
            CIPHERS,
            f"has suites without a known name in OpenSSL: {', '.join(unknown)}; give OpenSSL's "
            f"names (openssl ciphers -stdname), separated by colons",
        )
    if names and not older:
        raise PropertyError(
            CIPHERS,
            "has suites of TLS 1.3 alone, which librdkafka can't be held to: it would take TLS 1.2 "
            "with any suite; add the suites of TLS 1.2 that you allow, or remove it",
        )
    if translated:
        config[CIPHERS] = ":".join(filter(None, translated))


def _openssl_suite(name: str) -> str | None:
    if not name.startswith(("TLS_", "SSL_")):
        return name
    match = _JAVA_SUITE.fullmatch(name)
    if match is None:
        return None
    exchange = match["exchange"].replace("_", "-")
    prefix = "" if exchange == "RSA" else f"{exchange}-"
    if match["bits"] is None:
        return f"{prefix}CHACHA20-POLY1305"
    mode = "GCM-" if match["mode"] == "GCM" else ""
    return f"{prefix}AES{match['bits']}-{mode}SHA{match['sha']}"


def _java_suite(name: str) -> str | None:
    match = _OPENSSL_SUITE.fullmatch(name)
    if match is None:
        return None
    exchange = (match["exchange"] or "RSA").replace("-", "_")
    if match["bits"] is None:
        return f"TLS_{exchange}_WITH_CHACHA20_POLY1305_SHA256"
    mode = "GCM" if match["gcm"] else "CBC"
    return f"TLS_{exchange}_WITH_AES_{match['bits']}_{mode}_SHA{match['sha']}"
