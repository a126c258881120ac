"""Asks a broker's port what it speaks: librdkafka reports that a connection failed, and not why.

Nothing but a TLS handshake is sent.
"""

import socket
import ssl

from airflow_mm2_offsets.kafka.servers import Server

_SECONDS = 2.0
"""For each step, where somebody waits for advice: a connection, a handshake."""


def connect(server: Server, timeout: float = _SECONDS) -> socket.socket:
    """Return a connection to a port, on which each answer may take ``timeout`` seconds.

    Raises:
        OSError: There is none.
    """
    return socket.create_connection((server.host, server.port), timeout)


def shake_hands(
    server: Server, context: ssl.SSLContext, timeout: float = _SECONDS
) -> ssl.SSLSocket:
    """Return a connection that speaks TLS; see ``connect``.

    Raises:
        ssl.SSLError: The other side does not speak TLS, or its certificate is refused.
        OSError: There is no connection, or it was closed.
    """
    connection = connect(server, timeout)
    try:
        return context.wrap_socket(connection, server_hostname=server.host)
    except BaseException:
        connection.close()
        raise


def trusting_context() -> ssl.SSLContext:
    """Return a context that takes any certificate, to look at it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def speaks_tls(server: Server) -> bool:
    """Tell whether a port answers a TLS handshake, whatever its certificate."""
    try:
        with shake_hands(server, trusting_context()):
            return True
    except (OSError, ValueError):
        return False


def takes_connections(server: Server) -> bool:
    """Tell whether somebody listens at a port."""
    try:
        with connect(server):
            return True
    except (OSError, ValueError):
        return False
