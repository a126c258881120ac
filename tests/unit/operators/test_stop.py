"""StopSparkStreamingOperator: asks once, defers, and ends with the proof."""

import time
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from tests.unit.operators.jobs import Job
from tests.unit.operators.worker import Worker, events, rebuild

ASKED = "failover:manual__1"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _stop(**settings: Any) -> StopSparkStreamingOperator:
    with DAG("failover", schedule=None):
        return StopSparkStreamingOperator(
            task_id="stop",
            control="{{ dag_run.conf.folder }}/control",
            checkpoint="{{ dag_run.conf.folder }}/checkpoint",
            **{"still_for": 0.05, "poll_interval": 0.02, **settings},
        )


def _written(job: Job) -> tuple[int, int]:
    """Return what changes when the request is written again; reading it changes neither."""
    found = (job.control / "stop-request.json").stat()
    return found.st_ino, found.st_mtime_ns


def test_a_stop_from_request_to_proof(worker: Worker, job: Job) -> None:
    """Deferred, polled as the triggerer does and resumed, the task returns the job's answer."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(_stop())
    assert deferred.classpath == "airflow_mm2_offsets.triggers.stop.SparkStoppedTrigger"
    assert job.asked() == ASKED
    job.acknowledge()
    began = time.monotonic()
    (event,) = events(rebuild(deferred))
    assert time.monotonic() - began >= 0.05
    assert worker.run(_stop(), after=deferred, event=event).type == "SucceedTask"
    assert worker.xcoms == {
        ("stop", "return_value"): {
            "request_id": ASKED,
            "application_id": "app-1",
            "batch_id": 0,
            "clean": True,
            "error": None,
        }
    }


def test_a_retry_asks_once(worker: Worker, job: Job) -> None:
    """Run again before and after the answer, the task leaves the request as it was written."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(_stop())
    written = _written(job)
    worker.run(_stop())
    job.acknowledge()
    deferred = worker.run(_stop())
    assert _written(job) == written
    (event,) = events(rebuild(deferred))
    assert event["result"]["request_id"] == ASKED


def test_the_request_can_be_named(worker: Worker, job: Job) -> None:
    """A request id of one's own is rendered and used."""
    worker.conf = {"folder": str(job.folder), "id": "by hand"}
    worker.run(_stop(request_id="{{ dag_run.conf.id }}"))
    assert job.asked() == "by hand"


def test_another_open_request_is_not_overwritten(worker: Worker, job: Job) -> None:
    """Of two failovers of one job the second fails, and says which one is under way."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(_stop())
    worker.run_id = "manual__2"
    with pytest.raises(StopError, match=f"the stop '{ASKED}' is open"):
        worker.run(_stop())
    assert job.asked() == ASKED


def test_a_control_location_that_no_job_has_is_refused(worker: Worker, tmp_path: Path) -> None:
    """Nothing waits for a job that can't answer."""
    worker.conf = {"folder": str(tmp_path)}
    with pytest.raises(StopError, match="no job has ever run with this control location"):
        worker.run(_stop())


def test_a_job_that_does_not_answer_is_told(worker: Worker, job: Job) -> None:
    """The error says how long was waited, for what, and what is known of the driver."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(_stop(timeout=0.05))
    (event,) = events(rebuild(deferred))
    with pytest.raises(StopError) as caught:
        worker.run(_stop(timeout=0.05), after=deferred, event=event)
    assert str(caught.value).startswith("waited 0 s for the proof that the Spark job has stopped: ")
    assert f"holds no acknowledgement of {ASKED} (driver h:7, heartbeat 1)" in str(caught.value)


def test_airflow_ends_the_wait_where_the_trigger_can_not(worker: Worker, job: Job) -> None:
    """Airflow's own limit lies beyond the trigger's, whose error says more."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(_stop(timeout=60))
    assert deferred.trigger_timeout.total_seconds() > 60
    assert rebuild(deferred).deadline == pytest.approx(time.time() + 60, abs=5)
