"""Airflow as the demo and the tests run it: on PostgreSQL, its parts started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.airflow import Airflow
from stack.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
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


def test_a_killed_part_is_back_and_works(airflow: Airflow) -> None:
    """After each part has been killed, a run with a deferred task comes to its end."""
    for part in ("api-server", "scheduler", "triggerer"):
        airflow.kill(part)

    run_id = airflow.api.trigger("counts", {})

    wait_until(lambda: airflow.api.state("counts", run_id) == "success", "the run", seconds=120)
    assert airflow.api.xcom("counts", run_id, "one") == 1
    airflow.check()
