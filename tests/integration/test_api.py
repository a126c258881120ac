"""The API in a server alone, before a real Kafka and MirrorMaker 2."""

from collections.abc import Iterator

import httpx
import pytest

from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.contract import REFRESH_SECONDS, Contract, Home, mirrored
from tests.integration.servers import TOKEN, running


@pytest.fixture(scope="class")
def home(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a server alone that is ready."""
    with mirrored(stack) as made:
        naming = made.mirror.pair.naming
        settings = {
            "source_bootstrap_servers": stack.source,
            "target_bootstrap_servers": stack.target,
            "source_alias": naming.source_alias,
            "target_alias": naming.target_alias,
            "replication_policy": "identity",
            "offset_syncs_topic_location": "target",
            "connect_url": stack.connect_url,
            "refresh_seconds": str(REFRESH_SECONDS),
        }
        log = tmp_path_factory.mktemp("server") / "server.log"
        with (
            running(log, settings) as url,
            httpx.Client(
                base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
            ) as client,
            httpx.Client(base_url=url, timeout=60) as stranger,
        ):
            wait_until(lambda: stranger.get("/readyz").status_code == 200, "the first read")
            yield Home(client=client, stranger=stranger, mirrored=made)
        assert "Traceback" not in log.read_text()
        assert TOKEN not in log.read_text()


class TestStandalone(Contract):
    """A server alone: one pair of clusters, a token."""
