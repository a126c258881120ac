"""The way to a cluster's bootstrap servers, step by step: DNS, TCP and TLS.

librdkafka says only that no broker answered. ``health`` walks this way before it asks a cluster,
so that a failure names its step and its cause.
"""

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError
from airflow_mm2_offsets.kafka.certificates import describe_peer, explain_failure, tls_context
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

DEFAULT_PORT = 9092
"""librdkafka's, for a server without a port."""
_TLS_PROTOCOLS = frozenset({"SSL", "SASL_SSL"})


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return host:port, as in ``bootstrap.servers``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What one step found."""

    step: str
    """``DNS``, ``TCP`` or ``TLS``."""
    answer: str


class _StepFailedError(Exception):
    """A server can't be passed: what is wrong, and the next step."""


_Step: TypeAlias = Callable[[Server], str]


def walk(cluster: str, properties: Mapping[str, object], timeout: float) -> Iterator[StepResult]:
    """Yield what each step finds, from DNS to TLS; a step takes the servers that passed the last.

    A server that fails is named in the answer; librdkafka needs only one of them.

    Args:
        cluster: The cluster's name in error messages.
        properties: librdkafka properties.
        timeout: Seconds that a server has for a step.

    Raises:
        ClusterUnreachableError: No server passed a step.
        ConfigurationError: A server's address is wrong, or the CA certificates can't be read.
    """
    addresses = str(properties[BOOTSTRAP_SERVERS])
    servers = parse_servers(cluster, addresses)
    for name, step in _steps(cluster, properties, timeout).items():
        answers: dict[Server, str] = {}
        failures: dict[Server, str] = {}
        for server in servers:
            try:
                answers[server] = step(server)
            except _StepFailedError as error:
                failures[server] = str(error)
        outcome = "; ".join(f"{server} {text}" for server, text in (answers | failures).items())
        if not answers:
            raise ClusterUnreachableError(f"{name}: {outcome}", cluster=cluster, servers=addresses)
        yield StepResult(step=name, answer=outcome)
        servers = tuple(answers)


def parse_servers(cluster: str, text: str) -> tuple[Server, ...]:
    """Return the addresses of ``bootstrap.servers``.

    librdkafka takes ``host``, ``host:port``, ``[IPv6]:port`` and ``PROTOCOL://host:port``.

    Raises:
        ConfigurationError: A port is no number from 1 to 65,535.
    """
    return tuple(_parse(cluster, each.strip()) for each in text.split(",") if each.strip())


def _parse(cluster: str, text: str) -> Server:
    address = text.rpartition("://")[2]
    if address.startswith("["):
        host, _, port = address.removeprefix("[").partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = address.partition(":")
    number = int(port) if port.isdecimal() else 0 if port else DEFAULT_PORT
    if not host or not 0 < number < 1 << 16:
        raise ConfigurationError(
            f"{BOOTSTRAP_SERVERS} has {text!r}; give host:port, with a port from 1 to 65535",
            cluster=cluster,
        )
    return Server(host, number)


def _steps(cluster: str, properties: Mapping[str, object], timeout: float) -> dict[str, _Step]:
    steps: dict[str, _Step] = {
        "DNS": _resolve,
        "TCP": lambda server: _connect(server, timeout),
    }
    if str(properties.get("security.protocol", "")).upper() in _TLS_PROTOCOLS:
        context = tls_context(cluster, properties)
        steps["TLS"] = lambda server: _shake_hands(server, context, timeout)
    return steps


def _resolve(server: Server) -> str:
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise _StepFailedError(
            f"does not resolve ({error.strerror}): check the name, and this machine's DNS"
        ) from None
    return f"is {', '.join(sorted({str(address[0]) for *_, address in found}))}"


def _connect(server: Server, timeout: float) -> str:
    with _connected(server, timeout):
        return "answers"


def _connected(server: Server, timeout: float) -> socket.socket:
    try:
        return socket.create_connection((server.host, server.port), timeout)
    except ConnectionRefusedError:
        raise _StepFailedError(
            "refuses the connection: nothing listens there; check the port, and that the broker "
            "runs"
        ) from None
    except TimeoutError:
        raise _StepFailedError(
            f"did not answer in {timeout:g} s: check the address, routes and firewalls"
        ) from None
    except OSError as error:
        raise _StepFailedError(f"can't be reached: {error.strerror}; check the network") from None


def _shake_hands(server: Server, context: ssl.SSLContext, timeout: float) -> str:
    with _connected(server, timeout) as connection:
        try:
            with context.wrap_socket(connection, server_hostname=server.host) as secured:
                return f"speaks {secured.version()}, {describe_peer(secured)}"
        except TimeoutError:
            raise _StepFailedError(
                f"accepts the connection, but no TLS in {timeout:g} s: check the port, and "
                f"security.protocol"
            ) from None
        except OSError as error:  # ssl.SSLError is one
            address = (server.host, server.port)
            raise _StepFailedError(explain_failure(error, address, timeout)) from None
