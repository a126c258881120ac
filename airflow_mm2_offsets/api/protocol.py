"""HTTP over a connection whose client must get on with it."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""Until the head of a request must be there, from the connection or the last answer on."""
TAKE_SECONDS = 20.0
"""How often a client that does not keep up with its answers must have taken more of them."""
SEND_BUFFER = 128 * 1024
"""For ``SO_SNDBUF``, which Linux doubles: of what a client takes, the server learns when a third of
that is free again. Of the megabytes that the system would choose, that may be minutes later."""


class _Transport:
    """Drops what is written to a client that is gone, as uvicorn does once it knows.

    It knows a moment later: when the loop next turns. uvloop raises RuntimeError until then.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written = 0

    @property
    def left(self) -> int:
        """Bytes that the client has yet to take."""
        return self._transport.get_write_buffer_size()

    @property
    def taken(self) -> int:
        """Bytes that it has taken."""
        return self._written - self.left

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transport has
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._written += len(data)
            self._transport.write(data)


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Hangs up on a client that never finishes the head of a request, or never takes its answer.

    uvicorn itself bounds only the pause between requests (``timeout_keep_alive``): a client that
    connects and sends nothing, or a byte now and then, would hold its connection for ever; one
    that reads nothing its answer too. Bodies are bounded by ``Guard``.
    """

    transport: _Transport
    _deadline: asyncio.TimerHandle | None = None
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait."""
        super().connection_made(_Transport(transport))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        for timer in (self._deadline, self._watch):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        """Begin to watch a client that does not keep up."""
        super().pause_writing()
        self._keep_watch()

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
            self._keep_watch()  # To close is to wait until all is taken.

    def _keep_watch(self) -> None:
        if self._watch is None and self.transport.left:
            self._watch = self.loop.call_later(TAKE_SECONDS, self._look, self.transport.taken)

    def _look(self, before: int) -> None:
        self._watch = None
        if self.transport.left and self.transport.taken == before:
            self.transport.abort()
        else:
            self._keep_watch()
