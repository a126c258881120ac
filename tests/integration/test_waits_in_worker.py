"""Waits in the worker of a real Airflow: the sensors in each mode, and the stop."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_mm2_offsets.job.stop.fences import Fences
from airflow_mm2_offsets.job.stop.requests import StopRequests
from airflow_mm2_offsets.moves.journal import Event, FenceState
from stack.airflow import Airflow
from stack.waiting import wait_until
from tests.unit.job.drivers import Files
from tests.unit.operators.spark_job import Job
from tests.unit.spark import checkpoints

PARTS = ("api-server", "scheduler", "dag-processor")
MODES = ("poke", "reschedule")
DAGS = Path(__file__).with_name("airflow_dags")


@pytest.fixture
def without_triggerer(tmp_path: Path) -> Iterator[Airflow]:
    """An Airflow without triggerer, whose sensors wait in the worker by default."""
    made = Airflow(tmp_path / "home", DAGS, connections={}, env={}, parts=PARTS, progress=print)
    try:
        made.start()
        made.api.wait_dags("sensors")
        yield made
    finally:
        made.stop()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job", 4, 6)


def _states(airflow: Airflow, dag_id: str, run_id: str) -> dict[str, str | None]:
    return {name: task.state for name, task in airflow.api.tasks(dag_id, run_id).items()}


def _end(airflow: Airflow, dag_id: str, run_id: str) -> dict[str, str | None]:
    """Wait for the end of a run; return the states of its tasks, none of which was retried."""
    ends = {"success", "failed"}
    wait_until(lambda: airflow.api.state(dag_id, run_id) in ends, f"the run of {dag_id}")
    logs = airflow.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}"
    assert not list(logs.glob("task_id=*/attempt=2.log"))
    return _states(airflow, dag_id, run_id)


@pytest.mark.long
def test_sensors_wait_in_each_mode(without_triggerer: Airflow, tmp_path: Path) -> None:
    """Sensors succeed, time out, skip and fail as in the triggerer; a slot is held or freed."""
    airflow = without_triggerer
    run_id = airflow.api.trigger("sensors", {"folder": str(tmp_path)})
    seen: dict[str, set[str | None]] = {mode: set() for mode in MODES}

    def are_waiting() -> bool:
        states = _states(airflow, "sensors", run_id)
        for mode in MODES:
            seen[mode].add(states[mode])
        return "running" in seen["poke"] and "up_for_reschedule" in seen["reschedule"]

    wait_until(are_waiting, "the sensors to wait")
    # Renamed into place, so that no sensor sees the first batch before the second one is there.
    checkpoints.simple(tmp_path / "written").rename(tmp_path / "checkpoint")

    states = _end(airflow, "sensors", run_id)
    assert "up_for_reschedule" not in seen["poke"]
    for mode in MODES:
        ends = {name: state for name, state in states.items() if name.startswith(mode)}
        assert ends == {
            mode: "success",
            f"{mode}_late": "failed",
            f"{mode}_skipped": "skipped",
            f"{mode}_unconnected": "failed",
        }
        assert airflow.api.xcom("sensors", run_id, mode) == {
            "batch_id": 1,
            "query_id": checkpoints.QUERY_ID,
            "positions": checkpoints.orders(4, 6),
        }
        late = airflow.log("sensors", run_id, f"{mode}_late")
        assert "TargetJobError: waited 3 s for the Spark job to commit its first batch: " in late
        assert "nothing/metadata: is missing" in late
        unconnected = airflow.log("sensors", run_id, f"{mode}_unconnected")
        assert "ConfigurationError: " in unconnected
        assert "connection nowhere does not exist" in unconnected


def test_a_job_answers_a_worker_that_waits(airflow: Airflow, job: Job) -> None:
    """The worker renews the stop request at each poke, so that the job obeys it."""
    files = cast("Any", Files(job.control))
    fences, requests = Fences(files, str(job.folder)), StopRequests(files)

    def look() -> str:
        begun = time.monotonic()
        return requests.look(fences.look(), begun) or ""

    run_id = airflow.api.trigger("stops", {"folder": str(job.folder)})
    wait_until(lambda: look().startswith(f"stops:{run_id}#"), "a stop that counts")
    signs: set[str] = set()

    def has_signed_thrice() -> bool:
        signs.add((job.read("stop-heartbeat.json") or {})["at"])
        return len(signs) == 3

    wait_until(has_signed_thrice, "three signs of life")
    assert airflow.api.tasks("stops", run_id)["stop"].state == "running"
    job.acknowledge()
    assert _end(airflow, "stops", run_id) == {"stop": "success"}
    assert airflow.api.xcom("stops", run_id, "stop")["proof"] == "acknowledged"


def _may_run(job: Job) -> bool:
    """Tell whether a job that was asked to stop runs on, by its journal and by its fence."""
    fence, last = job.fence(), job.entries()[-1]
    is_open = fence is not None and fence.state is FenceState.OPEN
    return is_open and last.event is Event.WITHDRAW


def test_a_stop_without_an_answer_is_withdrawn(airflow: Airflow, job: Job) -> None:
    """After the timeout the task fails without a retry, and the job runs on."""
    run_id = airflow.api.trigger("stops_in_vain", {"folder": str(job.folder)})
    assert _end(airflow, "stops_in_vain", run_id) == {"stop": "failed"}
    assert f"holds no answer to stops_in_vain:{run_id}#" in airflow.log(
        "stops_in_vain", run_id, "stop"
    )
    assert _may_run(job)


def test_a_stop_that_a_user_ends_is_withdrawn(airflow: Airflow, job: Job) -> None:
    """When a user marks the task failed, its process withdraws the stop before it ends."""
    run_id = airflow.api.trigger("stops", {"folder": str(job.folder)})
    wait_until(lambda: job.read("stop-heartbeat.json") is not None, "the stop")
    airflow.api.mark_failed("stops", run_id, "stop")
    wait_until(lambda: _may_run(job), "the withdrawal")
    assert _end(airflow, "stops", run_id) == {"stop": "failed"}
