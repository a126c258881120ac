"""The API inside a real Airflow's API server, before a real Kafka and MirrorMaker 2."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from airflow_mm2_offsets.plugins.rest import URL_PREFIX
from stack.airflow import ADMIN, VIEWER, Airflow
from tests.integration.contract import Contract, Mirrored, RunningApi


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

    @pytest.mark.long
    def test_the_description_holds(self, api: RunningApi, tmp_path: Path) -> None:
        """As of the server alone: the routes and models are the same."""
        super().test_the_description_holds(api, tmp_path)

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
