"""Asks a broker's port what it speaks: librdkafka reports that a connection failed, and not why.

``kafka.explain`` calls it when a broker could not be used. Nothing but a TLS handshake is sent.
"""

import socket
import ssl
from collections.abc import Mapping

_SECONDS = 2.0
"""For each step: a connection, a handshake."""


def certificate_problem(server: str, config: Mapping[str, object]) -> str | None:
    """Return why a broker's certificate can't be verified, in OpenSSL's words.

    Args:
        server: ``host:port``.
        config: librdkafka properties; the certificates to trust are taken from them.

    Returns:
        For example ``certificate has expired``; None if the certificate is good here, or if the
        port could not be asked.
    """
    try:
        context = _verifying_context(config)
        _shake_hands(server, context)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.removesuffix(".")
    except (OSError, ValueError):  # no answer, or certificates that can't be read
        return None
    return None


def speaks_tls(server: str) -> bool:
    """Tell whether a port answers a TLS handshake, whatever its certificate; see above."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        _shake_hands(server, context)
    except (OSError, ValueError):
        return False
    return True


def takes_connections(server: str) -> bool:
    """Tell whether somebody listens at a port."""
    try:
        with _connect(server):
            return True
    except (OSError, ValueError):
        return False


def _verifying_context(config: Mapping[str, object]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As librdkafka verifies: Python 3.13 is stricter by default.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm") != "none"
    location, pem = config.get("ssl.ca.location"), config.get("ssl.ca.pem")
    if location and location != "probe":
        context.load_verify_locations(cafile=str(location))
    elif pem:
        context.load_verify_locations(cadata=str(pem))
    else:
        context.load_default_certs()
    return context


def _shake_hands(server: str, context: ssl.SSLContext) -> None:
    host, _ = _address(server)
    with _connect(server) as connection, context.wrap_socket(connection, server_hostname=host):
        pass


def _connect(server: str) -> socket.socket:
    return socket.create_connection(_address(server), timeout=_SECONDS)


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)
