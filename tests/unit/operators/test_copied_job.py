"""A copy of a job's folder, given for the job's own: its old words prove nothing."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.fence import new_fence, raise_fence, read_fence
from airflow_mm2_offsets.spark.handover import confirm_handover
from airflow_mm2_offsets.spark.originals import JobLocations, is_beating
from airflow_mm2_offsets.spark.stopping import begin_stop, forget_stop
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

REQUEST_ID = "failover:manual__1"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job", 4, 6)


def _copy(job: Job, name: str = "backup") -> Job:
    """Return a copy of a job's folder, as a backup leaves it."""
    copy = Job.__new__(Job)
    copy.folder = job.folder.with_name(name)
    copy.checkpoint, copy.control = copy.folder / "checkpoint", copy.folder / "control"
    shutil.copytree(job.folder, copy.folder)
    return copy


def _stop(job: Job, **settings: Any) -> StopSparkStreamingOperator:
    with DAG("failover", schedule=None):
        return StopSparkStreamingOperator(
            task_id="stop",
            control=str(job.control),
            checkpoint=str(job.checkpoint),
            quiet_period=0.05,
            poll_interval=0.02,
            deferrable=True,
            **settings,
        )


def _run(worker: Worker, task: StopSparkStreamingOperator, *, meanwhile: Any = None) -> Any:  # noqa: ANN401
    """Run a stop to its proof; return its result."""
    deferred = worker.run(task)
    if meanwhile is not None:
        meanwhile()
    (event,) = events(rebuild(deferred))
    worker.run(task, after=deferred, event=event)
    return worker.xcoms["stop", "return_value"]


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _stopped_before(job: Job) -> None:
    """Let an earlier run of a failover stop the job; nothing has followed."""
    begin_stop(str(job.control), new_fence("failover:earlier", "the target"))
    job.acknowledge(queries=[job.query_answer(0)])


def _ended(job: Job) -> None:
    job.beat(1, ended=True, lease=0.01)


@pytest.mark.parametrize("stopped", [_ended, _stopped_before])
def test_a_copy_that_says_the_job_has_stopped(worker: Worker, job: Job, stopped: Any) -> None:  # noqa: ANN401
    """It is refused before anything is written to it; the job's own folder passes."""
    stopped(job)
    copy = _copy(job)
    before = _files(copy.folder)
    with pytest.raises(StopError) as refused:
        worker.run(_stop(copy))
    message = str(refused.value)
    assert f"{copy.control} is not the control location of the job, which writes to " in message
    assert f"file:{job.control}" in message
    assert "Give the job's own" in message
    assert _files(copy.folder) == before
    assert _run(worker, _stop(job))["proof"] in {"ended", "acknowledged"}


def test_a_copy_in_which_nothing_beats(worker: Worker, job: Job) -> None:
    """Silence proves nothing there: the stop fails and is withdrawn."""
    copy = _copy(job)
    job.beat(1, lease=0.01)
    copy.beat(1, lease=0.01, **_names(job))
    with pytest.raises(StopError, match="is not the control location of the job"):
        _run(worker, _stop(copy, heartbeat_timeout=0.1))
    assert (copy.requested_stop(), read_fence(str(copy.control))) == (None, None)
    assert _run(worker, _stop(job, heartbeat_timeout=0.1))["proof"] == "silent"


def _names(job: Job) -> dict[str, Any]:
    """Return the names that a job writes of itself."""
    return {
        name: value
        for name, value in json.loads((job.control / "driver.json").read_text()).items()
        if name in {"control", "queries"}
    }


def test_a_copy_of_the_checkpoint_alone(worker: Worker, job: Job) -> None:
    """A driver that is gone says nothing of where it came to, so the folder must be its own."""
    copy = _copy(job)
    job.beat(1, lease=0.01)
    task = _stop(job, heartbeat_timeout=0.1)
    task.checkpoint = str(copy.checkpoint)
    with pytest.raises(StopError, match="is not the checkpoint location of the job"):
        _run(worker, task)


def test_a_job_that_does_not_write_its_locations(worker: Worker, job: Job) -> None:
    """Of an older release: its silence could be a copy's."""
    job.beat(1, lease=0.01, control=None)
    with pytest.raises(StopError, match="does not write where its control location is"):
        _run(worker, _stop(job, heartbeat_timeout=0.1))


MOUNTED = "hdfs://namenode:8020/jobs/orders"


def _mounted(job: Job, **more: Any) -> None:
    """Let Spark name the job's folder otherwise than Airflow does."""
    (query,) = _names(job)["queries"]
    queries = [{**query, "checkpoint": f"{MOUNTED}/checkpoint"}]
    job.beat(1, control=f"{MOUNTED}/control", queries=queries, lease=0.01, **more)


