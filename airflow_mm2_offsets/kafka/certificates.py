"""What is wrong with a broker's certificate, in words; ``network_path`` asks."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from cryptography import x509

from airflow_mm2_offsets.errors import ConfigurationError

_SWITCHED_OFF = frozenset({"false", "none", ""})


def tls_context(cluster: str, properties: Mapping[str, object]) -> ssl.SSLContext:
    """Return a context that verifies a broker as librdkafka would, without a client certificate.

    The broker asks for that one after it has shown its own, which is what is checked here.

    Args:
        cluster: The cluster's name in error messages.
        properties: librdkafka properties.

    Raises:
        ConfigurationError: The CA certificates can't be read.
    """
    context = ssl.create_default_context()
    if _is_off(properties, "ssl.endpoint.identification.algorithm"):
        context.check_hostname = False
    if _is_off(properties, "enable.ssl.certificate.verification"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    for setting, argument in (("ssl.ca.location", "cafile"), ("ssl.ca.pem", "cadata")):
        value = str(properties.get(setting, ""))
        if value not in {"", "probe"}:
            context = _with_ca(cluster, context, setting, {argument: value})
    return context


def describe_peer(secured: ssl.SSLSocket) -> str:
    """Return until when the broker's certificate is valid."""
    certificate = secured.getpeercert()
    if not certificate:
        return "its certificate is not verified"
    end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
    return f"its certificate is valid until {end.date()}"


def explain_failure(error: OSError, address: tuple[str, int], timeout: float) -> str:
    """Return what is wrong with a TLS handshake, and the next step.

    Args:
        error: Why the handshake failed.
        address: The broker's host and port; it is asked for its certificate once more.
        timeout: Seconds that it has for that.
    """
    if not isinstance(error, ssl.SSLCertVerificationError):
        return _explain_handshake(error)
    certificate = _fetch(address, timeout)
    explain = _EXPLANATIONS.get(error.verify_code)
    if certificate is None or explain is None:
        return f"its certificate is refused: {error.verify_message}"
    return f"its certificate {explain(certificate)}"


def _explain_handshake(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
    if isinstance(error, ssl.SSLError) and "ALERT" in reason:
        return (
            f"ends the TLS handshake ({reason}): it may want a client certificate "
            f"(ssl.keystore.location) or another TLS version"
        )
    return (
        f"does not speak TLS ({reason}): its port may be one without TLS; check the port, and "
        f"security.protocol"
    )


def _is_off(properties: Mapping[str, object], setting: str) -> bool:
    return str(properties.get(setting, "on")).lower() in _SWITCHED_OFF


def _with_ca(
    cluster: str, context: ssl.SSLContext, setting: str, where: Mapping[str, str]
) -> ssl.SSLContext:
    # Like librdkafka: a CA that is given replaces the system's.
    only = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    only.check_hostname, only.verify_mode = context.check_hostname, context.verify_mode
    try:
        only.load_verify_locations(**where)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"has no CA certificate that can be read ({type(error).__name__}); give a PEM file, "
            f"or its text as ssl.ca.pem",
            cluster=cluster,
            setting=setting,
        ) from None
    return only


def _fetch(address: tuple[str, int], timeout: float) -> x509.Certificate | None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # it is only shown
    with (
        contextlib.suppress(OSError, ValueError),
        socket.create_connection(address, timeout) as connection,
        context.wrap_socket(connection, server_hostname=address[0]) as secured,
    ):
        return x509.load_der_x509_certificate(secured.getpeercert(binary_form=True) or b"")
    return None


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value]


def _expired(certificate: x509.Certificate) -> str:
    end = certificate.not_valid_after_utc
    return f"expired at {end}: renew it, or correct this machine's clock"


def _not_yet_valid(certificate: x509.Certificate) -> str:
    start = certificate.not_valid_before_utc
    return f"is valid from {start} on: correct this machine's clock"


def _for_another_name(certificate: x509.Certificate) -> str:
    return (
        f"is for {', '.join(_names(certificate)) or 'no name'}: use one of these in "
        f"bootstrap.servers, or have the broker's certificate made for this name"
    )


def _of_unknown_issuer(certificate: x509.Certificate) -> str:
    return (
        f"is issued by {certificate.issuer.rfc4514_string()}, which is not among the CA "
        f"certificates here: give that one as ssl.ca.location"
    )


_EXPLANATIONS: Mapping[int, Callable[[x509.Certificate], str]] = {
    9: _not_yet_valid,
    10: _expired,
    **dict.fromkeys((2, 18, 19, 20, 21), _of_unknown_issuer),
    **dict.fromkeys((62, 64), _for_another_name),
}
"""By OpenSSL's X509_V_ERR codes (x509_vfy.h)."""
