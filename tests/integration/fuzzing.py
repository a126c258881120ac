"""Sends fuzz requests to a server over many connections at once."""

import asyncio
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET

import httpx

from tests.integration.http_fuzz_requests import FuzzRequest

CONNECTIONS = 24
SECONDS = 60
"""The longest that an exchange may take, on a busy machine."""

_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)


async def send_all(
    url: str, requests: Iterator[FuzzRequest]
) -> list[tuple[FuzzRequest, list[int]]]:
    """Send all requests, several at once; return each with the statuses that answered it."""
    address = httpx.URL(url)
    answers: list[tuple[FuzzRequest, list[int]]] = []

    async def client() -> None:
        for request in requests:
            async with asyncio.timeout(SECONDS):
                answers.append((request, await _exchange(address, request)))

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return answers


async def _exchange(address: httpx.URL, request: FuzzRequest) -> list[int]:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    answer = b""
    try:
        # The server may hang up before it has read a request that is too long or not HTTP.
        with suppress(ConnectionError):
            writer.write(request.sent)
            await writer.drain()
            if request.end == "shuts":
                writer.write_eof()
            if request.end == "resets":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
        if request.end in {"reads", "shuts"}:
            with suppress(ConnectionError):
                while part := await reader.read(2**16):
                    answer += part
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return [int(each) for each in _STATUS.findall(answer)]
