"""A server that misbehaves, on a real socket: each exchange ends in time, with one clear error."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from airflow_mm2_offsets.connect import exchange
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConnectError, Mm2OffsetsError

Send = Callable[[bytes], None]
Misbehave = Callable[[Send, threading.Event], None]

TIMEOUT, PATIENT = 1.5, 60.0
"""Seconds for a server that never ends, and for one that ends the exchange by itself."""
SLACK = 15.0
"""A busy machine is late, and a server that is waited for byte by byte is minutes late."""
DRIP = 0.05
"""Seconds between two bytes: far less than any pause that httpx would mind."""
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MIB = 2**20


@contextmanager
def served(misbehave: Misbehave) -> Iterator[str]:
    """Yield the URL of a server that reads a request, and answers as it is told."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threads = [threading.Thread(target=_serve, args=(server, misbehave, over))]
        threads[0].start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)
            threads[0].join(10)
            assert not threads[0].is_alive()


def _serve(server: socket.socket, misbehave: Misbehave, over: threading.Event) -> None:
    while not over.is_set():
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.recv(65_536)
            misbehave(connection.sendall, over)


def _drip(send: Send, over: threading.Event, data: Iterator[bytes]) -> None:
    for piece in data:
        if over.wait(DRIP):
            return
        send(piece)


def drip_body(send: Send, over: threading.Event) -> None:
    send(OK + b"Content-Length: 100000\r\n\r\n")
    _drip(send, over, iter([b" "] * 100_000))


def drip_headers(send: Send, over: threading.Event) -> None:
    send(b"HTTP/1.1 200 OK\r\n")
    _drip(send, over, (b"X-%d: y\r\n" % number for number in range(100_000)))


def drip_status(send: Send, over: threading.Event) -> None:
    _drip(send, over, (bytes([byte]) for byte in OK * 100))


def say_nothing(_send: Send, over: threading.Event) -> None:
    over.wait()


def send_without_end(send: Send, over: threading.Event) -> None:
    send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    chunk = b"%x\r\n" % MIB + b" " * MIB + b"\r\n"
    while not over.is_set():
        send(chunk)


def send_300_mib(send: Send, _over: threading.Event) -> None:
    send(OK + b"Content-Length: %d\r\n\r\n" % (300 * MIB))
    for _ in range(300):
        send(b" " * MIB)


def redirect_for_ever(send: Send, _over: threading.Event) -> None:
    send(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")


def hang_up(send: Send, _over: threading.Event) -> None:
    send(OK + b"Content-Length: 100\r\n\r\n{")


def nest_deeply(send: Send, _over: threading.Event) -> None:
    send(OK + b"Content-Length: 1000000\r\n\r\n" + b"[" * 1_000_000)


ENDLESS = [
    (drip_body, ClusterUnreachableError, r"did not answer, tried for \d+.\d s: \d+ bytes .* came"),
    (drip_headers, ClusterUnreachableError, r"no answer came in 1.5 s; check"),
    (drip_status, ClusterUnreachableError, r"no answer came in 1.5 s; check"),
    (say_nothing, ClusterUnreachableError, r"no answer came in 1.5 s; check"),
]
ENDING = [
    (send_without_end, ConnectError, r"the answer is larger than \d+ bytes; check that the URL"),
    (send_300_mib, ConnectError, r"the answer is larger than \d+ bytes; check that the URL"),
    (redirect_for_ever, ConnectError, r"HTTP 302, which is a redirect; give the URL"),
    (hang_up, ClusterUnreachableError, r"did not answer, .* peer closed connection"),
    (nest_deeply, ConnectError, r"HTTP 200 and no JSON; check that the URL"),
]


@pytest.mark.parametrize(
    ("misbehave", "error", "said"),
    [*ENDLESS, *ENDING],
    ids=[case[0].__name__ for case in (*ENDLESS, *ENDING)],
)
def test_whatever_a_server_does_the_exchange_ends(
    monkeypatch: pytest.MonkeyPatch, misbehave: Misbehave, error: type[Mm2OffsetsError], said: str
) -> None:
    """The deadline and the size limit hold for the whole answer."""
    monkeypatch.setattr(exchange, "MAX_BYTES", 4 * MIB)
    is_endless = misbehave in [case[0] for case in ENDLESS]
    began = time.monotonic()
    with served(misbehave) as url, pytest.raises(error, match=said):
        ConnectClient(url=url, timeout=TIMEOUT if is_endless else PATIENT).check()
    assert time.monotonic() - began < TIMEOUT + SLACK


def test_inside_a_running_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client works inside a running event loop, as in a notebook, with the same limits."""
    monkeypatch.setattr(exchange, "MAX_BYTES", MIB)

    async def ask(url: str) -> str:
        return ConnectClient(url=url, timeout=PATIENT).check()

    body = b'{"version": "4.3.1"}'

    def answer(send: Send, _over: threading.Event) -> None:
        send(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    with served(answer) as url:
        assert asyncio.run(ask(url)) == "4.3.1"
    with served(send_without_end) as url, pytest.raises(ConnectError, match="larger than"):
        asyncio.run(ask(url))


def test_a_rebalance_and_slow_answers_share_one_deadline() -> None:
    """A repeated request keeps the first request's deadline."""
    conflict = b'{"error_code": 409, "message": "rebalance"}'

    def answer(send: Send, over: threading.Event) -> None:
        send(b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n" % len(conflict))
        _drip(send, over, iter([conflict]))

    began = time.monotonic()
    with served(answer) as url, pytest.raises(ConnectError, match="HTTP 409: rebalance"):
        ConnectClient(url=url, timeout=3.0).check()
    assert time.monotonic() - began < 3.0 + SLACK


def test_an_error_that_says_too_much_is_shortened() -> None:
    """An error message of a megabyte is shortened before it reaches a log or an XCom."""
    body = b'{"message": "%s"}' % (b"x" * MIB)

    def answer(send: Send, _over: threading.Event) -> None:
        send(b"HTTP/1.1 500 Oh\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with served(answer) as url, pytest.raises(ConnectError, match="HTTP 500: xxx") as caught:
        ConnectClient(url=url, timeout=PATIENT).check()
    assert len(str(caught.value)) < 2000


def test_a_closed_port_is_reported() -> None:
    """The error names URL, seconds and reason."""
    client = ConnectClient(url="http://127.0.0.1:1", timeout=1.0)
    with pytest.raises(
        ClusterUnreachableError,
        match=r"Connect at http://127\.0\.0\.1:1 did not answer, tried for \d+\.\d s: .*refused",
    ):
        client.check()
