"""Stands before every route: bounds bodies in size and time, and lets no exception out."""

import asyncio
import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_mm2_offsets.api.metrics import Metrics
from airflow_mm2_offsets.api.problems import Problem

log = logging.getLogger(__name__)

_CLOSE = {"Connection": "close"}
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request may take."""

    body_bytes: int = 16 * 2**20
    """Enough for the largest batch, well spaced."""
    body_seconds: float = 20.0
    """Until all of a body must be there."""


@dataclass(slots=True)
class _Exchange:
    """One request and its answer, as they pass."""

    receive: Receive
    send: Send
    limits: Limits
    begun: float = field(default_factory=time.perf_counter)
    read: int = 0
    has_body: bool = False
    status: int = 0
    """Of the answer; 0 before it starts."""

    async def take(self) -> Message:
        """Hand on what the client sends, while it is within the limits."""
        if self.has_body:
            return await self.receive()
        left = self.begun + self.limits.body_seconds - time.perf_counter()
        try:
            async with asyncio.timeout(left):
                message = await self.receive()
        except TimeoutError:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body was not there within {self.limits.body_seconds:g} s",
                headers=_CLOSE,
            ) from None
        self.read += len(message.get("body", b""))
        self.has_body = not message.get("more_body", False)
        if self.read > self.limits.body_bytes:
            raise _too_large(self.limits)
        return message

    async def give(self, message: Message) -> None:
        """Hand on the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await self.send(message)


class RequestLimiter:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, limits: Limits, metrics: Metrics) -> None:
        """Keep what it needs."""
        self._app = app
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer for the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send, self._limits)
        try:
            if _announced(scope["headers"]) > self._limits.body_bytes:
                raise _too_large(self._limits)  # noqa: TRY301 - the one place that answers
            await self._app(scope, exchange.take, exchange.give)
        except Problem as problem:
            await problem.response()(scope, receive, exchange.give)
        except Exception:
            number = uuid.uuid4().hex[:12]
            log.exception("request %s failed: %s %r", number, scope["method"], scope["path"][:200])
            if exchange.status:
                raise  # What was begun can't be called back: the server hangs up.
            await _unexpected(number).response()(scope, receive, exchange.give)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if route != "none" else "any"
            seconds = time.perf_counter() - exchange.begun
            self._metrics.observe(route, method, exchange.status, seconds)


def _announced(headers: Iterable[tuple[bytes, bytes]]) -> int:
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _too_large(limits: Limits) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body has more than {limits.body_bytes} bytes",
        headers=_CLOSE,
    )


def _unexpected(number: str) -> Problem:
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"something unexpected; the server's log has it under {number}",
        id=number,
    )
