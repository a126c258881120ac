"""Hangs up on clients that are too slow: the standalone server's connections.

uvicorn bounds only the pause between two requests. Here everything is done from outside: a
connection wraps uvicorn's protocol, and learns from ASGI's state when a request begins and ends.
"""

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""A request's head must be there so long after the connection began or the last answer ended."""
HEAD_BYTES = 64 * 1024
"""The largest head of a request, or trailer of its body, give or take ``SLICE_BYTES``."""
PIPELINED_REQUESTS = 64
"""The most requests that a client may send before it has the answer of the first."""
SLICE_BYTES = 4096
"""Data goes to uvicorn in slices, after each of which the waiting requests are counted."""
TAKE_SECONDS = 20.0
"""How often a client that does not keep up with its answers must have taken more of them."""
SEND_BUFFER = 128 * 1024
"""For ``SO_SNDBUF``, which Linux doubles. The server learns that a client took data only when a
third of that is free again. With the system's default of megabytes, that may be minutes later."""

_CONNECTION = "mm2_offsets.connection"
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Connection: close\r\nContent-Length: 0\r\n\r\n"
)


class SlowClientProtocol(asyncio.Protocol):
    """Hangs up on a client that never finishes a request's head, or never takes its answer.

    Such a client would hold its connection for ever, and fill the memory: httptools takes heads of
    any size, and uvicorn any number of requests at once. ``RequestLimiter`` bounds bodies.
    Wrap the app by ``report_requests``.
    """

    def __init__(self, *, app_state: dict[str, Any], **uvicorn: Any) -> None:
        """Wrap uvicorn's protocol; the arguments are those that uvicorn gives to its own."""
        # uvicorn copies the state into each request's scope.
        self._state = app_state | {_CONNECTION: self}
        make: Any = AutoHTTPProtocol
        self.inner = make(app_state=self._state, **uvicorn)
        self._loop = asyncio.get_running_loop()
        self._in_request = False
        self._head = _HeadMeter(self.inner)
        self._head_timer: asyncio.TimerHandle | None = None
        self._take_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the head of the first request."""
        self._transport = _CountingTransport(transport)
        self.inner.connection_made(self._transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Pass data to uvicorn, unless a head is too large, or too many requests wait."""
        for start in range(0, len(data), SLICE_BYTES):
            if self._head.feed(data[start : start + SLICE_BYTES]) > HEAD_BYTES:
                self._refuse_head()
                return
            # uvicorn's h11 keeps no such queue: it reads one request at a time.
            if len(getattr(self.inner, "pipeline", ())) > PIPELINED_REQUESTS:
                self._transport.abort()
                return

    def eof_received(self) -> bool | None:
        """Pass the end of the client's data to uvicorn."""
        keeps_open: bool | None = self.inner.eof_received()
        return keeps_open

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        for timer in (self._head_timer, self._take_timer):
            if timer is not None:
                timer.cancel()
        # A reference cycle would keep the connection until the garbage collector runs.
        self._state.clear()
        self.inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Watch a client that does not keep up."""
        self.inner.pause_writing()
        self._watch_taking()

    def resume_writing(self) -> None:
        """Tell uvicorn that the client has caught up."""
        self.inner.resume_writing()

    def request_began(self) -> None:
        """Stop waiting for a head: the app has the request. The size of the next one counts on."""
        self._in_request = True

    def request_ended(self) -> None:
        """Wait for the head of the next request."""
        self._in_request = False
        self._await_head()

    def _refuse_head(self) -> None:
        if self._head.follows_an_answer:
            self._transport.write(_HEAD_TOO_LARGE)
            self._transport.close()
        else:  # An answer to an earlier request is under way, and must not be mixed with this one.
            self._transport.abort()

    def _await_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        if self._transport.is_closing():
            self._watch_taking()  # close() waits until the client has taken everything.
        else:
            self._head_timer = self._loop.call_later(HEAD_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        if not self._in_request:
            self._transport.close()
            self._watch_taking()  # close() waits until the client has taken everything.

    def _watch_taking(self) -> None:
        if self._take_timer is None and self._transport.left:
            self._take_timer = self._loop.call_later(
                TAKE_SECONDS, self._check_taking, self._transport.taken
            )

    def _check_taking(self, taken_before: int) -> None:
        self._take_timer = None
        if self._transport.left and self._transport.taken == taken_before:
            self._transport.abort()
        else:
            self._watch_taking()


def report_requests(app: ASGIApp) -> ASGIApp:
    """Return ``app``, telling the connection of each request when the request begins and ends."""

    async def reporting(scope: Scope, receive: Receive, send: Send) -> None:
        connection: SlowClientProtocol = scope["state"].pop(_CONNECTION)
        connection.request_began()
        try:
            await app(scope, receive, send)
        finally:
            connection.request_ended()

    return reporting


class _HeadMeter:
    """Feeds uvicorn, and counts the bytes of an unfinished head, or of the trailers of a body.

    Those are all bytes since uvicorn last made a request of a head, or had some of a body. uvicorn
    parses the next head while an answer is under way, so it counts then too.
    """

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - one of uvicorn's protocols
        self._inner = inner
        self._bytes = 0

    def feed(self, data: bytes) -> int:
        """Pass data to uvicorn; return the bytes of the head so far."""
        before = self._progress()
        self._inner.data_received(data)
        self._bytes = self._bytes + len(data) if self._progress() == before else 0
        return self._bytes

    @property
    def follows_an_answer(self) -> bool:
        """Whether the requests before this head have been answered."""
        cycle = self._inner.cycle
        return cycle is None or cycle.response_complete

    def _progress(self) -> tuple[object, int]:
        """Return uvicorn's last request, and how much of its body the app has yet to take."""
        cycle = self._inner.cycle
        return cycle, 0 if cycle is None else len(cycle.body)


class _CountingTransport:
    """Counts the bytes that the client took; bytes for a client that is gone are dropped.

    uvicorn learns only when the loop next turns that the client is gone. Until then uvloop raises
    RuntimeError for each write.
    """

    def __init__(self, transport: Any) -> None:  # noqa: ANN401 - asyncio's or uvloop's
        self._transport = transport
        self._written = 0

    @property
    def left(self) -> int:
        """Bytes that the client has yet to take."""
        size: int = self._transport.get_write_buffer_size()
        return size

    @property
    def taken(self) -> int:
        """Bytes that the client has taken."""
        return self._written - self.left

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transport has
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._written += len(data)
            self._transport.write(data)
