"""A server alone as a process: its port, its login, its patience; the clusters are nowhere."""

import itertools
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from airflow_mm2_offsets.api.protocol import PIPELINED_REQUESTS
from stack.waiting import wait_until
from tests.integration.contract import BASE
from tests.integration.servers import TOKEN, program, running
from tests.support.mock_broker import free_address

NOWHERE = {"kafka_bootstrap_servers": "127.0.0.1:1"}
ASK = f"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
LOGIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return a server that waits a second for heads, for bodies, and for answers to be taken."""
    log = tmp_path_factory.mktemp("server") / "server.log"
    with running(log, NOWHERE | {"TEST_SECONDS": "1"}) as url:
        yield url
    assert "Traceback" not in log.read_text()


def test_without_clusters_it_runs_and_is_not_ready(url: str) -> None:
    """The server is alive and not ready, and each answer gives the reason."""
    with httpx.Client(base_url=url, headers=LOGIN, timeout=60) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        query: dict[str, str | int] = {"topic": "orders", "partition": 0, "offset": 1}
        cached = client.get(f"{BASE}/translate", params=query)
        latest = client.get(f"{BASE}/translate/latest", params=query)
        for answer in (cached, latest):
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "5"
        assert "127.0.0.1:1" in latest.json()["detail"]

        def status() -> dict[str, Any]:
            answer: dict[str, Any] = client.get(f"{BASE}/status").json()
            return answer

        # The background's first refresh, begun with the server, may outlast a request's own read.
        wait_until(lambda: bool(status()["stale"]), "the first refresh to fail")
        assert "did not answer" in status()["error"]


def test_a_client_that_sends_no_head_is_disconnected(url: str) -> None:
    """A client that never completes a request head, the first or a later one, is disconnected."""
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for sent in (b"", b"GET /healthz HT", request + b"GET"):
        with _connect(url) as connection:
            connection.sendall(sent)
            began = time.monotonic()
            connection.settimeout(20)
            while connection.recv(65_536):
                pass
            assert 0.5 < time.monotonic() - began < 15


@pytest.mark.parametrize("part", [b"X: y\r\n" * 10_000, b"X" * 60_000], ids=["many", "one"])
def test_a_huge_head_is_refused(url: str, part: bytes) -> None:
    """A client that sends headers without end is disconnected before they fill the memory."""
    sent = 0
    with _connect(url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nZ: ")
        with suppress(ConnectionError):
            while sent < 2**26:
                connection.sendall(part)
                sent += len(part)
    assert sent < 2**24
    assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200


def test_a_slow_body_has_a_deadline(url: str) -> None:
    """A body that comes byte by byte is answered with an error, and the connection ends."""
    head = (
        f"POST {BASE}/translate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\n"
    )
    with _connect(url) as connection:
        connection.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode())
        connection.settimeout(0.1)
        answer, began = b"", time.monotonic()
        while (part := _part(connection)) != b"":
            answer += part or b""
            if not answer:
                connection.sendall(b" ")
        assert 0.5 < time.monotonic() - began < 15
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 1 s" in answer


def _part(connection: socket.socket) -> bytes | None:
    """Return what has come; None: nothing yet."""
    try:
        return connection.recv(65_536)
    except TimeoutError:
        return None
    except ConnectionResetError:  # it was sent to a server that had hung up
        return b""


def test_a_client_that_reads_no_answer_is_disconnected(url: str) -> None:
    """A client that does not read its answers is disconnected."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((httpx.URL(url).host, httpx.URL(url).port))
        connection.sendall(ASK.encode() * PIPELINED_REQUESTS)
        wait_until(lambda: _is_held(connection), "the server to accept")
        wait_until(lambda: not _is_held(connection), "the server to hang up")
        assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200


@pytest.mark.parametrize("requests", [400, 4000])
def test_a_client_of_many_requests_at_once_is_disconnected(url: str, requests: int) -> None:
    """A client may not send requests without end before it has the first answer."""
    with _connect(url) as connection:
        with suppress(ConnectionError):
            connection.sendall(ASK.encode() * requests)
            answers = 0
            while part := connection.recv(65_536):
                answers += part.count(b"HTTP/1.1 200 OK")
            assert answers < requests
        assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200


