"""A folder that the job has left: a copy, or an old control location. Its words prove nothing."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, StopError
from airflow_mm2_offsets.moves.handover import confirm_stopped
from airflow_mm2_offsets.moves.journal import FenceState
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from tests.unit.operators.mover import Mover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import stop_task
from tests.unit.operators.worker import Worker, events, rebuild

MOUNTED = "hdfs://namenode:8020/jobs/orders"
ENDED = {"ended": True, "lease": 0.01}
QUICK = {"quiet_period": 0.05, "poll_interval": 0.02, "deferrable": True, "timeout": 5}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job", 4, 6)


def _copy(job: Job) -> Job:
    """Return a copy of a job's folder, as a backup leaves it."""
    copy = Job.at(job.folder.with_name("backup"))
    shutil.copytree(job.folder, copy.folder)
    return copy


def _stop(worker: Worker, job: Job, *, meanwhile: Any = None, **of_job: Any) -> str:  # noqa: ANN401
    """Run a stop to its proof; return it. ``of_job`` are further fields of the job."""
    task = stop_task(job={"homes": {"east": str(job.folder)}, **of_job})
    deferred = worker.run(task)
    if meanwhile is not None:
        meanwhile()
    (event,) = events(rebuild(deferred))
    worker.run(task, after=deferred, event=event)
    return str(worker.xcoms["stop", "return_value"]["proof"])


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _is_open(job: Job) -> bool:
    fence = job.fence()
    return fence is None or fence.state is FenceState.OPEN


def _names(job: Job) -> dict[str, Any]:
    """Return the names that a job writes of itself."""
    driver = json.loads((job.control / "driver.json").read_text())
    return {name: driver[name] for name in ("control", "queries")}


def _note(job: Job, control: str) -> None:
    """Let a driver run with a control location."""
    note = {"schema_version": 1, "control": control, "application_id": "app-2"}
    job.checkpoint.with_name("checkpoint.control.json").write_text(json.dumps(note))


def _answered(job: Job) -> None:
    job.acknowledge(request_id="failover:earlier#1", queries=[job.query_answer(0)])


class TestCopy:
    """A copy shows an old state of the job, which may run elsewhere."""

    @pytest.mark.parametrize("says", [lambda job: job.beat(1, **ENDED), _answered])
    def test_that_says_the_job_has_stopped(
        self, worker: Worker, job: Job, says: Callable[[Job], None]
    ) -> None:
        """It is refused before anything is written to it; the job's own folder passes."""
        says(job)
        copy = _copy(job)
        before = _files(copy.folder)
        with pytest.raises(StopError) as refused:
            _stop(worker, copy)
        message = str(refused.value)
        assert f"{copy.control} is not the control location of the job, which writes to " in message
        assert f"file:{job.control}" in message
        assert "Give the job's own" in message
        assert _files(copy.folder) == before
        assert _stop(worker, job) in {"ended", "acknowledged"}

    def test_in_which_nothing_beats(self, worker: Worker, job: Job) -> None:
        """Silence proves nothing there: the stop fails and is withdrawn. Nothing is killed."""
        job.beat(1, lease=0.01)
        copy = _copy(job)
        with pytest.raises(StopError, match="is not the control location of the job"):
            _stop(worker, copy, heartbeat_timeout=0.1)
        assert _is_open(copy)
        with pytest.raises(StopError, match=r"nothing was killed: .* is not the control location"):
            _stop(worker, copy, kill_after=0.0)
        assert _stop(worker, job, heartbeat_timeout=0.1) == "silent"

    def test_of_the_checkpoint_alone(self, worker: Worker, job: Job) -> None:
        """A driver that is gone says nothing of where it came to, so the folder must be its own."""
        (query,) = _names(job)["queries"]
        job.beat(1, lease=0.01, queries=[{**query, "checkpoint": "file:/elsewhere"}])
        with pytest.raises(StopError, match="is not the checkpoint location of the job"):
            _stop(worker, job, heartbeat_timeout=0.1)

    def test_of_a_home_with_a_journal(self, worker: Worker, job: Job) -> None:
        """Its fence is the home's, and its journal says where the job is."""
        _stop(worker, job, meanwhile=partial(job.acknowledge, queries=[job.query_answer(0)]))
        copy = _copy(job)
        with pytest.raises(ConfigurationError, match=f"says that it lives in {job.folder}"):
            _stop(worker, copy)

    def test_a_job_that_does_not_write_its_locations(self, worker: Worker, job: Job) -> None:
        """Of an older release: its silence could be a copy's."""
        job.beat(1, lease=0.01, control=None)
        with pytest.raises(StopError, match="does not write where its control location is"):
            _stop(worker, job, heartbeat_timeout=0.1)


