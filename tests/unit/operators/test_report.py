"""ReportFailoverOperator: what it writes, where, and when it fails."""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from upath import UPath

from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.spark.fence import mark_moved, new_fence
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, new_lock, read_lock
from airflow_mm2_offsets.spark.stopping import begin_stop
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

RUN = "failover:manual__1"
SECONDS = 1.5 if hasattr(RuntimeTaskInstance, "get_task_breadcrumbs") else None
"""What the worker says a task took; Airflow 3.1 can't be asked."""
MOVED = {
    **dict.fromkeys(("check", "stop_source", "submit_target", "wait_started"), "success"),
    "roll_back": "skipped",
}


@pytest.fixture
def job(tmp_path: Path, worker: Worker) -> Job:
    job = Job(tmp_path / "job", 4, 6)
    worker.conf = {"folder": str(job.folder)}
    acquire_lock(_places(job), new_lock(RUN, "planned"))
    begin_stop(str(job.control), new_fence(RUN, "the target"))
    return job


def _places(job: Job) -> LockPlaces:
    target = UPath(job.folder / "target" / "checkpoint")
    return LockPlaces(source=UPath(job.checkpoint), target=target)


def _task(**settings: Any) -> ReportFailoverOperator:
    folder = "{{ dag_run.conf.folder }}"
    with DAG("failover", schedule=None):
        task = ReportFailoverOperator(
            task_id="report",
            **{
                "checkpoint": f"{folder}/checkpoint",
                "control": f"{folder}/control",
                "target_checkpoint": f"{folder}/target/checkpoint",
                "reports": f"{folder}/reports",
                "source_folder": folder,
                **settings,
            },
        )
        for each in MOVED:
            EmptyOperator(task_id=each) >> task
    return task


def _written(job: Job) -> dict[str, Any]:
    (path,) = (job.folder / "reports").glob("failover__manual__1.*.json")
    return dict(json.loads(path.read_text()))


def test_no_login_of_a_location_is_reported(worker: Worker, job: Job) -> None:
    """Neither in XCom nor in the files nor in the summary, whichever task it came from."""
    worker.states = MOVED
    folder = "sftp://etl:hunter2@host/orders"
    intents = [f"mark the job as moved to {folder}"]
    stopped = {"proof": "asserted", "error": f"{folder} is out of reach"}
    worker.run(_task(source_folder=folder, target_folder=folder, stopped=stopped, intents=intents))
    shown = [
        str(worker.xcoms),
        *(path.read_text() for path in job.folder.rglob("*.*") if path.is_file()),
    ]
    assert "sftp://etl:***@host/orders" in shown[0]
    assert not [each for each in shown if "hunter2" in each]


def test_a_failover_that_moved_the_job(worker: Worker, job: Job) -> None:
    """One document in XCom and storage, the summary in both, and the lock is released."""
    worker.states = MOVED
    mark_moved(str(job.control), RUN, "the target")
    for _ in range(2):
        assert worker.run(_task(stopped={"proof": "acknowledged"})).type == "SucceedTask"
    report = worker.xcoms["report", "return_value"]
    assert {**_written(job), "files": report["files"]} == report
    assert (report["outcome"], report["mode"], report["failed"]) == ("moved", "planned", [])
    assert (report["stopped"], report["plan"], report["started"]) == (
        {"proof": "acknowledged"},
        None,
        None,
    )
    assert report["run"]["run_id"] == "manual__1"
    assert [step["task_id"] for step in report["steps"]] == [*MOVED]
    assert report["steps"][0] == {"task_id": "check", "state": "success", "seconds": SECONDS}
    assert report["remarks"] == []
    (summary,) = (job.folder / "reports").glob("*.md")
    assert summary.read_text() == worker.xcoms["report", "summary"]
    assert read_lock(UPath(job.checkpoint)) is None


def test_a_failover_that_failed(worker: Worker, job: Job) -> None:
    """The task fails for good with the failed task's name, and the report is there all the same."""
    worker.states = {**MOVED, "submit_target": "failed", "wait_started": "upstream_failed"}
    with pytest.raises(AirflowFailException, match=r"failed in submit_target \(failed_before_hand"):
        worker.run(_task())
    assert worker.xcoms["report", "return_value"]["failed"] == ["submit_target"]
    assert _written(job)["next"][0].startswith("The job has stopped, and no job runs on the target")
    # The job has stopped and may still be moved by this run.
    assert read_lock(UPath(job.checkpoint)) is not None
    mark_moved(str(job.control), RUN, "the target")
    with pytest.raises(AirflowFailException, match="failed_after_handover"):
        worker.run(_task())


def test_a_job_without_a_fence_stays_moved(worker: Worker, job: Job) -> None:
    """Its lock says so to the next failover."""
    worker.states = MOVED
    worker.run(_task(control=None, target_folder="s3://us/orders"))
    lock = read_lock(UPath(job.checkpoint))
    assert lock is not None
    assert lock.moved_to == "s3://us/orders"


def test_missing_parts_are_remarks(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage or an Airflow that does not answer fails no report."""
    del job

    def fail(_: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr("airflow_mm2_offsets.operators.report.steps_of", fail)
    worker.run(_task(checkpoint="bad://x", target_checkpoint="bad://y", reports="bad://z"))
    report = worker.xcoms["report", "return_value"]
    assert report["files"] == []
    text = " ".join(report["remarks"])
    for part in (
        "the states of the tasks: KeyError",
        "the fence or claim",
        "the lock: ",
        "only in",
    ):
        assert part in text


def test_a_dry_run(worker: Worker, job: Job) -> None:
    """Its intents are listed; a task that was skipped has none."""
    del job
    worker.states = dict.fromkeys(MOVED, "skipped")
    intents = [{"intent": "It would stop the job."}, None, "It would translate."]
    worker.run(_task(intents=intents, reports="None"))
    report = worker.xcoms["report", "return_value"]
    assert report["intents"] == ["It would stop the job.", "It would translate."]
    assert report["outcome"] == "dry_run"


def test_a_fence_that_stands_is_a_job_that_has_stopped(worker: Worker, job: Job) -> None:
    """The stop was answered too late for its task: the job does not run, whatever the states say.

    The report must not call it a job that runs on; and its lock stays.
    """
    worker.states = {"check": "success", "stop_source": "failed", "roll_back": "success"}
    with pytest.raises(AirflowFailException, match=r"\(failed_before_handover\)"):
        worker.run(_task(rollback={"done": "kept", "next": "Nothing was undone."}))
    assert read_lock(UPath(job.checkpoint)) is not None


def test_a_hand_over_that_nobody_can_look_up_may_have_been(worker: Worker, job: Job) -> None:
    """Nobody is told that no job runs on the target where fence and claim can't be read."""
    del job
    worker.states = {**MOVED, "wait_started": "failed"}
    with pytest.raises(AirflowFailException, match=r"\(failed_after_handover\)"):
        worker.run(_task(target_checkpoint="bad://y"))