def test_a_slow_reader_gets_its_whole_answer(url: str) -> None:
    """A slow reader gets the whole answer, though it takes several times the idle limit."""
    ask = f"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    count = 16
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((httpx.URL(url).host, httpx.URL(url).port))
        connection.sendall(
            (f"{ask}\r\n" * (count - 1) + f"{ask}Connection: close\r\n\r\n").encode()
        )
        answers, began = bytearray(), time.monotonic()
        while part := connection.recv(2**16):
            answers += part
            # 200 kB a second, for some seconds.
            time.sleep(max(0, began + len(answers) / 200_000 - time.monotonic()))
        assert answers.count(b"HTTP/1.1 200 OK") == count
        assert time.monotonic() - began > 3


def _is_held(connection: socket.socket) -> bool:
    """Tell whether a server of ours has its end of a connection open."""
    mine = connection.getsockname()
    return any(
        each.raddr == mine
        for program in psutil.Process().children()
        for each in program.net_connections("tcp")
    )


def test_hanging_clients_block_no_other(url: str) -> None:
    """A hundred clients with half a body each do not block others."""
    head = f"POST {BASE}/translate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    part = f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode()
    hanging = [_connect(url) for _ in range(100)]
    try:
        for each in hanging:
            each.sendall(part)
        began = time.monotonic()
        assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200
        assert time.monotonic() - began < 5
    finally:
        for each in hanging:
            each.close()


def test_a_slow_head_is_disconnected(url: str) -> None:
    """A client that sends its head byte by byte is disconnected; others are answered."""
    sent = itertools.cycle(b"GET /healthz HTTP/1.1\r\nX: ")
    with _connect(url) as connection:

        def is_hung_up() -> bool:
            try:
                connection.sendall(bytes([next(sent)]))
            except ConnectionError:
                return True
            assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200
            return False

        assert wait_until(is_hung_up, "the server to hang up") > 0.5


def test_a_taken_port_is_one_line(url: str) -> None:
    """A second server on the port ends with one line; the first one keeps answering."""
    port = str(httpx.URL(url).port)
    script = Path(sys.executable).with_name("airflow-mm2-offsets")
    clusters = {f"MM2_OFFSETS_{key.upper()}": value for key, value in NOWHERE.items()}
    second = subprocess.run(
        [script, "serve", "--port", port],
        env=os.environ | clusters,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert second.returncode == 2
    assert second.stderr == (
        f"Error: can't listen on 127.0.0.1:{port}: Address already in use; free the port, or "
        f"give another one (serve.host, serve.port)\n"
    )
    assert httpx.get(f"{url}/healthz", timeout=10).status_code == 200


def _connect(url: str) -> socket.socket:
    address = httpx.URL(url)
    assert address.port is not None
    return socket.create_connection((address.host, address.port), timeout=10)


def test_a_login_and_tls(tmp_path: Path) -> None:
    """User name and password over HTTPS; the same port speaks no plain HTTP."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    openssl = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = [*openssl.split(), "-keyout", str(key), "-out", str(certificate), *names]
    subprocess.run(made, check=True, capture_output=True)
    settings = {
        "serve_token": "",
        "serve_username": "user",
        "serve_password": "pa:ss",
        "serve_tls_certificate": str(certificate),
        "serve_tls_key": str(key),
    }
    log = tmp_path / "server.log"
    trusted = ssl.create_default_context(cafile=certificate)
    with running(log, NOWHERE | settings) as url:
        assert url.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=url, verify=trusted) as client:
            assert client.get(f"{BASE}/status", auth=("user", "pa:ss")).status_code == 200
            assert client.get(f"{BASE}/status", auth=("user", "wrong")).status_code == 401
            assert client.get(f"{BASE}/status").status_code == 401
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https", "http"))


def test_sigterm_ends_it(tmp_path: Path) -> None:
    """SIGTERM ends the server at once, despite silent clusters and an open connection."""
    port = free_address().rpartition(":")[2]
    server = program(tmp_path / "server.log", NOWHERE | {"serve_port": port})
    server.start()
    try:
        server.wait_ready(lambda: "ready http" in server.log.read_text())
        with _connect(f"http://127.0.0.1:{port}"):
            server.signal(signal.SIGTERM)
            took = wait_until(lambda: not server.running, "the server to end")
        assert took < 15
    finally:
        server.stop()
