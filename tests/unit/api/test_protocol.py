"""One connection of the standalone server."""

import asyncio
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from airflow_mm2_offsets.api import protocol
from airflow_mm2_offsets.api.protocol import SlowClientProtocol, report_requests
from tests.unit.api.api_harness import ApiHarness

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


class ClosedTransport(asyncio.Transport):
    """Is closed, as uvloop's are when their client is gone; the protocol is not told yet."""

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, _data: object) -> None:
        raise RuntimeError("the handler is closed")


class OpenTransport(asyncio.Transport):
    """Its client takes everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = asyncio.Event()
        self.written = b""

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.closed.set()

    def pause_reading(self) -> None:
        """Go on: the test calls the protocol itself."""

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0


def connect(app: ASGIApp, transport: asyncio.Transport) -> SlowClientProtocol:
    """Return a connection as uvicorn makes it."""
    config = Config(report_requests(app), lifespan="off", log_config=None, access_log=False)
    config.load()
    connection = SlowClientProtocol(config=config, server_state=ServerState(), app_state={})
    connection.connection_made(transport)
    return connection


def test_the_installed_uvicorn_is_within_the_bound() -> None:
    """A newer one is refused until the tests of this file have run with it."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    requirements = map(Requirement, project["optional-dependencies"]["api"])
    (uvicorn,) = (each for each in requirements if each.name == "uvicorn")
    assert any(each.operator == "<" for each in uvicorn.specifier)
    assert version("uvicorn") in uvicorn.specifier


