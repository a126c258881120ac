"""StopSparkStreamingOperator: asks once, defers, and ends with the proof."""

import asyncio
import time
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.spark import stopping
from airflow_mm2_offsets.spark.control_files import write_object
from airflow_mm2_offsets.spark.fence import Fence, mark_moved, read_fence
from airflow_mm2_offsets.triggers.stop import withdraw
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import REQUEST_ID, stop_task
from tests.unit.operators.worker import Worker, events, rebuild

try:
    from airflow.sdk.exceptions import TaskDeferralError
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import TaskDeferralError  # type: ignore[no-redef]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _written(job: Job) -> tuple[int, int]:
    """Return what changes when the request is written again; reading it changes neither."""
    found = (job.control / "stop-request.json").stat()
    return found.st_ino, found.st_mtime_ns


def test_a_stop_from_request_to_proof(worker: Worker, job: Job) -> None:
    """Deferred, polled as the triggerer does and resumed, the task returns the job's answer."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    assert deferred.classpath == "airflow_mm2_offsets.triggers.stop.SparkStoppedTrigger"
    assert job.requested_stop() == REQUEST_ID
    job.acknowledge()
    began = time.monotonic()
    (event,) = events(rebuild(deferred))
    assert time.monotonic() - began >= 0.05
    assert worker.run(stop_task(), after=deferred, event=event).type == "SucceedTask"
    assert worker.xcoms == {
        ("stop", "return_value"): {
            "request_id": REQUEST_ID,
            "application_id": "app-1",
            "batch_id": 0,
            "clean": True,
            "error": None,
            "proof": "acknowledged",
        }
    }


def test_a_retry_asks_once(worker: Worker, job: Job) -> None:
    """Run again before and after the answer, the task leaves the request as it was written."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(stop_task())
    written = _written(job)
    worker.run(stop_task())
    job.acknowledge()
    deferred = worker.run(stop_task())
    assert _written(job) == written
    (event,) = events(rebuild(deferred))
    assert event["result"]["request_id"] == REQUEST_ID


