"""Sends an HTTP request, within limits of time and size; the Connect client and ``hooks`` call it.

httpx itself bounds the pause between two bytes, and keeps an answer of any size.
"""

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx

MAX_BYTES = 64 * 2**20
"""Of an answer's body. The offsets of 100,000 partitions take 12 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's whole answer."""

    status: int
    reason: str
    body: bytes


class ExchangeError(Exception):
    """No whole answer came; the message is a phrase with the reason."""


class TooLargeError(ExchangeError):
    """The answer is larger than ``MAX_BYTES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server's URL and login."""

    url: str
    login: tuple[str, str] | None = None
    transport: httpx.AsyncBaseTransport | None = None

    def ask(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        seconds: float,
        method: str = "GET",
        body: object = None,
    ) -> Answer:
        """Send a request and return the answer; redirects are not followed.

        Args:
            path: Below the server's URL.
            params: The query.
            method: The HTTP method.
            body: Sent as JSON; None sends none.
            seconds: The time from the name look-up until the last byte must have arrived.

        Raises:
            ExchangeError: No answer came, or not all of it in time.
            TooLargeError: See ``MAX_BYTES``.
        """
        exchange = self._ask(method, path, params, body, seconds)
        if not _is_in_loop():
            return asyncio.run(exchange)
        # A loop runs here already, as in a notebook: another loop needs another thread.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, exchange).result()

    async def _ask(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        content: object,
        seconds: float,
    ) -> Answer:
        client = httpx.AsyncClient(
            base_url=self.url,
            auth=self.login,
            # The deadline of the whole exchange is the only one.
            timeout=None,  # noqa: S113
            headers={"Accept-Encoding": "identity"},
            transport=self.transport,
        )
        body = bytearray()
        try:
            async with (
                asyncio.timeout(seconds),
                client,
                client.stream(method, path, params=params, json=content) as response,
            ):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise TooLargeError(f"the answer is larger than {MAX_BYTES} bytes")
        except TimeoutError:
            came = f"{len(body)} bytes of an answer came" if body else "no answer came"
            raise ExchangeError(f"{came} in {seconds:.1f} s") from None
        except httpx.RequestError as error:
            raise ExchangeError(_innermost(error)) from error
        return Answer(status=response.status_code, reason=response.reason_phrase, body=bytes(body))


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _innermost(error: httpx.RequestError) -> str:
    """Return the operating system's message, if there is one."""
    text = str(error) or type(error).__name__
    inner: BaseException | None = error.__cause__
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[-1]
        text = str(inner) or text
        # asyncio's message names the call, not the reason.
        if (type(inner) is OSError or isinstance(inner, ConnectionError)) and inner.errno:
            return f"{os.strerror(inner.errno)} ({text})"
        # httpx sets the cause; httpcore, between it and the rest, only the context.
        inner = inner.__cause__ or (None if isinstance(inner, OSError) else inner.__context__)
    return text
