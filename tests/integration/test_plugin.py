"""The API inside a real Airflow's API server, before a real Kafka and MirrorMaker 2."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from airflow_mm2_offsets.plugins.rest import URL_PREFIX
from stack.airflow import ADMIN, VIEWER, Airflow
from stack.mirror import Stack
from tests.integration.contract import (
    REFRESH_SECONDS,
    Contract,
    Mirrored,
    RunningApi,
    airflow_connections,
    mirrored,
)

pytestmark = pytest.mark.timeout(600)
DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def mirrored_topic(stack: Stack) -> Iterator[Mirrored]:
    with mirrored(stack) as made:
        yield made


@pytest.fixture(scope="module")
def airflow(
    stack: Stack, mirrored_topic: Mirrored, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    """Return an Airflow of which only the API server runs."""
    connections = airflow_connections(stack, mirrored_topic)
    made = Airflow(
        tmp_path_factory.mktemp("airflow"),
        DAGS,
        connections={
            **connections,
            "mm2_again": connections["mm2_default"],
            "no_mm2": {"conn_type": "http", "extra": {}},
        },
        env={"AIRFLOW__MM2_OFFSETS__REFRESH_SECONDS": str(REFRESH_SECONDS)},
        parts=["api-server"],
        progress=print,
    )
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def api(airflow: Airflow, mirrored_topic: Mirrored) -> Iterator[RunningApi]:
    """Return the API as an administrator of Airflow asks it."""
    with _client(airflow, ADMIN) as client, _client(airflow) as stranger:
        yield RunningApi(
            client=client,
            stranger=stranger,
            mirrored=mirrored_topic,
            open_probes=False,
            wrong_token=403,  # Airflow's own answer
        )


class TestPlugin(Contract):
    """Inside Airflow: a pair for each connection, and Airflow's users."""

    def test_a_user_without_the_right(self, airflow: Airflow, api: RunningApi) -> None:
        """Every route refuses a user who may not read connections, and names the connection."""
        paths = api.client.get("/openapi.json").json()["paths"]
        with _client(airflow, VIEWER) as viewer:
            for method, path in [(method, path) for path, each in paths.items() for method in each]:
                answer = viewer.request(method, path, params={"conn_id": "mm2_again"})
                assert answer.status_code == 403, (method, path)
                assert "mm2_again" in answer.json()["detail"]

    def test_a_pair_for_each_connection(self, api: RunningApi) -> None:
        """Each connection has its own index; a connection of another type is named."""
        status = api.get("/status", conn_id="mm2_again").json()
        assert status["topic"] == api.mirrored.mirror.pair.syncs_topic
        for conn_id, wrong in {"no_mm2": "'http'", "missing": "does not exist"}.items():
            answer = api.get("/status", conn_id=conn_id)
            assert answer.status_code == 404
            assert answer.json()["field"] == "query.conn_id"
            assert wrong in answer.json()["detail"]
        metrics = api.client.get("/metrics").text
        assert 'mm2_offsets_syncs{connection="mm2_again"}' in metrics


def _client(airflow: Airflow, user: str | None = None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {airflow.token(user)}"} if user else {}
    return httpx.Client(base_url=f"{airflow.url}{URL_PREFIX}", headers=headers, timeout=60)
