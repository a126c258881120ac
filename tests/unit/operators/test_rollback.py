"""RollbackFailoverOperator: what it undoes, restarts, keeps and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from upath import UPath

from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    HandoverError,
    NotReadyError,
    PlanError,
    StopError,
)
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.spark.checkpoint import listing
from airflow_mm2_offsets.spark.claim import claim_target
from airflow_mm2_offsets.spark.fence import mark_moved, new_fence, read_fence
from airflow_mm2_offsets.spark.lock import (
    LockPlaces,
    acquire_lock,
    new_lock,
    read_lock,
)
from airflow_mm2_offsets.spark.lock_moved import mark_lock_moved
from airflow_mm2_offsets.spark.offsets_file import read_offsets
from airflow_mm2_offsets.spark.stop_proof import FILES, digest_of
from airflow_mm2_offsets.spark.stopping import begin_stop
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

RUN = "failover:manual__1"
OFFSETS = '{"orders":{"0":4,"1":6}}'
KILLED = {"proof": "killed", "request_id": RUN}


@pytest.fixture
def job(tmp_path: Path, worker: Worker) -> Job:
    """A job that the run has stopped, with a lock and a plan."""
    job = Job(tmp_path / "job", 4, 6)
    worker.conf = {"folder": str(job.folder)}
    acquire_lock(_places(job), new_lock(RUN, "planned"))
    begin_stop(str(job.control), new_fence(RUN, "the target"))
    job.acknowledge(queries=[job.query_answer()])
    (job.folder / "plan.json").write_text("{}")
    return job


def _places(job: Job) -> LockPlaces:
    return LockPlaces(source=UPath(job.checkpoint), target=_target(job))


def _target(job: Job) -> UPath:
    return UPath(job.folder / "target" / "checkpoint")


def _task(**settings: Any) -> RollbackFailoverOperator:
    folder = "{{ dag_run.conf.folder }}"
    with DAG("failover", schedule=None):
        return RollbackFailoverOperator(
            task_id="roll_back",
            **{
                "checkpoint": f"{folder}/checkpoint",
                "control": f"{folder}/control",
                "target_checkpoint": f"{folder}/target/checkpoint",
                "plan_path": f"{folder}/plan.json",
                "trigger_dag_id": "orders_stream",
                "restart_conf": {"folder": folder},
                **settings,
            },
        )


def test_withdraw(worker: Worker, job: Job) -> None:
    """Fence, claim and lock are gone, the plan is set aside; again, it says the same."""
    claim_target(_target(job), RUN)
    for _ in range(2):
        worker.run(_task(on_failure="None"))
        answer = worker.xcoms["roll_back", "return_value"]
        assert (answer["done"], answer["job"]) == ("rolled_back", "stopped")
        assert "trigger orders_stream" in worker.xcoms["roll_back", "summary"]
    assert read_fence(str(job.control)) is None
    assert (read_lock(UPath(job.checkpoint)), read_lock(_target(job))) == (None, None)
    assert not (job.folder / "plan.json").exists()
    assert (job.folder / "plan.json.rolled-back").read_text() == "{}"
    assert not worker.triggered


def test_what_a_second_roll_back_sets_aside(worker: Worker, job: Job) -> None:
    """Plan and forecast of each stop of the run are kept, each under its own name."""
    forecast = job.folder / "plan.forecast.json"
    task = {"forecast_path": "{{ dag_run.conf.folder }}/plan.forecast.json"}
    for text in ("{}", "[]"):
        (job.folder / "plan.json").write_text(text)
        forecast.write_text(text)
        worker.run(_task(**task))
        worker.run(_task(**task))
    for name in ("plan.json", forecast.name):
        kept = [(job.folder / f"{name}.rolled-back{end}").read_text() for end in ("", "-2")]
        assert kept == ["{}", "[]"]
        assert not (job.folder / name).exists()


def test_restart(worker: Worker, job: Job) -> None:
    """The job's DAG is triggered once for this roll-back, and once more for the next."""
    for _ in range(3):
        worker.run(_task(on_failure="restart"))
        answer = worker.xcoms["roll_back", "return_value"]
        assert (answer["done"], answer["job"]) == ("rolled_back", "restarted")
    ((dag_id, run_id),) = worker.triggered
    assert run_id == answer["restart_run_id"]
    assert run_id.startswith("failover__manual__1__restart_2")
    assert dict(worker.triggered[dag_id, run_id])["folder"] == str(job.folder)

    job.beat(1, run_id="r2")
    begin_stop(str(job.control), new_fence(RUN, "the target"))
    job.acknowledge(queries=[{**job.query_answer(), "run_id": "r2"}])
    worker.run(_task(on_failure="restart"))
    assert len(worker.triggered) == 2


