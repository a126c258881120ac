"""The API in a server alone, before a real Kafka and MirrorMaker 2."""

import asyncio
from collections.abc import Iterator

import httpx
import psutil
import pytest

from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.contract import REFRESH_SECONDS, Contract, RunningApi, mirrored
from tests.integration.fuzzing import send_all
from tests.integration.http_fuzz_requests import fuzz_requests
from tests.integration.servers import TOKEN, running


@pytest.fixture(scope="class")
def api(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
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
            yield RunningApi(client=client, stranger=stranger, mirrored=made)
        assert "Traceback" not in log.read_text()
        assert TOKEN not in log.read_text()


class TestStandalone(Contract):
    """A server alone: one pair of clusters, a token."""

    @pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.long)])
    def test_no_request_makes_it_fail_or_grow(self, api: RunningApi, rounds: int) -> None:
        """Thousands of fuzz requests are answered, with no 5xx but 503; memory stays flat."""
        topic, server = api.mirrored.topic, _listener(api.client.base_url.port)
        query = {"topic": topic, "partition": 0, "offset": 17}
        answer = api.get("/translate", **query).json()
        sizes = []
        for seed in range(rounds):
            requests = fuzz_requests(seed, 1000, topic=topic, token=TOKEN)
            for request, statuses in asyncio.run(send_all(str(api.client.base_url), requests)):
                shown = request.sent[:200], statuses
                assert all(each < 500 or each == 503 for each in statuses), shown
                assert statuses or not request.answered, shown
            assert api.get("/translate", **query).json() == answer
            sizes.append(server.memory_info().rss)
        assert sizes[-1] < sizes[0] * 1.15, sizes


def _listener(port: int | None) -> psutil.Process:
    """Return the one of our programs that has the port."""
    for program in psutil.Process().children():
        if any(each.laddr.port == port for each in program.net_connections("tcp")):
            return program
    raise AssertionError(f"no program listens on {port}")