def test_a_mounted_folder_is_proved_by_the_job_s_answer(worker: Worker, job: Job) -> None:
    """The job has read this very stop there, and has committed what the checkpoint ends with."""
    _mounted(job)
    answer = _run(
        worker, _stop(job), meanwhile=lambda: job.acknowledge(queries=[job.query_answer(0, 4, 6)])
    )
    assert answer["proof"] == "acknowledged"
    assert _run(worker, _stop(job)) == answer  # cleared and run again
    _hand_over(job, job.checkpoint)


def test_a_mounted_folder_of_a_silent_job_needs_a_word(worker: Worker, job: Job) -> None:
    """The user's word names Spark's folder; it must be the one that the job writes."""
    _mounted(job)
    with pytest.raises(StopError, match=f"give spark_control='{MOUNTED}/control' with it"):
        _run(worker, _stop(job, heartbeat_timeout=0.1))
    word = {"spark_control": f"{MOUNTED}/control/", "spark_checkpoint": f"{MOUNTED}/checkpoint"}
    wrong = {**word, "spark_checkpoint": "hdfs://other/jobs/orders/checkpoint"}
    with pytest.raises(
        StopError, match="hdfs://other/jobs/orders/checkpoint is not the checkpoint"
    ):
        _run(worker, _stop(job, heartbeat_timeout=0.1, **wrong))
    assert _run(worker, _stop(job, heartbeat_timeout=0.1, **word))["proof"] == "silent"
    _hand_over(job, job.checkpoint)


def test_a_driver_that_a_copy_names_is_not_killed(worker: Worker, job: Job) -> None:
    """No Spark connection is even asked for."""
    copy = _copy(job)
    with pytest.raises(StopError, match=r"nothing was killed: .* is not the control location"):
        _run(worker, _stop(copy, kill_after=0.0))


def test_a_copy_of_the_same_stop(job: Job) -> None:
    """A fence is of the folder that it was raised in: copied with a named stop, it is refused."""
    raise_fence(str(job.control), new_fence(REQUEST_ID, "the target"))
    copy = _copy(job)
    with pytest.raises(StopError, match=f"so {copy.control} is a copy"):
        begin_stop(str(copy.control), new_fence(REQUEST_ID, "the target"))


def test_a_copy_that_has_answered_a_stop_of_the_same_name(worker: Worker, job: Job) -> None:
    """A named stop was answered and its fence lifted, before the copy was made."""
    begin_stop(str(job.control), new_fence(REQUEST_ID, "the target"))
    job.acknowledge(queries=[job.query_answer(0)])
    forget_stop(str(job.control), REQUEST_ID)
    copy = _copy(job)
    with pytest.raises(StopError, match="is not the control location of the job"):
        worker.run(_stop(copy))
    assert read_fence(str(copy.control)) is None


def _hand_over(job: Job, checkpoint: Path) -> None:
    read = {
        "committed_batch": 0,
        "pending_batch": None,
        "pending": None,
        "positions": '{"orders":{"0":4,"1":6}}',
        "query_id": checkpoints.QUERY_ID,
        "driver_run_id": "r",
        "heartbeat": 1,
    }
    confirm_handover(
        control=UPath(job.control), checkpoint=UPath(checkpoint), request_id=REQUEST_ID, read=read
    )


def test_the_hand_over_wants_what_was_proved(worker: Worker, job: Job) -> None:
    """Another checkpoint than the stop's is refused, though it says the same today."""
    _run(worker, _stop(job), meanwhile=lambda: job.acknowledge(queries=[job.query_answer(0, 4, 6)]))
    copy = _copy(job)
    _hand_over(job, job.checkpoint)
    with pytest.raises(HandoverError, match="for which the stop was proved"):
        _hand_over(job, copy.checkpoint)
    with pytest.raises(HandoverError, match="for which the stop was proved"):
        _hand_over(copy, copy.checkpoint)


def test_a_hand_over_without_a_proof_compares_the_job_s_names(job: Job) -> None:
    """Somebody has marked the stop as successful: without the job's answer nothing is started."""
    begin_stop(str(job.control), new_fence(REQUEST_ID, "the target"))
    with pytest.raises(HandoverError, match="holds no proof that the stop"):
        _hand_over(job, job.checkpoint)
    job.acknowledge(queries=[job.query_answer(0, 4, 6)])
    copy = _copy(job)
    _hand_over(job, job.checkpoint)
    with pytest.raises(HandoverError, match="is not the control location of the job"):
        _hand_over(copy, copy.checkpoint)


def test_a_heartbeat(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that beats lives; one that stands still does not, nor one whose queries ended."""
    control = UPath(job.control)
    job.beat(1, interval=0.05)
    locations = JobLocations(control=control, checkpoint=UPath(job.checkpoint))
    driver = read_driver(control)
    assert driver is not None
    assert locations.problems(driver) == []
    assert not is_beating(control, driver)
    for ended in (False, True):
        monkeypatch.setattr(time, "sleep", lambda _, ended=ended: job.beat(2, ended=ended))
        job.beat(1, interval=60.0)
        driver = read_driver(control)
        assert driver is not None
        assert is_beating(control, driver) is not ended