def test_a_job_that_runs_is_not_started_beside_itself(worker: Worker, job: Job) -> None:
    """Neither one that never stopped, nor one that a user has started since."""
    (job.control / "stopped.json").unlink()
    worker.run(_task(on_failure="restart"))
    assert worker.xcoms["roll_back", "return_value"]["job"] == "runs"
    begin_stop(str(job.control), new_fence(RUN, "the target"))
    job.acknowledge(queries=[job.query_answer()])
    worker.run(_task())
    job.beat(1, run_id="r2")
    worker.run(_task(on_failure="restart"))
    assert worker.xcoms["roll_back", "return_value"]["job"] == "runs"
    assert not worker.triggered


@pytest.mark.skipif(not hasattr(RuntimeTaskInstance, "get_dag"), reason="from Airflow 3.2 on")
@pytest.mark.parametrize("plan", ["target/plans/plan.json", None])
def test_a_restart_has_long_offsets_beside_its_own_checkpoint(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch, plan: str | None
) -> None:
    """The job reads there in any case, and nothing is written where the plan lies."""
    _make_offsets_long(monkeypatch)
    path = plan and str(job.folder / plan)
    worker.run(_task(on_failure="restart", restart_conf=_conf(job), plan_path=path))
    (started,) = worker.triggered.values()
    assert started["topic"] == "orders"
    assert started["starting_offsets"].startswith(f"@{job.folder}/checkpoint.restart.offsets-")
    text = read_offsets(started["starting_offsets"], UPath)
    assert text == OFFSETS
    assert not [*job.folder.glob("target/**/*offsets*")]


