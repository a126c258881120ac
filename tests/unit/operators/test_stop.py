"""StopSparkStreamingOperator: asks once, defers, and ends with the proof."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_mm2_offsets.core.policy import DISASTER, PLANNED, Policy
from airflow_mm2_offsets.errors import ConfigurationError, LockedError, StopError
from airflow_mm2_offsets.moves.journal import Event, FenceState, State
from airflow_mm2_offsets.moves.move import Mover, job_at
from airflow_mm2_offsets.operators.stop import silence_of
from airflow_mm2_offsets.triggers.stop import withdrawal_line
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import JOB, REQUEST_ID, step_task, stop_task
from tests.unit.operators.worker import Worker, events, rebuild

try:
    from airflow.sdk.exceptions import TaskDeferralError
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import TaskDeferralError  # type: ignore[no-redef]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _runs_on(job: Job) -> bool:
    """Return whether the job may run here, and nobody moves it."""
    fence = job.fence()
    return (
        fence is not None
        and fence.state is FenceState.OPEN
        and (job.entries()[-1].state is State.HOME)
    )


def _finish(worker: Worker, deferred: Any, **settings: Any) -> Any:  # noqa: ANN401 - Airflow's
    (event,) = events(rebuild(deferred))
    worker.run(stop_task(**settings), after=deferred, event=event)
    return worker.xcoms["stop", "return_value"]


def test_a_stop_from_request_to_proof(worker: Worker, job: Job) -> None:
    """Deferred, polled as the triggerer does and resumed, the task returns proof and positions."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    assert deferred.classpath == "airflow_mm2_offsets.triggers.stop.SparkStoppedTrigger"
    assert job.requested_stop() == REQUEST_ID
    job.acknowledge()
    began = time.monotonic()
    result = _finish(worker, deferred)
    assert time.monotonic() - began >= 0.05
    assert (
        result.items()
        >= {
            "request_id": REQUEST_ID,
            "application_id": "app-1",
            "batch_id": 0,
            "clean": True,
            "error": None,
            "proof": "acknowledged",
            "positions": '{"orders":{"0":4,"1":6}}',
            "pending": None,
        }.items()
    )
    last = job.entries()[-1]
    assert (last.event, last.state, last.facts) == (Event.PROVE, State.STOPPED, result)
    # From now on no driver starts here, until somebody moves the job on.
    assert job.requested_stop() == REQUEST_ID


def test_a_retry_asks_once(worker: Worker, job: Job) -> None:
    """Before the answer each try notes only its own deadline; after the proof it adds nothing."""
    worker.conf = {"folder": str(job.folder)}
    for timeout in (600, 1200):
        deferred = worker.run(stop_task(timeout=timeout))
    asked, *waits = job.entries()
    assert (asked.event, job.requested_stop()) == (Event.ASK, REQUEST_ID)
    assert [each.event for each in waits] == [Event.NOTE, Event.NOTE]
    assert all({*each.facts} == {"waits_for", "until"} for each in waits)
    job.acknowledge()
    first = _finish(worker, deferred)
    entries = job.entries()
    assert [each.event for each in entries[3:]] == [Event.PROVE]
    again = _finish(worker, worker.run(stop_task()))
    assert (again, job.entries()) == (first, entries)


def test_a_task_that_is_killed_withdraws_its_stop(worker: Worker, job: Job) -> None:
    """Marked failed, cleared or ended while it runs or is deferred: the job runs on untouched."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    asyncio.run(rebuild(deferred).on_kill())
    assert _runs_on(job)
    # The trigger that another try left behind does not wait for an answer that can't come.
    (event,) = events(rebuild(deferred))
    assert f"the stop '{REQUEST_ID}' was withdrawn" in event["error"]["message"]
    assert [each.event for each in job.entries()] == [Event.ASK, Event.NOTE, Event.WITHDRAW]
    worker.run(stop_task())
    assert job.requested_stop() == "failover:manual__1#4"


def test_a_kill_that_lacks_its_connection_is_not_retried(worker: Worker, job: Job) -> None:
    """The wrong setting shows only after the wait; it fails the task at once all the same."""
    worker.conf = {"folder": str(job.folder)}
    home = {"folder": str(job.folder), "spark_conn_id": "nowhere"}
    of_job = {"kill_after": 0.0, "homes": {"east": home}}
    deferred = worker.run(stop_task(job=of_job))
    with pytest.raises(ConfigurationError) as caught:
        _finish(worker, deferred, job=of_job)
    assert isinstance(caught.value, AirflowFailException)
    assert _runs_on(job)


def test_airflows_own_limit_withdraws_the_stop_too(worker: Worker, job: Job) -> None:
    """The triggerer was down all the time, so Airflow calls no method but resume_execution."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    limit = deferred.model_copy(
        update={"next_method": "__fail__", "next_kwargs": {"error": "the triggerer is gone"}}
    )
    with pytest.raises(TaskDeferralError):
        worker.run(stop_task(), after=limit, event=None)
    assert _runs_on(job)


