"""The way to a broker, against servers on loopback that fail it at each step."""

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import (
    ClusterSecurityError,
    ClusterUnreachableError,
    ConfigurationError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.network_path import StepResult, walk
from airflow_mm2_offsets.kafka.servers import Server, parse_servers
from stack.certificates import Authority, Certificate

TIMEOUT = 2.0
OURS, THEIRS = Authority("ours"), Authority("theirs")
NOW = datetime.now(UTC)

Answer = Callable[[socket.socket], None]


@contextmanager
def listening(answer: Answer) -> Iterator[int]:
    """Yield the port of a server that hands each connection to ``answer``."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as threads:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        threads.callback(thread.join, TIMEOUT * 2)
        threads.callback(server.shutdown, socket.SHUT_RDWR)
        yield server.getsockname()[1]


def tls(tmp_path: Path, certificate: Certificate) -> Answer:
    """Return an answer that speaks TLS, and shows the certificate."""
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text(certificate.chain)
    key.write_text(certificate.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)

    def answer(connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT)
        try:
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1)
        except OSError:
            pass  # the client did not like it

    return answer


def steps(port: int, **properties: str) -> list[StepResult]:
    config = {"bootstrap.servers": f"localhost:{port}", "security.protocol": "ssl"} | {
        name.replace("_", "."): value for name, value in properties.items()
    }
    return [*walk("source", config, TIMEOUT)]


def failure(port: int, **properties: str) -> str:
    with pytest.raises(ClusterUnreachableError) as failed:
        steps(port, **properties)
    return str(failed.value)


def test_each_step_says_what_it_found(tmp_path: Path) -> None:
    """The last one names the TLS version and the end of the certificate."""
    certificate = OURS.issue("broker", until=datetime(2100, 1, 2, tzinfo=UTC))
    with listening(tls(tmp_path, certificate)) as port:
        dns, tcp, secured = steps(port, ssl_ca_pem=OURS.pem)
    assert (dns.step, tcp.step, secured.step) == ("DNS", "TCP", "TLS")
    assert "127.0.0.1" in dns.answer
    assert tcp.answer == f"localhost:{port} answers"
    assert secured.answer.startswith(f"localhost:{port} speaks TLSv1.3, its certificate is valid")
    assert secured.answer.endswith("2100-01-02")


def test_without_tls_the_way_ends_at_tcp() -> None:
    """SASL_PLAINTEXT and no protocol at all have no handshake."""
    with listening(lambda _: None) as port:
        for protocol in ("PLAINTEXT", "sasl_plaintext"):
            found = steps(port, security_protocol=protocol)
            assert [step.step for step in found] == ["DNS", "TCP"]


@pytest.mark.parametrize(
    ("issued", "wanted"),
    [
        (
            {"since": NOW - timedelta(hours=2), "until": NOW - timedelta(hours=1)},
            ["expired at", "renew the broker", "clock"],
        ),
        ({"since": NOW + timedelta(hours=1)}, ["is not yet valid", "clock"]),
        ({"hosts": ("east-1.example",)}, ["is for east-1.example", "bootstrap.servers"]),
    ],
)
def test_a_certificate_that_is_refused_says_why(
    tmp_path: Path, issued: dict[str, object], wanted: list[str]
) -> None:
    """With the value that is wrong, and the next step."""
    with listening(tls(tmp_path, OURS.issue("broker", **issued))) as port:  # type: ignore[arg-type]
        message = failure(port, ssl_ca_pem=OURS.pem)
    assert message.startswith("source (bootstrap.servers=localhost:")
    assert f"TLS: localhost:{port} has a certificate that " in message
    assert all(each in message for each in wanted)


def test_an_unknown_ca_is_named(tmp_path: Path) -> None:
    """So that its certificate can be asked for."""
    with listening(tls(tmp_path, THEIRS.issue("broker"))) as port:
        message = failure(port, ssl_ca_pem=OURS.pem)
    assert "is issued by CN=theirs" in message
    assert "ssl.ca.location" in message


@pytest.mark.parametrize(
    ("authority", "issued", "is_final"),
    [
        (THEIRS, {}, True),
        (OURS, {"since": NOW - timedelta(hours=2), "until": NOW - timedelta(hours=1)}, False),
        (OURS, {"hosts": ("east-1.example",)}, False),
    ],
    ids=["unknown CA", "expired", "another host"],
)
def test_a_client_that_does_not_know_the_ca_is_to_blame(
    tmp_path: Path, authority: Authority, issued: dict[str, object], *, is_final: bool
) -> None:
    """It never trusts that broker; another certificate may be renewed, and another host come."""
    certificate = authority.issue("broker", **issued)  # type: ignore[arg-type]
    with listening(tls(tmp_path, certificate)) as port:
        properties = {
            "bootstrap.servers": f"localhost:{port}",
            "security.protocol": "SSL",
            "ssl.ca.pem": OURS.pem,
        }
        cluster = KafkaCluster(name="source", config=properties, timeout=TIMEOUT)
        with pytest.raises(ClusterUnreachableError, match="the certificate of localhost") as caught:
            cluster.describe()
    assert isinstance(caught.value, ClusterSecurityError) is is_final


@pytest.mark.parametrize(
    "off",
    [
        {"ssl_endpoint_identification_algorithm": "none"},
        {"enable_ssl_certificate_verification": "False"},
    ],
)
def test_what_the_client_does_not_verify_is_no_failure(tmp_path: Path, off: dict[str, str]) -> None:
    """Host names alone, or nothing."""
    with listening(tls(tmp_path, OURS.issue("broker", hosts=("east-1.example",)))) as port:
        assert steps(port, ssl_ca_pem=OURS.pem, **off)[-1].step == "TLS"


def test_a_port_without_tls_is_told() -> None:
    """A broker closes the connection: the first bytes are no request of its."""

    def close(connection: socket.socket) -> None:
        connection.recv(4096)

    with listening(close) as port:
        message = failure(port)
    assert "does not speak TLS" in message
    assert "security.protocol" in message


def test_a_port_that_accepts_and_says_nothing_is_told() -> None:
    """After the timeout."""
    done = threading.Event()

    def wait(_: socket.socket) -> None:
        done.wait(TIMEOUT * 3)

    with listening(wait) as port:
        message = failure(port)
        done.set()
    assert f"no TLS in {TIMEOUT:g} s" in message


def test_a_closed_port_and_an_unknown_name_are_told() -> None:
    """TCP and DNS, each with its next step."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "TCP: " in (message := failure(port))
    assert "nothing listens there" in message
    wanted = re.escape("DNS: nowhere.invalid:9092 does not resolve")
    with pytest.raises(ClusterUnreachableError, match=wanted):
        list(walk("source", {"bootstrap.servers": "nowhere.invalid"}, TIMEOUT))


def test_one_server_of_two_is_enough(tmp_path: Path) -> None:
    """The other one is named all the same."""
    with listening(tls(tmp_path, OURS.issue("broker"))) as port:
        servers = f"nowhere.invalid:1,localhost:{port}"
        properties = {
            "bootstrap.servers": servers,
            "security.protocol": "SSL",
            "ssl.ca.pem": OURS.pem,
        }
        dns, tcp, _ = walk("source", properties, TIMEOUT)
    assert "nowhere.invalid:1 does not resolve" in dns.answer
    assert "nowhere" not in tcp.answer


def test_a_ca_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    """By the property; its text may be a key that was taken for it."""
    file = tmp_path / "ca.pem"
    file.write_text("secret")
    for properties in ({"ssl_ca_location": str(file)}, {"ssl_ca_pem": "secret"}):
        with pytest.raises(ConfigurationError, match=r"ssl\.ca\.") as failed:
            steps(1, **properties)
        assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("east-1", [Server("east-1", 9092)]),
        ("east-1:9093, SASL_SSL://east-2:9094", [Server("east-1", 9093), Server("east-2", 9094)]),
        ("[::1]:9093,[::1]", [Server("::1", 9093), Server("::1", 9092)]),
    ],
)
def test_the_addresses_that_librdkafka_takes(text: str, servers: list[Server]) -> None:
    """Its documentation of bootstrap.servers names these forms."""
    assert [*parse_servers("source", text)] == servers


@pytest.mark.parametrize("text", ["east-1:many", "east-1:70000", "east-1:0", ":9092"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    """With the address and what to give."""
    with pytest.raises(ConfigurationError, match="give host:port"):
        parse_servers("source", text)


def test_silent_servers_cost_one_timeout_together() -> None:
    """A list of brokers behind one dead firewall must not multiply the wait."""
    with ExitStack() as stack:
        # Nobody accepts: the kernel completes each connection, and nothing is ever sent.
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        servers = ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in silent)
        started = time.monotonic()
        with pytest.raises(ClusterUnreachableError) as failed:
            [*walk("source", {"bootstrap.servers": servers, "security.protocol": "SSL"}, TIMEOUT)]
    assert time.monotonic() - started < 3 * TIMEOUT
    assert str(failed.value).count("no TLS in") == len(silent)
