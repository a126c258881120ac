"""The way to a cluster's bootstrap servers, step by step: DNS, TCP and TLS.

librdkafka says only that no broker answered. ``connection_check`` walks this way, by
``KafkaCluster.walk``, before it asks a cluster: so a failure names its step and its cause.
"""

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread
from typing import TypeAlias

from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.kafka.advice import uses_tls
from airflow_mm2_offsets.kafka.certificates import certificate_problem, describe_peer, tls_context
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.kafka.port_probe import connect, shake_hands
from airflow_mm2_offsets.kafka.servers import Server, parse_servers


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What one step found."""

    step: str
    """``DNS``, ``TCP`` or ``TLS``."""
    answer: str


class _StepFailedError(Exception):
    """A server can't be passed: what is wrong, and the next step."""


_GRACE = 2.0
"""Seconds beyond the timeout, in which a step can say itself what was late."""
_Step: TypeAlias = Callable[[Server], str]
_Answers: TypeAlias = dict[Server, str]


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
        answers, failures = _try_all(step, servers, timeout)
        outcome = "; ".join(f"{server} {text}" for server, text in (answers | failures).items())
        if not answers:
            raise ClusterUnreachableError(f"{name}: {outcome}", cluster=cluster, servers=addresses)
        yield StepResult(step=name, answer=outcome)
        servers = tuple(answers)


def _try_all(step: _Step, servers: Sequence[Server], timeout: float) -> tuple[_Answers, _Answers]:
    """Take a step to all servers at the same time; return the answers, and what failed.

    Neither a look-up of a name nor the several addresses of a host can be bounded: a thread that
    is late is left behind.
    """
    futures = {server: _start(step, server) for server in servers}
    wait(futures.values(), timeout + _GRACE)
    answers: _Answers = {}
    failures: _Answers = {}
    for server, future in futures.items():
        if not future.done():
            failures[server] = (
                f"gave no answer in {timeout:g} s: check this machine's DNS, the address and "
                f"firewalls"
            )
            continue
        try:
            answers[server] = future.result()
        except _StepFailedError as error:
            failures[server] = str(error)
    return answers, failures


def _start(step: _Step, server: Server) -> "Future[str]":
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(step(server))
        except Exception as error:  # noqa: BLE001 - the future hands it on
            future.set_exception(error)

    # An executor's thread would hold the process at its end.
    Thread(target=run, daemon=True).start()
    return future


def _steps(cluster: str, properties: Mapping[str, object], timeout: float) -> dict[str, _Step]:
    steps: dict[str, _Step] = {
        "DNS": _resolve,
        "TCP": lambda server: _connect(server, timeout),
    }
    if uses_tls(properties):
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
    try:
        with connect(server, timeout):
            return "answers"
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
    try:
        with shake_hands(server, context, timeout) as secured:
            return f"speaks {secured.version()}, {describe_peer(secured)}"
    except ssl.SSLCertVerificationError as error:
        problem = certificate_problem(error, server)
        raise _StepFailedError(f"has a certificate that {problem.cause}: {problem.step}") from None
    except TimeoutError:
        raise _StepFailedError(
            f"accepts the connection, but no TLS in {timeout:g} s: check the port, and "
            f"security.protocol"
        ) from None
    except OSError as error:  # ssl.SSLError is one
        raise _StepFailedError(_explain_handshake(error)) from None


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
