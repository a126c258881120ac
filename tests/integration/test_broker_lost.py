"""A server alone whose only broker is killed while an answer is being read from it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest

from airflow_mm2_offsets.config import load_settings
from benchmarks.broker import OneBroker, append, fill
from benchmarks.load import TOPIC, Load
from stack import jars
from stack.waiting import wait_until
from tests.integration.contract import BASE
from tests.integration.servers import TOKEN, running

BUILD = Path(__file__).parents[2] / "build"
FEW = Load(partitions=1000, syncs=2)
MANY = replace(FEW, syncs=300)
"""So many that to read them takes a while."""
DEADLINE = 10.0
"""See ``api.pairs.CLUSTER_SECONDS``."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OneBroker]:
    """Return a broker of the test's own: a JVM, which can be killed and started again."""
    with OneBroker(tmp_path / "kafka", jars.fetch(BUILD, progress=print).kafka) as made:
        yield made


def test_a_broker_killed_while_it_is_read(broker: OneBroker, tmp_path: Path) -> None:
    """Waiting requests fail in time, cached answers stay, and a restarted broker is read again."""
    settings = {"kafka_bootstrap_servers": broker.source, "refresh_seconds": "3600"}
    environ = {f"MM2_OFFSETS_{key.upper()}": value for key, value in settings.items()}
    topic = load_settings(None, environ).pair().syncs_topic
    fill(broker.source, topic, FEW)
    query: dict[str, str | int] = {"topic": TOPIC, "partition": 7, "offset": 5000}
    log = tmp_path / "server.log"
    with (
        running(log, settings) as url,
        httpx.Client(
            base_url=f"{url}{BASE}",
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=6 * DEADLINE,
        ) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        wait_until(lambda: client.get("/translate", params=query).is_success, "the first read")
        cached = client.get("/translate", params=query).json()
        append(broker.source, topic, MANY, first=FEW.syncs)
        idle = _connections(broker.source)
        waiting = [
            pool.submit(client.get, "/translate/latest", params=query),
            pool.submit(client.post, "/refresh"),
        ]
        wait_until(lambda: _connections(broker.source) >= idle + 2, "both to be read")
        broker.stop_broker("source")
        for each in waiting:
            answer = each.result()
            assert answer.status_code == 503
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["retry-after"] == "5"
            assert f"source (bootstrap.servers={broker.source}): did not" in answer.json()["detail"]
            assert answer.elapsed.total_seconds() < 2 * DEADLINE
        assert client.get("/translate", params=query).json() == cached
        assert client.get("/status").json()["stale"] is True
        broker.start()
        latest = client.get("/translate/latest", params=query).json()
        assert latest["syncUpstreamOffset"] > cached["syncUpstreamOffset"]
        assert client.post("/refresh").json()["stale"] is False
    assert "Traceback" not in log.read_text()


def _connections(address: str) -> int:
    """Return how many of our programs' connections lead to an address."""
    return sum(
        f"{each.raddr.ip}:{each.raddr.port}" == address
        for program in psutil.Process().children()
        for each in program.net_connections("tcp")
        if each.raddr
    )
