"""Sends a server whatever bytes there are, over many connections at once."""

import asyncio
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET

import httpx

from tests.integration.attempts import Attempt

TOGETHER = 24
SECONDS = 60
"""Until an exchange must be over, on a machine that is busy with other things."""

_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)


async def play(url: str, tried: Iterator[Attempt]) -> list[tuple[Attempt, list[int]]]:
    """Make all of them, several at once; return what came of each: the statuses answered."""
    address = httpx.URL(url)
    answers: list[tuple[Attempt, list[int]]] = []

    async def client() -> None:
        for attempt in tried:
            async with asyncio.timeout(SECONDS):
                answers.append((attempt, await _exchange(address, attempt)))

    await asyncio.gather(*(client() for _ in range(TOGETHER)))
    return answers


async def _exchange(address: httpx.URL, attempt: Attempt) -> list[int]:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    answer = b""
    try:
        # The server may hang up on what is too long, or is no HTTP, before it has read it all.
        with suppress(ConnectionError):
            writer.write(attempt.sent)
            await writer.drain()
            if attempt.end == "shuts":
                writer.write_eof()
            if attempt.end == "resets":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
        if attempt.end in {"reads", "shuts"}:
            with suppress(ConnectionError):
                while part := await reader.read(2**16):
                    answer += part
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return [int(each) for each in _STATUS.findall(answer)]