def test_the_fence_stands_before_the_job_is_asked_and_after_it_has_stopped(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is started again in between finds it; it names the run and the target."""
    worker.conf = {"folder": str(job.folder)}
    before: list[Fence | None] = []

    def note(path: UPath, values: dict[str, object]) -> None:
        before.append(read_fence(str(job.control)))
        write_object(path, values)

    monkeypatch.setattr(stopping, "write_object", note)
    task = stop_task(moved_to="{{ dag_run.conf.folder }}/target")
    deferred = worker.run(task)
    (fence,) = before
    assert fence is not None
    assert (fence.request_id, fence.moved_to) == (REQUEST_ID, f"{job.folder}/target")
    job.acknowledge()
    (event,) = events(rebuild(deferred))
    worker.run(task, after=deferred, event=event)
    assert read_fence(str(job.control)) == fence


def test_a_task_that_is_killed_withdraws_its_stop(worker: Worker, job: Job) -> None:
    """Marked failed, cleared or ended while it runs or is deferred: the job runs on untouched."""
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(control=str(job.control), request_id=REQUEST_ID)
    deferred = worker.run(task)
    task.on_kill()
    assert (job.requested_stop(), read_fence(str(job.control))) == (None, None)
    deferred = worker.run(task)
    assert job.requested_stop() == REQUEST_ID
    asyncio.run(rebuild(deferred).on_kill())
    assert (job.requested_stop(), read_fence(str(job.control))) == (None, None)
    # The trigger that another try left behind does not wait for an answer that can't come.
    (event,) = events(rebuild(deferred))
    assert f"the stop '{REQUEST_ID}' was withdrawn" in event["error"]["message"]


def test_a_kill_that_lacks_its_connection_is_not_retried(worker: Worker, job: Job) -> None:
    """The wrong setting shows only after the wait; it fails the task at once all the same."""
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(kill_after=0.0, spark_conn_id="nowhere")
    deferred = worker.run(task)
    (event,) = events(rebuild(deferred))
    with pytest.raises(ConfigurationError) as caught:
        worker.run(task, after=deferred, event=event)
    assert isinstance(caught.value, AirflowFailException)
    assert (job.requested_stop(), read_fence(str(job.control))) == (None, None)


def test_airflows_own_limit_withdraws_the_stop_too(worker: Worker, job: Job) -> None:
    """The triggerer was down all the time, so Airflow calls no method but resume_execution."""
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(control=str(job.control), request_id=REQUEST_ID)
    worker.run(task)
    with pytest.raises(TaskDeferralError):
        task.resume_execution("__fail__", {"error": "the triggerer is gone"}, {})
    assert (job.requested_stop(), read_fence(str(job.control))) == (None, None)


def test_a_job_that_stopped_before_its_stop_was_withdrawn_stays_fenced(
    worker: Worker, job: Job
) -> None:
    """The log says that it HAS stopped, and how to let it run again."""
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(control=str(job.control), request_id=REQUEST_ID)
    worker.run(task)
    job.acknowledge()
    line = withdraw(task)
    assert "the job HAS stopped, or is about to, and its fence stands" in line
    assert f"fence lift {job.control} --request-id '{REQUEST_ID}'" in line
    assert read_fence(str(job.control)) is not None


def test_a_new_run_gets_over_a_job_that_a_failed_one_has_stopped(worker: Worker, job: Job) -> None:
    """The earlier answer is the proof where nothing has followed; the fence is the new run's."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(stop_task())
    job.acknowledge(queries=[job.query_answer(0)])
    worker.run_id = "manual__2"
    deferred = worker.run(stop_task())
    (event,) = events(rebuild(deferred))
    worker.run(stop_task(), after=deferred, event=event)
    result = worker.xcoms["stop", "return_value"]
    assert (result["request_id"], result["proof"]) == ("failover:manual__2", "acknowledged")
    assert (result["batch_id"], result["clean"]) == (0, True)
    fence = read_fence(str(job.control))
    assert fence is not None
    assert fence.request_id == "failover:manual__2"
    # The first one, cleared, can't hand over what is not its own any more.
    with pytest.raises(StopError, match="the fence is not of 'failover:manual__1'"):
        mark_moved(str(job.control), REQUEST_ID, "the target")


def test_a_job_that_another_run_has_moved_is_not_moved_again(worker: Worker, job: Job) -> None:
    """The second run fails before it asks anything, and names the first."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    job.acknowledge(queries=[job.query_answer(0)])
    (event,) = events(rebuild(deferred))
    worker.run(stop_task(), after=deferred, event=event)
    mark_moved(str(job.control), REQUEST_ID, "s3://lake/target")
    worker.run_id = "manual__2"
    with pytest.raises(StopError, match=f"was moved to s3://lake/target by '{REQUEST_ID}'"):
        worker.run(stop_task())
    assert job.requested_stop() == REQUEST_ID


def test_the_request_can_be_named(worker: Worker, job: Job) -> None:
    """A request id of one's own is rendered and used."""
    worker.conf = {"folder": str(job.folder), "id": "by hand"}
    worker.run(stop_task(request_id="{{ dag_run.conf.id }}"))
    assert job.requested_stop() == "by hand"


def test_another_open_request_is_not_overwritten(worker: Worker, job: Job) -> None:
    """Of two failovers of one job the second fails, and says which one is under way."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(stop_task())
    worker.run_id = "manual__2"
    with pytest.raises(StopError, match=f"the stop '{REQUEST_ID}' is open"):
        worker.run(stop_task())
    assert job.requested_stop() == REQUEST_ID


def test_a_control_location_that_no_job_has_is_refused(worker: Worker, tmp_path: Path) -> None:
    """Nothing waits for a job that can't answer."""
    worker.conf = {"folder": str(tmp_path)}
    with pytest.raises(StopError, match="no job has ever run with this control location"):
        worker.run(stop_task())
