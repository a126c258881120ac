"""Airflow as the demo and the tests run it: on PostgreSQL, its parts started again."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from stack.airflow import Airflow
from stack.airflow_api import AirflowApi
from stack.process import ProgramError, free_ports
from stack.waiting import wait_until

DAG = """
from datetime import timedelta
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor
from airflow.sdk import DAG, task

with DAG("counts", schedule=None):
    @task
    def one():
        return 1

    TimeDeltaSensor(task_id="wait", delta=timedelta(seconds=1), deferrable=True) >> one()
"""


class Runs(BaseHTTPRequestHandler):
    """Knows one run, which has succeeded."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"state": "success"}')

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


class LateServer:
    """An API server that starts with the second check."""

    def __init__(self) -> None:
        self.port = free_ports(1)[0]
        self.looks = 0
        self._server: HTTPServer | None = None

    def look(self) -> None:
        self.looks += 1
        if self.looks == 2:
            self._server = HTTPServer(("127.0.0.1", self.port), Runs)
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[Airflow]:
    """An Airflow with one DAG, which a triggerer and a worker carry out."""
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "counts.py").write_text(DAG)
    made = Airflow(tmp_path / "home", dags, connections={}, env={}, progress=print)
    try:
        made.start()
        made.api.wait_dags("counts")
        yield made
    finally:
        made.stop()


@pytest.mark.long
def test_a_killed_part_is_back_and_works(airflow: Airflow) -> None:
    """After each part was killed, a run with a deferred task still succeeds."""
    for part in ("api-server", "scheduler", "triggerer"):
        airflow.kill(part)

    run_id = airflow.api.trigger("counts", {})

    wait_until(lambda: airflow.api.state("counts", run_id) == "success", "the run")
    assert airflow.api.xcom("counts", run_id, "one") == 1
    airflow.check()


def test_requests_wait_for_the_api_server() -> None:
    """A request that finds no API server is repeated until one answers."""
    server = LateServer()
    api = AirflowApi(f"http://127.0.0.1:{server.port}", "token", check=server.look)
    try:
        assert api.state("counts", "run") == "success"
        assert server.looks == 2
    finally:
        api.close()
        server.stop()


def test_no_request_waits_for_a_part_that_was_given_up() -> None:
    """Once a part is given up, the request fails with the reason."""

    def check() -> None:
        raise ProgramError("4 times in a row")

    api = AirflowApi(f"http://127.0.0.1:{free_ports(1)[0]}", "token", check=check)
    with pytest.raises(ProgramError, match="4 times"):
        api.state("counts", "run")
    api.close()