@pytest.mark.skipif(not hasattr(RuntimeTaskInstance, "get_dag"), reason="from Airflow 3.2 on")
def test_a_restart_goes_on_where_no_file_can_be_written(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing holds the job up: it goes on from its checkpoint whatever offsets it is given."""
    _make_offsets_long(monkeypatch)

    def refuse(*_: object) -> str:
        raise PlanError("the storage refuses")

    monkeypatch.setattr("airflow_mm2_offsets.operators.long_results.write_offsets", refuse)
    worker.run(_task(on_failure="restart", restart_conf=_conf(job)))
    (started,) = worker.triggered.values()
    assert started["starting_offsets"] == OFFSETS
    assert "the storage refuses" in caplog.text


@pytest.mark.skipif(not hasattr(RuntimeTaskInstance, "get_dag"), reason="from Airflow 3.2 on")
def test_a_restart_only_warns_of_too_many_topics(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The job has run on the source before: somehow it got them."""
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES", "5")
    worker.run(_task(on_failure="restart", restart_conf=_conf(job)))
    (started,) = worker.triggered.values()
    assert started["topic"] == "orders"
    assert "started again all the same: the list of the 1 topics" in caplog.text


def _make_offsets_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES", "10")


def _conf(job: Job) -> dict[str, Any]:
    return {"folder": str(job.folder), "topic": None, "starting_offsets": None}


def test_a_paused_dag_restarts_nothing(worker: Worker, job: Job) -> None:
    """All is undone, and the task says what is missing; cleared, it triggers."""
    worker.paused["orders_stream"] = True
    with pytest.raises(NotReadyError, match="rolled back, but the job was not restarted: DAG orde"):
        worker.run(_task(on_failure="restart"))
    assert read_fence(str(job.control)) is None
    worker.paused["orders_stream"] = False
    worker.run(_task(on_failure="restart"))
    assert len(worker.triggered) == 1


def test_keep(worker: Worker, job: Job) -> None:
    """Nothing changes, and the person is told how to go on."""
    worker.run(_task(on_failure="keep"))
    assert worker.xcoms["roll_back", "return_value"]["done"] == "kept"
    assert read_fence(str(job.control)) is not None
    assert read_lock(UPath(job.checkpoint)) is not None
    assert not (job.control / "rolled-back.json").exists()


def test_a_job_that_is_handed_over_is_left_alone(worker: Worker, job: Job) -> None:
    """The task fails for good, keeps the lock, and names what to do."""
    claim_target(_target(job), RUN)
    mark_moved(str(job.control), RUN, "the target")
    with pytest.raises(HandoverError, match="The point of no return has passed") as caught:
        worker.run(_task(on_failure="restart"))
    assert isinstance(caught.value, AirflowFailException)
    assert read_lock(UPath(job.checkpoint)) is not None
    assert not worker.triggered


def test_a_job_without_a_control_location(worker: Worker, job: Job) -> None:
    """It was killed where the stop has returned; only then it is restarted."""
    del job
    worker.run(_task(control=None, on_failure="restart", stopped=None))
    assert worker.xcoms["roll_back", "return_value"]["done"] == "nothing_to_undo"
    assert not worker.triggered
    worker.run(_task(control=None, on_failure="restart", stopped=KILLED))
    assert len(worker.triggered) == 1


@pytest.mark.parametrize("state", ["success", "upstream_failed", None])
def test_a_result_of_an_earlier_try_of_the_stop_restarts_nothing(
    worker: Worker, job: Job, state: str | None
) -> None:
    """The job was restarted, and the stop did not run again: Airflow still has its old result."""
    del job
    worker.states = {"stop_source": state} if state else {}
    worker.run(
        _task(control=None, on_failure="restart", stopped=KILLED, stop_task_id="stop_source")
    )
    answer = worker.xcoms["roll_back", "return_value"]
    if state == "success":
        assert (answer["done"], len(worker.triggered)) == ("rolled_back", 1)
        return
    assert (answer["done"], len(worker.triggered)) == ("nothing_to_undo", 0)
    assert "stop_source is " in answer["next"]
    assert "its result is of an earlier try" in answer["next"]


@pytest.mark.parametrize("on_failure", ["withdraw", "restart"])
def test_a_stop_of_another_job_is_refused(worker: Worker, job: Job, on_failure: str) -> None:
    """The task's fields are those of a job that has got the place of the one that was stopped.

    The result of a stop that is to run again says nothing: the job of the fields is rolled back.
    """
    stopped = {**KILLED, "request_id": "failover:manual__1:refunds"}
    task = {"on_failure": on_failure, "stopped": stopped, "stop_task_id": "stop_source"}
    worker.states = {"stop_source": "success"}
    with pytest.raises(HandoverError, match=r"made the stop 'failover:manual__1:refunds'.*Nothing"):
        worker.run(_task(**task))
    assert read_fence(str(job.control)) is not None
    assert not worker.triggered
    worker.states = {"stop_source": "upstream_failed"}
    worker.run(_task(**task))
    assert read_fence(str(job.control)) is None


@pytest.mark.parametrize("is_cleared", [False, True])
def test_a_job_that_has_run_since_its_stop_is_not_restarted(
    worker: Worker,
    job: Job,
    is_cleared: bool,  # noqa: FBT001
) -> None:
    """Neither by the first roll-back, nor by one that is cleared after a user has started it."""
    stopped = {**KILLED, FILES: digest_of(listing(UPath(job.checkpoint)))}
    if is_cleared:
        worker.run(_task(control=None, stopped=stopped))
    job.commit(1, 5, 6)
    worker.run(_task(control=None, on_failure="restart", stopped=stopped))
    answer = worker.xcoms["roll_back", "return_value"]
    assert ("started on the source since" if is_cleared else "was written to") in answer["next"]
    assert not worker.triggered


@pytest.mark.parametrize("mode", ["disaster", "planned"])
def test_a_lost_control_location(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """In a disaster there is nothing to withdraw; otherwise it may answer again soon."""
    del job

    def gone(_: object) -> None:
        error = StopError("out of reach")
        error.fields = {"file": "s3://eu/control"}
        raise error

    monkeypatch.setattr("airflow_mm2_offsets.operators.rollback.read_fence", gone)
    if mode == "planned":
        with pytest.raises(StopError, match="out of reach") as caught:
            worker.run(_task(mode=mode))
        assert not isinstance(caught.value, AirflowFailException)
        return
    worker.run(_task(mode=mode, on_failure="restart", stopped={"proof": "gone"}))
    answer = worker.xcoms["roll_back", "return_value"]
    assert answer["done"] == "rolled_back"
    assert "fence of this run may stand there" in answer["next"]
    assert f"--request-id '{RUN}'" in answer["next"]
    assert not worker.triggered


def test_another_word_is_refused(worker: Worker, job: Job) -> None:
    """Before anything is undone."""
    with pytest.raises(ConfigurationError, match="give one of withdraw, restart, keep"):
        worker.run(_task(on_failure="undo"))
    assert json.loads((job.control / "fence.json").read_text())["request_id"] == RUN


@pytest.mark.skipif(not hasattr(RuntimeTaskInstance, "get_dag"), reason="from Airflow 3.2 on")
@pytest.mark.parametrize("has_control", [True, False])
def test_a_job_that_another_run_has_moved_since_is_not_restarted(
    worker: Worker,
    job: Job,
    has_control: bool,  # noqa: FBT001
) -> None:
    """The restart had failed, another run moved the job, and this task is cleared afterwards."""
    settings: dict[str, Any] = {"on_failure": "restart", "stopped": KILLED}
    settings |= {} if has_control else {"control": None}
    worker.paused["orders_stream"] = True
    with pytest.raises(NotReadyError):
        worker.run(_task(**settings))
    if has_control:
        begin_stop(str(job.control), new_fence("failover:manual__2", "elsewhere"))
        mark_moved(str(job.control), "failover:manual__2", "elsewhere")
    else:
        other = new_lock("failover:manual__2", "planned")
        acquire_lock(_places(job), other)
        mark_lock_moved(_places(job), other, "elsewhere")
    worker.paused["orders_stream"] = False
    named = "was rolled back, but the job was not restarted: .*was moved to elsewhere by 'failover:"
    with pytest.raises(HandoverError, match=named):
        worker.run(_task(**settings))
    assert not worker.triggered


def test_a_restart_before_the_positions_were_read(worker: Worker, job: Job) -> None:
    """The job's DAG gets topics and offsets from the checkpoint, and no text "None"."""
    conf = {"topic": None, "starting_offsets": "None", "folder": str(job.folder)}
    worker.run(_task(on_failure="restart", restart_conf=conf))
    (started,) = worker.triggered.values()
    assert started == {
        "topic": "orders",
        "starting_offsets": '{"orders":{"0":4,"1":6}}',
        "folder": str(job.folder),
    }


def test_a_restart_without_a_checkpoint_is_refused(worker: Worker, job: Job) -> None:
    """Nothing else says what the job reads; all else was undone, and the message says so."""
    conf = {"topic": None, "starting_offsets": None, "folder": str(job.folder)}
    (job.checkpoint / "metadata").write_text("damaged")
    with pytest.raises(CheckpointError, match="was rolled back, but the job was not restarted: "):
        worker.run(_task(on_failure="restart", restart_conf=conf))
    assert read_fence(str(job.control)) is None
    assert not worker.triggered