@pytest.mark.parametrize("uvicorn_protocol", [H11Protocol, HttpToolsProtocol])
def test_uvicorn_gives_each_request_its_connection(
    uvicorn_protocol: type[H11Protocol | HttpToolsProtocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uvicorn's constructor takes the state, and each scope has a copy of it.

    uvicorn documents neither. Without them no request would reach the app.
    """
    monkeypatch.setattr(protocol, "AutoHTTPProtocol", uvicorn_protocol)
    scopes: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> None:
        connection = connect(app, OpenTransport())
        for _ in range(2):
            connection.data_received(REQUEST)
            await asyncio.gather(*connection.inner.tasks)
        connection.pause_writing()
        connection.resume_writing()
        connection.eof_received()
        connection.connection_lost(None)

    asyncio.run(ask())
    assert [scope["path"] for scope in scopes] == ["/healthz", "/healthz"]


def test_a_client_that_is_gone_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """Its answer is dropped, and nothing is logged."""

    async def ask() -> None:
        connection = connect(ApiHarness().app, ClosedTransport())
        connection.data_received(REQUEST)
        await asyncio.gather(*connection.inner.tasks)
        connection.connection_lost(ConnectionResetError())

    asyncio.run(ask())
    assert caplog.text == ""


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT"])
def test_a_client_without_a_whole_head_is_hung_up_on(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server closes the connection once the time for a head has passed."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.01)

    async def dawdle() -> None:
        transport = OpenTransport()
        connection = connect(ApiHarness().app, transport)
        connection.data_received(sent)
        await asyncio.wait_for(transport.closed.wait(), 10)
        connection.connection_lost(None)

    asyncio.run(dawdle())


def test_a_request_that_is_being_answered_keeps_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer may take any time; after it, the time for a head begins again."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.01)
    open_while_answering: list[bool] = []

    async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.1)
        open_while_answering.append(not transport.closed.is_set())
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> None:
        connection = connect(slow, transport)
        connection.data_received(REQUEST)
        await asyncio.wait_for(transport.closed.wait(), 10)
        connection.connection_lost(None)

    transport = OpenTransport()
    asyncio.run(ask())
    assert open_while_answering == [True]


@pytest.mark.parametrize(
    ("parts", "refused"),
    [
        ([GET, b"y" * 900, b"\r\n\r\n"], False),
        ([GET, b"y" * 600, b"y" * 600], True),
        ([b"\r\n\r\n" + GET, b"y" * 600, b"y" * 600], True),
        ([REQUEST[:-1], REQUEST[-1:], GET, b"y" * 600], False),
        ([GET + b"y\r\nContent-Length: 9000\r\n\r\n", b"y" * 600, b"y" * 600], False),
    ],
    ids=["within", "beyond", "behind a blank line", "a second request", "a body"],
)
def test_a_head_has_a_size(
    parts: list[bytes], *, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the head counts, and each request's alone."""
    monkeypatch.setattr(protocol, "HEAD_BYTES", 1000)
    transport = OpenTransport()

    async def send_all() -> bool:
        connection = connect(ApiHarness().app, transport)
        for part in parts:
            connection.data_received(part)
        closed = transport.is_closing()
        connection.connection_lost(None)
        return closed

    assert asyncio.run(send_all()) is refused


@pytest.mark.parametrize(
    ("beginning", "part"),
    [(GET, b"y"), (b"GET /", b"y"), (b"", b"\n")],
    ids=["header", "path", "blank lines"],
)
def test_a_head_behind_a_stalled_answer_has_a_size_too(
    beginning: bytes, part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is cut off without an answer: that of the request before it is under way."""
    monkeypatch.setattr(protocol, "HEAD_BYTES", 1000)
    transport = OpenTransport()
    received = 0

    async def stalled(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def send_all() -> None:
        nonlocal received
        connection = connect(stalled, transport)
        connection.data_received(REQUEST)
        await asyncio.sleep(0)
        connection.data_received(beginning)
        while not transport.is_closing() and received < 10_000:
            connection.data_received(part * 100)
            received += 100
        connection.connection_lost(None)
        await asyncio.gather(*connection.inner.tasks)

    asyncio.run(send_all())
    assert 800 < received <= 1100
    assert transport.written == b""


def test_trailers_have_a_size() -> None:
    """The headers behind a body in chunks, for which the app waits; the body itself has not."""
    transport = OpenTransport()

    async def reading(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def send_all() -> int:
        connection = connect(reading, transport)
        connection.data_received(CHUNKED)
        for _ in range(20):
            connection.data_received(b"1000\r\n" + b"y" * 4096 + b"\r\n")
            await asyncio.sleep(0)
        assert not transport.is_closing()
        connection.data_received(b"0\r\n")
        trailers = 0
        while not transport.is_closing() and trailers < 2**20:
            connection.data_received(b"x: " + b"y" * 4096 + b"\r\n")
            await asyncio.sleep(0)
            trailers += 4096
        connection.connection_lost(None)
        await asyncio.gather(*connection.inner.tasks)
        return trailers

    assert asyncio.run(send_all()) <= protocol.HEAD_BYTES + protocol.SLICE_BYTES


def test_only_some_requests_may_wait() -> None:
    """A client that sends requests without end is cut off, before uvicorn has parsed them all."""
    transport = OpenTransport()

    async def send_all() -> bool:
        connection = connect(ApiHarness().app, transport)
        connection.data_received(REQUEST * protocol.PIPELINED_REQUESTS)
        assert not transport.is_closing()
        connection.data_received(REQUEST * 2000)
        closed = transport.is_closing()
        assert len(connection.inner.pipeline) < 2 * protocol.PIPELINED_REQUESTS + 100
        connection.connection_lost(None)
        return closed

    assert asyncio.run(send_all())


def test_a_closing_client_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last answer lies in the buffer, and a close alone would wait for it for ever."""
    monkeypatch.setattr(protocol, "TAKE_SECONDS", 0.01)
    aborted = asyncio.Event()

    class Stuck(ClosedTransport):
        def get_write_buffer_size(self) -> int:
            return 1

        def abort(self) -> None:
            aborted.set()

    async def end_request() -> None:
        connection = connect(ApiHarness().app, Stuck())
        connection.request_began()
        connection.request_ended()
        await asyncio.wait_for(aborted.wait(), 10)
        connection.connection_lost(ConnectionAbortedError())

    asyncio.run(end_request())
