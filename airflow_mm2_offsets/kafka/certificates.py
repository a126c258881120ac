"""What is wrong with a broker's certificate; ``network_path`` and ``tls_advice`` ask."""

import contextlib
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from cryptography import x509

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.kafka.port_probe import shake_hands, trusting_context
from airflow_mm2_offsets.kafka.servers import Server

_CA = "ssl.ca.location"
_TRUST = "give in ssl.ca.location (or ssl.ca.pem) the certificate of the CA that signed it"
_RENEW = "renew the broker's certificate, or correct the clock of this machine"
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As librdkafka verifies: Python 3.13 is stricter by default.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if _is_off(properties, "ssl.endpoint.identification.algorithm"):
        context.check_hostname = False
    if _is_off(properties, "enable.ssl.certificate.verification"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_authorities(cluster, context, properties)
    return context


def describe_peer(secured: ssl.SSLSocket) -> str:
    """Return until when the broker's certificate is valid."""
    certificate = secured.getpeercert()
    if not certificate:
        return "its certificate is not verified"
    end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
    return f"its certificate is valid until {end.date()}"


class CertificateProblem(NamedTuple):
    """Why a broker's certificate is refused."""

    setting: str | None
    """librdkafka's name of the property to look at, if it is about one."""
    cause: str
    """What it is, after "its certificate"."""
    step: str
    is_of_unknown_ca: bool = False
    """Whether the settings do not name the CA that issued it."""


def find_certificate_problem(server: Server, config: Mapping[str, object]) -> CertificateProblem:
    """Return why a client refuses the certificate of a broker, which is asked for it."""
    try:
        with shake_hands(server, tls_context("", config)):
            pass
    except ssl.SSLCertVerificationError as error:
        return certificate_problem(error, server)
    except (OSError, ConfigurationError):  # no answer, or no CA certificates to compare with
        pass
    return CertificateProblem(_CA, "can't be verified", _TRUST)


def certificate_problem(error: ssl.SSLCertVerificationError, server: Server) -> CertificateProblem:
    """Return what is wrong with the certificate of a broker, which is asked for it once more."""
    explain, certificate = _EXPLANATIONS.get(error.verify_code), _fetch(server)
    if certificate is None or explain is None:
        problem = error.verify_message.removesuffix(".")
        return CertificateProblem(_CA, f"is refused: {problem}", _TRUST)
    return explain(certificate)


def _is_off(properties: Mapping[str, object], setting: str) -> bool:
    return str(properties.get(setting, "on")).lower() in _SWITCHED_OFF


def _load_authorities(
    cluster: str, context: ssl.SSLContext, properties: Mapping[str, object]
) -> None:
    """Load the CA certificates that are given, or else the system's, as librdkafka does."""
    for setting, argument in ((_CA, "cafile"), ("ssl.ca.pem", "cadata")):
        value = str(properties.get(setting, ""))
        if value in {"", "probe"}:
            continue
        try:
            context.load_verify_locations(**{argument: value})
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"has no CA certificate that can be read ({type(error).__name__}); give a PEM "
                f"file, or its text as ssl.ca.pem",
                cluster=cluster,
                setting=setting,
            ) from None
        return
    context.load_default_certs()


def _fetch(server: Server) -> x509.Certificate | None:
    with (
        contextlib.suppress(OSError, ValueError),
        shake_hands(server, trusting_context()) as secured,
    ):
        return x509.load_der_x509_certificate(secured.getpeercert(binary_form=True) or b"")
    return None


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value]


def _expired(certificate: x509.Certificate) -> CertificateProblem:
    cause = f"expired at {certificate.not_valid_after_utc}"
    return CertificateProblem(None, cause, _RENEW)


def _not_yet_valid(certificate: x509.Certificate) -> CertificateProblem:
    cause = f"is not yet valid: it is from {certificate.not_valid_before_utc} on"
    return CertificateProblem(None, cause, _RENEW)


def _for_another_name(certificate: x509.Certificate) -> CertificateProblem:
    names = ", ".join(_names(certificate)) or "no name"
    step = (
        "name the broker in bootstrap.servers (and advertised.listeners) as its certificate does, "
        "or have the certificate made for this name"
    )
    return CertificateProblem(BOOTSTRAP_SERVERS, f"is for {names}", step)


def _of_unknown_issuer(certificate: x509.Certificate) -> CertificateProblem:
    issuer = certificate.issuer.rfc4514_string()
    cause = f"is issued by {issuer}, which is not among the CA certificates here"
    return CertificateProblem(_CA, cause, _TRUST, is_of_unknown_ca=True)


_EXPLANATIONS: Mapping[int, Callable[[x509.Certificate], CertificateProblem]] = {
    9: _not_yet_valid,
    10: _expired,
    **dict.fromkeys((2, 18, 19, 20, 21), _of_unknown_issuer),
    **dict.fromkeys((62, 64), _for_another_name),
}
"""By OpenSSL's X509_V_ERR codes (x509_vfy.h)."""
