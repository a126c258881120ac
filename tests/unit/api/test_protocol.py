"""One connection."""

import asyncio

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from airflow_mm2_offsets.api.protocol import PatientProtocol
from tests.unit.api.homes import Home


class GoneTransport(asyncio.Transport):
    """Is closed, as uvloop's are when their client is gone; the protocol is not told yet."""

    def is_closing(self) -> bool:
        return True

    def write(self, _data: object) -> None:
        raise RuntimeError("the handler is closed")


def test_a_client_that_is_gone_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Its answer is dropped, without a word in the log."""

    async def ask() -> None:
        config = Config(Home().app, lifespan="off", log_config=None, access_log=False)
        config.load()
        protocol = PatientProtocol(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(GoneTransport())
        protocol.data_received(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.gather(*protocol.tasks)
        protocol.connection_lost(ConnectionResetError())

    asyncio.run(ask())
    assert caplog.text == ""