class TestMountedFolder:
    """Spark names the job's folder otherwise than Airflow does."""

    @pytest.fixture
    def mover(self, mover: Mover) -> Mover:
        """The same job, whose driver is silent."""
        (query,) = _names(mover.source)["queries"]
        names = {"control": f"{MOUNTED}/control", "lease": 0.01}
        mover.source.beat(1, queries=[{**query, "checkpoint": f"{MOUNTED}/checkpoint"}], **names)
        return mover

    def test_is_proved_by_the_job_s_answer(self, mover: Mover) -> None:
        """The job has read this very stop there, and committed what the checkpoint ends with."""
        deferred = mover.worker.run(mover.task(StopSparkStreamingOperator, **QUICK))
        mover.source.acknowledge(queries=[mover.source.query_answer(0, 4, 6, 3, 2)])
        (event,) = events(rebuild(deferred))
        mover.worker.run(mover.task(StopSparkStreamingOperator), after=deferred, event=event)
        proof = mover.run(StopSparkStreamingOperator, **QUICK)  # cleared and run again
        assert proof["proof"] == "acknowledged"
        confirm_stopped(mover.steps.find(), UPath)

    def test_of_a_silent_job_needs_its_name(self, mover: Mover) -> None:
        """``spark_folder`` is Spark's name of it; it must be the one that the job writes."""
        mover.more = {"heartbeat_timeout": 0.1}
        for home, problem in (
            ({}, "give the home a spark_folder that leads to"),
            (
                {"spark_folder": "hdfs://other/jobs/orders"},
                "hdfs://other/jobs/orders/checkpoint is",
            ),
        ):
            mover.homes = {"source": home}
            with pytest.raises(StopError, match=problem):
                mover.run(StopSparkStreamingOperator, **QUICK)
        _note(mover.source, f"{MOUNTED}/control")  # note and driver are both the job's own words
        mover.homes = {"source": {"spark_folder": f"{MOUNTED}/"}}
        assert mover.run(StopSparkStreamingOperator, **QUICK)["proof"] == "silent"
        confirm_stopped(mover.steps.find(), UPath)


class TestOldControlLocation:
    """The job runs with another control location by now, which its note names."""

    @pytest.mark.parametrize(
        "says",
        [lambda job: job.beat(5, **ENDED), lambda job: job.beat(5, lease=0.01), _answered],
    )
    def test_is_refused(self, worker: Worker, job: Job, says: Callable[[Job], None]) -> None:
        """It ended, died or was stopped there; the job lives with the new one, and would go on."""
        says(job)
        _note(job, "s3a://lake/control2")
        with pytest.raises(StopError) as refused:
            _stop(worker, job, heartbeat_timeout=0.1)
        note = job.checkpoint.with_name("checkpoint.control.json")
        assert str(refused.value).startswith(
            f"{note} says that the job runs with the control location s3a://lake/control2, and not "
            f"with {job.control}"
        )
        assert _is_open(job)
        _note(job, f"file:{job.control}/")
        assert _stop(worker, job, heartbeat_timeout=0.1) in {"ended", "silent", "acknowledged"}

    @pytest.mark.parametrize("answers", [False, True])
    def test_that_is_left_while_the_job_is_stopped(
        self, worker: Worker, job: Job, *, answers: bool
    ) -> None:
        """The note is read again with the proof; a stop without an answer is withdrawn."""
        job.beat(5, **ENDED)

        def change() -> None:
            _note(job, "s3a://lake/control2")
            if answers:
                job.acknowledge(queries=[job.query_answer(0, 4, 6)])

        with pytest.raises(StopError, match="runs with the control location s3a://lake/control2"):
            _stop(worker, job, meanwhile=change)
        assert _is_open(job) is not answers

    def test_names_no_driver_to_kill(self, worker: Worker, job: Job) -> None:
        """The stop was asked before the job left it; no Spark connection is even asked for."""
        job.beat(5, lease=0.01)
        change = partial(_note, job, "s3a://lake/control2")
        with pytest.raises(StopError, match=r"nothing was killed: .* s3a://lake/control2"):
            _stop(worker, job, kill_after=0.0, meanwhile=change)

    def test_is_looked_for_at_the_hand_over(self, mover: Mover) -> None:
        """The job may have been started with another one since."""
        mover.until_start(mover.source.folder)
        _note(mover.source, "s3a://lake/control2")
        with pytest.raises(HandoverError, match="with the control location s3a://lake/control2"):
            mover.run(TriggerTargetDagOperator)

    @pytest.mark.parametrize("last_batch", [0, None])
    def test_whose_checkpoint_has_gone_on(
        self, worker: Worker, job: Job, last_batch: int | None
    ) -> None:
        """A job without StopControl, or one that can't write the note, has run: both are named."""
        (query,) = _names(job)["queries"]
        job.beat(5, **ENDED, queries=[{**query, "batch_id": last_batch}])
        if last_batch is not None:
            job.commit(1, 5, 6)
        now, then = (1, "0") if last_batch == 0 else (0, "none")
        with pytest.raises(StopError, match=f"committed batch is {now}, and it was {then} when"):
            _stop(worker, job)
        job.beat(6, **ENDED, queries=[{**query, "batch_id": now}])
        assert _stop(worker, job) == "ended"
