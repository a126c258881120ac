"""An old control location of a job that runs with another one: its files are out of date."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.spark.handover import confirm_handover
from airflow_mm2_offsets.spark.stopping import request_stop
from tests.unit.operators.checks import check, problems
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import stop_task
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

ENDED = {"ended": True, "lease": 0.01}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has read topic orders, of four partitions."""
    return Job(tmp_path / "source", 4, 0, 0, 0)


def _note(job: Job, control: str) -> None:
    """Let a driver run with a control location."""
    note = {"schema_version": 1, "control": control, "application_id": "app-2"}
    job.checkpoint.with_name("checkpoint.control.json").write_text(json.dumps(note))


def _query(job: Job, batch_id: int | None) -> dict[str, Any]:
    names = {"query_id": checkpoints.QUERY_ID, "run_id": "r"}
    return {**names, "checkpoint": f"file:{job.checkpoint}", "batch_id": batch_id}


def _stop(worker: Worker, job: Job, *, meanwhile: Any = None, **settings: Any) -> str:  # noqa: ANN401
    """Run a stop to its end; return its proof."""
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(**settings)
    deferred = worker.run(task)
    if meanwhile is not None:
        meanwhile()
    (event,) = events(rebuild(deferred))
    worker.run(task, after=deferred, event=event)
    return str(worker.xcoms["stop", "return_value"]["proof"])


def _answered(job: Job) -> None:
    request_stop(str(job.control), "failover:earlier")
    job.acknowledge(queries=[job.query_answer(0)])


@pytest.mark.parametrize(
    "say", [lambda job: job.beat(5, **ENDED), lambda job: job.beat(5, lease=0.01), _answered]
)
def test_a_stop_by_an_old_control_location_is_refused(worker: Worker, job: Job, say: Any) -> None:  # noqa: ANN401
    """It ended, died or was stopped there; the job lives with the new one, and would go on."""
    say(job)
    _note(job, "s3a://lake/control2")
    with pytest.raises(StopError) as refused:
        _stop(worker, job, heartbeat_timeout=0.1)
    note = job.checkpoint.with_name("checkpoint.control.json")
    assert str(refused.value).startswith(
        f"{note} says that the job runs with the control location s3a://lake/control2, and not "
        f"with {job.control}"
    )
    assert read_fence(str(job.control)) is None
    _note(job, f"file:{job.control}/")
    assert _stop(worker, job, heartbeat_timeout=0.1) in {"ended", "silent", "acknowledged"}


@pytest.mark.parametrize("answers", [False, True])
def test_a_job_that_changes_its_control_location_while_it_is_stopped(
    worker: Worker, job: Job, *, answers: bool
) -> None:
    """The note is read again with the proof; the stop is withdrawn."""
    job.beat(5, **ENDED)

    def change() -> None:
        _note(job, "s3a://lake/control2")
        if answers:
            job.acknowledge(queries=[job.query_answer(0, 4, 0, 0, 0)])

    with pytest.raises(StopError, match="runs with the control location s3a://lake/control2"):
        _stop(worker, job, meanwhile=change)
    assert (read_fence(str(job.control)) is not None) is answers


def test_a_driver_of_an_old_control_location_is_not_killed(worker: Worker, job: Job) -> None:
    """The stop was asked before the job changed it; no Spark connection is even asked for."""
    job.beat(5, lease=0.01)
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(kill_after=0.0)
    deferred = worker.run(task)
    _note(job, "s3a://lake/control2")
    (event,) = events(rebuild(deferred))
    with pytest.raises(StopError, match=r"nothing was killed: .* s3a://lake/control2"):
        worker.run(task, after=deferred, event=event)


@pytest.mark.usefixtures("all_copied")
def test_check_names_both_control_locations(worker: Worker, job: Job) -> None:
    """Before anything is stopped, and though the job's own heartbeat may move."""
    _note(job, "s3a://lake/control2")
    (problem,) = problems(worker, check(job))
    assert f"s3a://lake/control2, and not with {job.control}" in problem
    _note(job, f"file:{job.control}")
    assert worker.run(check(job)).type == "SucceedTask"


def test_a_note_in_another_spelling(worker: Worker, job: Job) -> None:
    """Airflow may reach the folder by a mount: note and driver are both the job's own words."""
    mounted = "hdfs://namenode:8020/jobs/orders/control"
    job.beat(5, lease=0.01, control=mounted)
    _note(job, mounted)
    assert _stop(worker, job, heartbeat_timeout=0.1, spark_control=mounted) == "silent"


def test_the_hand_over_reads_the_note_again(worker: Worker, job: Job) -> None:
    """The job may have been started with another control location since."""
    job.beat(5, **ENDED)
    _stop(worker, job)
    read = {
        "committed_batch": 0,
        "pending_batch": None,
        "pending": None,
        "positions": checkpoints.orders(4, 0, 0, 0),
        "query_id": checkpoints.QUERY_ID,
        "driver_run_id": "r",
        "heartbeat": 5,
    }
    hand_over = partial(
        confirm_handover,
        control=UPath(job.control),
        checkpoint=UPath(job.checkpoint),
        request_id="failover:manual__1",
        read=read,
    )
    hand_over()
    _note(job, "s3a://lake/control2")
    with pytest.raises(HandoverError, match="runs with the control location s3a://lake/control2"):
        hand_over()


@pytest.mark.usefixtures("all_copied")
@pytest.mark.parametrize("last_batch", [0, None])
def test_a_checkpoint_that_has_gone_on_since_the_job_ended(
    worker: Worker, job: Job, last_batch: int | None
) -> None:
    """A job without StopControl, or one that can't write the note, has run: both batches named."""
    job.beat(5, **ENDED, queries=[_query(job, last_batch)])
    if last_batch is not None:
        assert worker.run(check(job)).type == "SucceedTask"
        job.commit(1, 5, 0, 0, 0)
    now, then = (1, "0") if last_batch == 0 else (0, "none")
    expected = f"the last committed batch is {now}, and it was {then} when the queries"
    (problem,) = problems(worker, check(job))
    assert expected in problem
    with pytest.raises(StopError, match=expected):
        _stop(worker, job)
    job.beat(6, **ENDED, queries=[_query(job, now)])
    assert _stop(worker, job) == "ended"