def test_a_job_that_stopped_before_its_stop_was_withdrawn_stays_fenced(
    worker: Worker, job: Job
) -> None:
    """It is asked again: the journal says that the job does not run."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    job.acknowledge()
    asyncio.run(rebuild(deferred).on_kill())
    assert job.requested_stop() == REQUEST_ID
    assert _finish(worker, worker.run(stop_task()))["proof"] == "acknowledged"


def test_a_new_run_gets_over_a_job_that_a_failed_one_has_stopped(worker: Worker, job: Job) -> None:
    """The earlier answer is the proof where nothing has followed; the fence is the new run's."""
    worker.conf = {"folder": str(job.folder)}
    deferred = worker.run(stop_task())
    job.acknowledge(queries=[job.query_answer(0)])
    _finish(worker, deferred)
    worker.run_id = "manual__2"
    result = _finish(worker, worker.run(stop_task()))
    assert (result["request_id"], result["proof"]) == ("failover:manual__2#4", "acknowledged")
    assert (result["batch_id"], result["clean"]) == (0, True)
    assert job.requested_stop() == "failover:manual__2#4"


@pytest.mark.parametrize("state", ["running", "queued"])
def test_the_job_of_a_run_that_has_not_ended_is_left_alone(
    worker: Worker, job: Job, state: str
) -> None:
    """The second run fails before it asks anything, and names the first."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(stop_task())
    worker.triggered["failover", "manual__1"] = {}
    worker.run_states["failover", "manual__1"] = state
    worker.run_id = "manual__2"
    with pytest.raises(LockedError, match="failover:manual__1"):
        worker.run(stop_task())
    assert job.requested_stop() == REQUEST_ID


@pytest.mark.parametrize("state", ["failed", "success"])
def test_the_job_of_a_run_that_has_ended_is_taken_over(
    worker: Worker, job: Job, state: str
) -> None:
    """Killed in mid-stop, it leaves nothing that anybody has to delete."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(stop_task())
    worker.triggered["failover", "manual__1"] = {}
    worker.run_states["failover", "manual__1"] = state
    worker.run_id = "manual__2"
    worker.run(stop_task())
    assert job.requested_stop() == "failover:manual__2#3"


def test_a_folder_where_no_job_has_run_is_refused(worker: Worker, tmp_path: Path) -> None:
    """Nothing waits for a job that can't answer."""
    worker.conf = {"folder": str(tmp_path / "nowhere")}
    with pytest.raises(StopError, match="no job has ever run"):
        worker.run(stop_task())
    assert not (tmp_path / "nowhere").exists()


def test_a_stop_that_can_not_be_withdrawn_is_told(worker: Worker, job: Job) -> None:
    """Nobody believes then that the job runs on."""
    worker.conf = {"folder": str(job.folder)}
    worker.run(stop_task())
    (job.control / "driver.json").write_text("[]")
    mover = Mover(job_at(str(job.folder), UPath), "failover:manual__1", PLANNED, UPath)
    assert "can't be withdrawn, so it may stop later: " in withdrawal_line(mover, REQUEST_ID)
    assert job.requested_stop() == REQUEST_ID


def test_move_or_job(worker: Worker, job: Job) -> None:
    """One of them, and not both."""
    worker.conf = {"folder": str(job.folder)}
    for task in (step_task(None), stop_task(move={"job": "orders"})):
        with pytest.raises(ConfigurationError, match=r"^task stop: move or job: .*; give one of"):
            worker.run(task)


def test_a_declared_job_is_stopped_where_it_is(worker: Worker, job: Job) -> None:
    """A job with another home is not moved there: the next run moves it on."""
    worker.conf = {"folder": str(job.folder)}
    homes = {**JOB["homes"], "west": f"{job.folder}/west"}
    deferred = worker.run(stop_task(job={"homes": homes}))
    job.acknowledge()
    assert _finish(worker, deferred, job={"homes": homes})["proof"] == "acknowledged"
    asked, *_, proved = job.entries()
    assert (asked.target, proved.state) == (None, State.STOPPED)
    assert not (job.folder / "west").exists()


def test_a_wrong_job_is_refused(worker: Worker, job: Job) -> None:
    """The field and the nearest word are named, and the task."""
    worker.conf = {"folder": str(job.folder)}
    with pytest.raises(ConfigurationError, match=r"^task stop: .*'kill_aftr' .*kill_after\?$"):
        worker.run(stop_task(job={"kill_aftr": 5}))
    assert job.requested_stop() is None


@pytest.mark.parametrize(
    ("move", "problem"),
    [
        ({"job": "orders"}, "jobs_file"),
        ({"job": "orders", "policy": "disater"}, "did you mean disaster"),
        ({"job": "orders", "polcy": "planned"}, "did you mean policy"),
        ({"policy": "planned"}, "give a MoveRequest"),
        ("orders", "give a MoveRequest"),
    ],
)
def test_a_wrong_move_is_refused(worker: Worker, move: Any, problem: str) -> None:  # noqa: ANN401
    """The field and the nearest word are named."""
    with pytest.raises(ConfigurationError, match=problem):
        worker.run(step_task(move))


@pytest.mark.parametrize(
    ("policy", "said", "silence"),
    [
        (PLANNED, {}, None),
        (DISASTER, {}, 60.0),
        (DISASTER, {"heartbeat_timeout": 20.0}, 20.0),
        (DISASTER, {"kill_after": 30.0}, None),
        (DISASTER, {"kill_after": 90.0}, 60.0),
    ],
)
def test_a_silent_driver_is_dead_in_a_disaster(
    job: Job, policy: Policy, said: dict[str, float], silence: float | None
) -> None:
    """What the job says counts first; a kill that comes before the silence decides."""
    declared = replace(job_at(str(job.folder), UPath), **said)  # type: ignore[arg-type]
    assert silence_of(Mover(declared, "dag:run", policy, UPath)) == silence
