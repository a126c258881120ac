"""HTTP over a connection whose client must get on with it."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""Until the head of a request must be there, from the connection or the last answer on."""


class _Transport:
    """Drops what is written to a client that is gone, as uvicorn does once it knows.

    It knows a moment later: when the loop next turns. uvloop raises RuntimeError until then.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transport has
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Hangs up on a client that never finishes the head of a request.

    uvicorn itself bounds only the pause between requests (``timeout_keep_alive``): a client that
    connects and sends nothing, or a byte now and then, would hold its connection for ever.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait."""
        super().connection_made(_Transport(transport))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._wait()

    def _wait(self) -> None:
        self._cancel()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _hang_up(self) -> None:
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
