"""StopSparkStreamingOperator, when the job does not answer: timeout, silence and kill."""

import time
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Mover, job_at
from airflow_mm2_offsets.moves.stopping import Withdrawal, withdraw
from airflow_mm2_offsets.spark.control import StopProof, read_acknowledgement
from tests.unit.operators.clusters import define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import REQUEST_ID, stop_task
from tests.unit.operators.worker import Worker, events, rebuild


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _withdraw(job: Job) -> Withdrawal:
    """Withdraw the run's stop, as another try of its task does."""
    of_job = job_at(str(job.folder), UPath)
    return withdraw(Mover(of_job, "failover:manual__1", PLANNED, UPath), REQUEST_ID)


def test_a_job_that_does_not_answer_fails_the_stop(worker: Worker, job: Job) -> None:
    """The error says how long was waited, for what, and what is known of the driver."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task(timeout=0.05))
    (event,) = events(rebuild(deferred))
    with pytest.raises(StopError) as caught:
        worker.run(stop_task(timeout=0.05), after=deferred, event=event)
    assert str(caught.value).startswith("waited 0 s for the proof that the Spark job has stopped: ")
    assert f"holds no answer to {REQUEST_ID} (driver h:7, heartbeat 1)" in str(caught.value)
    assert job.requested_stop() is None
    assert [each.event for each in job.entries()] == [Event.ASK, Event.NOTE, Event.WITHDRAW]
    # Tried again, the same run asks again.
    worker.run(stop_task())
    assert job.requested_stop() == "failover:manual__1#4"


def test_airflow_ends_the_wait_where_the_trigger_can_not(worker: Worker, job: Job) -> None:
    """Airflow's own limit lies beyond the trigger's, whose error says more."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task(timeout=60))
    assert deferred.trigger_timeout.total_seconds() > 60
    assert rebuild(deferred).deadline == pytest.approx(time.time() + 60, abs=5)


def test_a_silent_driver_counts_as_dead_after_heartbeat_timeout(worker: Worker, job: Job) -> None:
    """Silence is the proof then, the XCom says so, and the request stops no later driver."""
    worker.conf = {"folder": str(job.folder)}
    job.beat(1, lease=0.1)
    task = stop_task(job={"heartbeat_timeout": 0.1})
    deferred = worker.run(task)
    began = time.monotonic()
    (event,) = events(rebuild(deferred))
    assert time.monotonic() - began >= 0.1
    worker.run(task, after=deferred, event=event)
    proof = worker.xcoms["stop", "return_value"]
    assert (
        proof.items()
        >= {
            "request_id": REQUEST_ID,
            "application_id": "app-1",
            "batch_id": None,
            "clean": False,
            "error": None,
            "proof": "silent",
        }.items()
    )
    answer = read_acknowledgement(str(job.control), REQUEST_ID)
    assert answer is not None
    assert answer.proof is StopProof.SILENT
    # Cleared and run again, it finds the same proof.
    (again,) = events(rebuild(worker.run(stop_task())))
    assert again["result"].items() <= proof.items()


def test_a_driver_that_stops_in_time_is_not_killed(worker: Worker, job: Job) -> None:
    """Its word comes first: no Spark connection is even there."""
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(job={"kill_after": 60})
    deferred = worker.run(task)
    job.acknowledge()
    (event,) = events(rebuild(deferred))
    worker.run(task, after=deferred, event=event)
    assert worker.xcoms["stop", "return_value"]["proof"] == "acknowledged"


def test_a_driver_that_can_not_be_killed_fails_the_task(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says where it runs; the request is withdrawn, and the driver runs on."""
    define(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(job={"kill_after": 0.0})
    deferred = worker.run(task)
    (event,) = events(rebuild(deferred))
    with pytest.raises(StopError, match="run this task on h, or end it there"):
        worker.run(task, after=deferred, event=event)
    assert job.requested_stop() is None


def test_a_stop_that_is_withdrawn_before_the_kill_kills_nothing(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the trigger's last look and a free worker, someone withdrew the stop."""
    define(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    killed: list[object] = []
    monkeypatch.setattr(SparkKillHook, "kill", lambda *of_it: killed.append(of_it))
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(job={"kill_after": 0.0})
    deferred = worker.run(task)
    (event,) = events(rebuild(deferred))
    assert "timeout" in event
    assert _withdraw(job) is Withdrawal.WITHDRAWN
    with pytest.raises(StopError, match=f"the stop '{REQUEST_ID}' was withdrawn"):
        worker.run(task, after=deferred, event=event)
    assert killed == []


def test_a_stop_that_is_withdrawn_after_its_proof_is_not_proved(worker: Worker, job: Job) -> None:
    """The driver's silence was seen, then someone withdrew the stop: another driver may run."""
    worker.conf = {"folder": str(job.folder)}
    job.beat(1, lease=0.1)
    task = stop_task(job={"heartbeat_timeout": 0.1})
    deferred = worker.run(task)
    (event,) = events(rebuild(deferred))
    assert event["result"]["proof"] == "silent"
    assert _withdraw(job) is Withdrawal.WITHDRAWN
    with pytest.raises(StopError, match=f"the stop '{REQUEST_ID}' was withdrawn"):
        worker.run(task, after=deferred, event=event)
    assert read_acknowledgement(str(job.control), REQUEST_ID) is None


@pytest.mark.parametrize(
    ("of_job", "message"),
    [
        (
            {"heartbeat_timeout": "soon"},
            "heartbeat_timeout is 'soon'; give seconds, or None for never",
        ),
        ({"kill_after": "-1"}, "kill_after is '-1'; give seconds"),
        ({"kill_after": float("nan")}, "kill_after is nan; give seconds"),
        ({"heartbeat_timeout": 700}, "would never pass, for the wait ends after timeout, 600 s"),
        ({"heartbeat_timeout": "60", "kill_after": 60}, "for the wait ends after kill_after, 60 s"),
        (
            {"is_controlled": False},
            "is_controlled=False, so it can't be asked to stop; cancel it on its platform",
        ),
    ],
)
def test_times_that_are_invalid_or_never_pass(
    worker: Worker, job: Job, of_job: dict[str, Any], message: str
) -> None:
    """They are refused before the job is asked to stop, and not ten minutes later."""
    worker.conf = {"folder": str(job.folder)}
    with pytest.raises(ConfigurationError, match=message):
        worker.run(stop_task(job=of_job))
    assert job.requested_stop() is None
