"""StopSparkStreamingOperator without a triggerer: the worker asks, waits, and kills."""

import time
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.job.stop import requests
from airflow_mm2_offsets.job.stop.fences import Fences
from airflow_mm2_offsets.job.stop.requests import SIGN_SECONDS, StopRequests
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.control import Driver
from tests.unit.job.drivers import Files
from tests.unit.operators.clusters import define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import REQUEST_ID, stop_task
from tests.unit.operators.worker import Worker


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


class _Driver:
    """A job that looks for a stop while the worker sleeps; its clock stands in for ``time``."""

    def __init__(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        self.job = job
        self.now = 1000.0
        self.looks: list[str | None] = []
        monkeypatch.setattr(requests, "time", self)
        files = cast("Any", Files(job.control))
        self.fences = Fences(files, str(job.folder))
        self.requests = StopRequests(files)
        monkeypatch.setattr(time, "sleep", self.look)

    def monotonic(self) -> float:
        return self.now

    def look(self, _: float) -> None:
        """Look, and answer at the sixth look."""
        if len(self.looks) == 6:
            return
        self.now += SIGN_SECONDS / 2
        self.looks.append(self.requests.look(self.fences.look(), self.now))
        if len(self.looks) == 6:
            self.job.acknowledge()


@pytest.mark.parametrize("answers", [True, False])
def test_a_stop_without_a_triggerer(worker: Worker, job: Job, answers: bool) -> None:  # noqa: FBT001
    """The worker asks, waits and returns the proof; without one it withdraws the stop."""
    worker.conf = {"folder": str(job.folder)}
    if answers:
        job.acknowledge(request_id=REQUEST_ID)
        assert worker.run(stop_task(deferrable=False)).type == "SucceedTask"
        assert worker.xcoms["stop", "return_value"]["proof"] == "acknowledged"
        return
    with pytest.raises(StopError, match=f"holds no answer to {REQUEST_ID}") as caught:
        worker.run(stop_task(deferrable=False, timeout=0.05))
    assert isinstance(caught.value, AirflowFailException)
    assert job.requested_stop() is None


def test_the_worker_gives_the_signs_of_life_that_the_job_waits_for(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job stops only for a task that waits: each look of the worker shows it."""
    driver = _Driver(job, monkeypatch)
    worker.conf = {"folder": str(job.folder)}
    assert worker.run(stop_task(deferrable=False, timeout=10.0)).type == "SucceedTask"
    assert worker.xcoms["stop", "return_value"]["proof"] == "acknowledged"
    assert driver.looks == [REQUEST_ID] * 6


def test_a_kill_without_a_triggerer(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker kills the driver that did not stop, and waits for its silence."""
    killed: list[Driver | None] = []

    def kill(_: SparkKillHook, driver: Driver | None) -> bool:
        killed.append(driver)
        return True

    define(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    monkeypatch.setattr(SparkKillHook, "kill", kill)
    job.beat(1, lease=0.1)
    worker.conf = {"folder": str(job.folder)}
    assert worker.run(stop_task(deferrable=False, job={"kill_after": 0.1})).type == "SucceedTask"
    (driver,) = killed
    assert driver is not None
    assert driver.pid == 7
    assert worker.xcoms["stop", "return_value"]["proof"] == "killed"


def test_a_task_that_is_ended_while_the_worker_waits_kills_nothing(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow calls on_kill in the wait's own thread, which then goes on for some seconds."""
    task = stop_task(deferrable=False, job={"kill_after": 60.0}, timeout=60.0)
    killed: list[object] = []
    monkeypatch.setattr(SparkKillHook, "kill", lambda *of_it: killed.append(of_it))
    running: list[StopSparkStreamingOperator] = []  # Airflow runs a copy of the task
    wait = StopSparkStreamingOperator._wait  # noqa: SLF001

    def note(task: StopSparkStreamingOperator, *of_it: Any, **more: Any) -> Any:  # noqa: ANN401
        running.append(task)
        return wait(task, *of_it, **more)

    monkeypatch.setattr(StopSparkStreamingOperator, "_wait", note)
    monkeypatch.setattr(time, "sleep", lambda _: running[-1].on_kill())
    worker.conf = {"folder": str(job.folder)}
    with pytest.raises(StopError, match=f"the stop '{REQUEST_ID}' was withdrawn"):
        worker.run(task)
    assert killed == []
    assert job.requested_stop() is None
