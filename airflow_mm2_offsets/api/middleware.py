"""Middleware of every route: bounds bodies in size and time, and answers exceptions."""

import asyncio
import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_mm2_offsets.api.metrics import Metrics
from airflow_mm2_offsets.api.problems import Problem

log = logging.getLogger(__name__)
access_log = logging.getLogger("airflow_mm2_offsets.access")


NO_ROUTE = "none"
_PROBES = ("/healthz", "/readyz", "/metrics")
_LOGGED_PATH = 200
_CLOSE = (b"connection", b"close")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The size and the time of a request's body."""

    body_bytes: int = 16 * 2**20
    """Enough for the largest batch, with white space."""
    body_seconds: float = 20.0
    """The time until the whole body must have arrived."""


@dataclass(slots=True)
class _Exchange:
    """One request and its answer."""

    receive: Receive
    send: Send
    limits: Limits
    body_is_read: bool
    """Whether the whole body has arrived; True from the start for a request without one."""
    started: float = field(default_factory=time.perf_counter)
    body_bytes: int = 0
    status: int = 0
    """Of the answer; 0 before it starts."""

    async def receive_limited(self) -> Message:
        """Receive from the client, within the limits."""
        if self.body_is_read:
            return await self.receive()
        left = self.started + self.limits.body_seconds - time.perf_counter()
        try:
            async with asyncio.timeout(left):
                message = await self.receive()
        except TimeoutError:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body did not arrive within {self.limits.body_seconds:g} s",
            ) from None
        self.body_bytes += len(message.get("body", b""))
        self.body_is_read = not message.get("more_body", False)
        if self.body_bytes > self.limits.body_bytes:
            raise _too_large(self.limits)
        return message

    async def send_with_headers(self, message: Message) -> None:
        """Send to the client, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            # The rest of a refused body is not worth reading.
            close = () if self.body_is_read else (_CLOSE,)
            message["headers"] = [*message.get("headers", ()), *_HEADERS, *close]
        await self.send(message)


class RequestLimiter:
    """ASGI middleware; it also counts requests for the metrics."""

    def __init__(self, app: ASGIApp, *, limits: Limits, metrics: Metrics) -> None:
        """Keep the app, the limits and the metrics."""
        self._app = app
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size = _content_length(scope["headers"])
        exchange = _Exchange(receive, send, self._limits, body_is_read=size == 0)
        above = scope.get("route"), scope.get("root_path", "")
        try:
            if size > self._limits.body_bytes:
                raise _too_large(self._limits)  # noqa: TRY301 - answered below
            await self._app(scope, exchange.receive_limited, exchange.send_with_headers)
        except Problem as problem:
            await problem.response()(scope, receive, exchange.send_with_headers)
        except Exception:
            number = uuid.uuid4().hex[:12]
            log.exception(
                "request %s failed: %s %r", number, scope["method"], scope["path"][:_LOGGED_PATH]
            )
            if exchange.status:
                raise  # The answer was started and can't be changed: the server hangs up.
            detail = f"unexpected error; look for {number} in the server's log"
            unexpected = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, id=number)
            await unexpected.response()(scope, receive, exchange.send_with_headers)
        finally:
            route = _label(scope, *above)
            method = "any" if route == NO_ROUTE else scope["method"]
            seconds = time.perf_counter() - exchange.started
            self._metrics.observe(route, method, exchange.status, seconds)
            _log_access(scope, exchange.status, seconds)


def _label(scope: Scope, mount: object, mounted_at: str) -> str:
    """Return the path of the route that was found, as its app declares it: these are few.

    Args:
        scope: The request's, after it was answered.
        mount: Its ``route`` before that: inside Airflow, where this app is mounted.
        mounted_at: Its ``root_path`` before that.
    """
    route = scope.get("route")
    if route is mount or isinstance(route, Mount):
        return NO_ROUTE
    below = str(scope.get("root_path", "")).removeprefix(mounted_at)
    return f"{below}{getattr(route, 'path', '')}"


def _log_access(scope: Scope, status: int, seconds: float) -> None:
    """Write a line for a request; those of orchestrators, which come every few seconds, as DEBUG.

    The query is left out: it may be long. A path may hold line breaks, so it is quoted.
    """
    level = logging.DEBUG if scope["path"].endswith(_PROBES) else logging.INFO
    client = (scope.get("client") or ("-",))[0]
    path = scope["path"][:_LOGGED_PATH]
    access_log.log(
        level, "%s %s %r %d, %.1f ms", client, scope["method"], path, status, seconds * 1000
    )


def _content_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the length of a request's body in bytes, by its head; -1: it comes in chunks."""
    by_name = dict(headers)
    if b"transfer-encoding" in by_name:
        return -1
    return int(by_name.get(b"content-length", b"0"))


def _too_large(limits: Limits) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body has more than {limits.body_bytes} bytes",
    )
