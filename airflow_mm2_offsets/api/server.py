"""The standalone server: one pair of clusters, without Airflow; the command ``serve`` calls it."""

import gc
import ipaddress
import logging
import os
import socket
import ssl
import sys
from collections.abc import Callable
from functools import partial

import uvicorn
from fastapi import FastAPI

from airflow_mm2_offsets.api.app import create_app
from airflow_mm2_offsets.api.auth import has_auth, make_auth
from airflow_mm2_offsets.api.pairs import CLUSTER_SECONDS, OnePair, ServedPair
from airflow_mm2_offsets.api.protocol import SEND_BUFFER, SlowClientProtocol, report_requests
from airflow_mm2_offsets.config import ServeSettings, Settings
from airflow_mm2_offsets.errors import (
    ClusterSecurityError,
    ConfigurationError,
    MissingRightError,
)

log = logging.getLogger(__name__)

CONNECTIONS = 512
KEEP_ALIVE_SECONDS = 5
SHUTDOWN_SECONDS = 10
BACKLOG = 1024
SWITCH_SECONDS = 0.0005
"""How long a thread may hold Python's lock while others wait; a tenth of Python's default.

Measured: it halves the time of the slowest answers while a large topic is decoded."""


def serve(settings: Settings, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, or until the first read shows that the settings can't work.

    Args:
        settings: The clusters, the address and the login.
        ready: Called with the URL once the server answers.

    Raises:
        ConfigurationError: The port is in use, the certificate can't be read, other machines could
            send requests without a login, or a client of the syncs' cluster can't be made.
        ClusterSecurityError: The cluster of the syncs refuses the login, or its CA is not known.
        MissingRightError: The user may not read the offset-syncs topic.
    """
    listen = settings.serve
    served = ServedPair.of(
        settings.pair(CLUSTER_SECONDS),
        interval=settings.refresh_seconds,
        archive=settings.archive(),
    )
    app = create_app(OnePair(served), auth=make_auth(listen))
    _check_certificate(listen)
    with _bind(listen) as listener:
        sys.setswitchinterval(SWITCH_SECONDS)
        # Today's objects live as long as the server. Each full collection would visit them, and a
        # read of the syncs starts many: answers would wait for tens of milliseconds.
        gc.freeze()
        server = _Server(_uvicorn_config(app, listen), ready)
        served.cache.start(on_unread=partial(_end_if_hopeless, served, server))
        try:
            server.run(sockets=[listener])
        finally:
            served.cache.stop()
    if server.reason is not None:
        raise server.reason


def _end_if_hopeless(served: ServedPair, server: "_Server", error: Exception) -> None:
    """End the server before its first syncs if no later read can succeed with its settings.

    A cluster that is down, a name that is not known yet and a topic that is not there yet may come.
    With an archive, plans can be made without the topic, so only settings that no client takes end
    the server: after a disaster the login may be refused for as long as the source is broken.
    """
    settings_are_wrong = isinstance(error, ConfigurationError)
    is_shut_out = isinstance(error, ClusterSecurityError | MissingRightError)
    if settings_are_wrong or (is_shut_out and served.archive is None):
        server.end(error)


class _Server(uvicorn.Server):
    """Calls ``ready`` with its URL once it handles signals and answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._ready = ready
        self.reason: Exception | None = None
        """Why it ended by itself."""

    def end(self, reason: Exception) -> None:
        """End soon; any thread may call it."""
        self.reason = reason
        self.should_exit = True  # it looks ten times a second

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, and call ``ready``."""
        await super().startup(sockets)
        if self._ready is not None and sockets:
            host, port = sockets[0].getsockname()[:2]
            scheme = "https" if self.config.is_ssl else "http"
            self._ready(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")


def _uvicorn_config(app: FastAPI, listen: ServeSettings) -> uvicorn.Config:
    """Return uvicorn's settings: HTTP only, with limits for slow and for many clients.

    The app has no lifespan events. Uvicorn leaves the log settings of the process as they are.
    """
    return uvicorn.Config(
        report_requests(app),
        http=SlowClientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=listen.tls_certificate,
        ssl_keyfile=listen.tls_key,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def _bind(listen: ServeSettings) -> socket.socket:
    """Return a listening socket; uvicorn's own way ends the process if the port is in use."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        _check_open(listen, str(address[0]))
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    except OSError as error:
        # Python adds the address to the system's message.
        reason = str(error.strerror or error).partition(" (while")[0]
        raise ConfigurationError(
            f"can't listen on {listen.host}:{listen.port}: {reason}; free the port, or give "
            f"another one (serve.host, serve.port)"
        ) from error
    return listener


def _check_open(listen: ServeSettings, address: str) -> None:
    if has_auth(listen) or listen.without_auth or ipaddress.ip_address(address).is_loopback:
        return
    raise ConfigurationError(
        f"{listen.host} can be reached from other machines, without a login: set serve.token, or "
        f"serve.username and serve.password, or serve.without.auth=true"
    )


def _check_certificate(listen: ServeSettings) -> None:
    if listen.tls_certificate is None:
        return
    for file in (listen.tls_certificate, listen.tls_key):
        if file is None or not os.access(file, os.R_OK):
            raise ConfigurationError(
                f"{file} can't be read; give serve.tls.certificate and serve.tls.key as files"
            )
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Without a password, OpenSSL would ask on the terminal.
        context.load_cert_chain(listen.tls_certificate, listen.tls_key, password=lambda: "")
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"{listen.tls_certificate} and {listen.tls_key} are not a certificate and its key "
            f"in PEM: {error.reason}; correct serve.tls.certificate and serve.tls.key"
        ) from None
