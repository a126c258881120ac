"""The end of a drill: its job stops, and all that it has made is removed."""

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import DrillError, StopError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from airflow_mm2_offsets.spark.drill import mark_drill, read_mark
from airflow_mm2_offsets.spark.fence import read_fence
from tests.unit.operators.drills import DRILL, RUN, Drill
from tests.unit.operators.worker import Worker, events, rebuild


@pytest.fixture
def drill(worker: Worker, tmp_path: Path) -> Drill:
    """A drill whose job was triggered."""
    drill = Drill(worker, tmp_path)
    drill.start()
    return drill


def _names(drill: Drill) -> set[str]:
    return {path.name for path in drill.source.folder.parent.iterdir()}


def test_a_drill_leaves_nothing(drill: Drill) -> None:
    """The job stops between batches, its run ends, and its folder is gone with all beside it."""
    job, task = drill.run_job(), drill.tear_down_task()
    deferred = drill.worker.run(task)
    job.acknowledge()
    deferred = drill.go_on(task, deferred)
    assert deferred.next_method == "remove_after_run"
    assert job.checkpoint.exists()
    drill.worker.run_states[RUN] = "success"
    drill.go_on(task, deferred)
    assert _names(drill) == {"source"}
    result = drill.result()
    assert result["stopped"] == "acknowledged"
    assert result["removed"] > 5
    assert 0 <= result["seconds"] < 60


def test_the_stop_needs_nobody_who_waits(drill: Drill) -> None:
    """Request and fence stay if the task is killed: nothing needs the drill's job."""
    job, task = drill.run_job(), drill.tear_down_task()
    deferred = drill.worker.run(task)
    task.on_kill()
    request = job.read("stop-request.json")
    assert request is not None
    assert (request["request_id"], "is_of_failover" in request) == (DRILL, False)
    fence = read_fence(str(job.control))
    assert fence is not None
    assert fence.request_id == DRILL
    assert type(rebuild(deferred)).__name__ == "DrillStoppedTrigger"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_wait_withdraws_nothing(drill: Drill) -> None:
    """Not in the triggerer either."""
    job = drill.run_job()
    trigger = rebuild(drill.worker.run(drill.tear_down_task()))
    await trigger.on_kill()
    assert job.requested_stop() == DRILL


def test_the_production_job_is_not_asked(drill: Drill) -> None:
    """Its control location holds what it held."""
    before = {path.name for path in drill.source.control.iterdir()}
    drill.run_job()
    drill.worker.run(drill.tear_down_task())
    assert {path.name for path in drill.source.control.iterdir()} == before


@pytest.mark.parametrize("mode", ["planned", "disaster", "failback"])
def test_other_modes_have_nothing_to_tear_down(drill: Drill, mode: str) -> None:
    """The task is skipped at once, and touches nothing."""
    assert drill.worker.run(drill.tear_down_task(mode=mode)).state == "skipped"
    assert (drill.folder / "drill.json").exists()


def test_it_comes_after_a_drill_that_failed(drill: Drill) -> None:
    """Whatever step failed, the tear-down runs."""
    assert drill.tear_down_task().trigger_rule.value == "all_done"


def test_a_drill_that_never_began_is_nothing_to_remove(worker: Worker, tmp_path: Path) -> None:
    """The check refused it: there is no mark, and no folder is made."""
    drill = Drill(worker, tmp_path)
    drill.worker.run(drill.tear_down_task())
    assert drill.result() == {"removed": 0, "seconds": 0.0, "stopped": None}
    assert _names(drill) == {"source"}


def test_another_drills_folder_stays(worker: Worker, tmp_path: Path) -> None:
    """This drill was refused because of it."""
    drill = Drill(worker, tmp_path)
    mark_drill(storage_path(str(drill.folder)), "another")
    drill.worker.run(drill.tear_down_task())
    assert drill.result()["removed"] == 0
    assert read_mark(storage_path(str(drill.folder))) is not None


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_job_that_did_not_come_up(drill: Drill, *, deferrable: bool) -> None:
    """Its DAG run failed before a driver wrote anything."""
    task = drill.tear_down_task(deferrable=deferrable)
    drill.worker.run_states[RUN] = "failed"
    deferred = drill.worker.run(task)
    if deferrable:
        drill.go_on(task, deferred)
    assert drill.result()["stopped"] is None
    assert _names(drill) == {"source"}


def test_a_queued_run_keeps_the_folder_and_its_fence(drill: Drill) -> None:
    """The job would begin whenever Airflow has a slot: the fence ends it then."""
    drill.worker.run_states[RUN] = "queued"
    task = drill.tear_down_task(timeout=0.05)
    with pytest.raises(DrillError, match=r"stays, because the run .* is queued.* delete") as caught:
        drill.go_on(task, drill.worker.run(task))
    assert isinstance(caught.value, AirflowFailException)
    assert read_fence(str(drill.folder / "control")) is not None
    del drill.worker.triggered[RUN]  # the user deletes it, and clears the task
    drill.go_on(task, drill.worker.run(task))
    assert _names(drill) == {"source"}


def test_a_submit_that_did_not_wait_keeps_the_folder(drill: Drill) -> None:
    """The run has succeeded without a driver: a cluster may start it later."""
    drill.worker.run_states[RUN] = "success"
    task = drill.tear_down_task()
    with pytest.raises(DrillError, match="has not begun yet, so it may begin later"):
        drill.go_on(task, drill.worker.run(task))
    assert drill.folder.exists()


def test_a_job_that_does_not_stop_keeps_its_folder(drill: Drill) -> None:
    """It writes there; the error is loud, and a cleared task goes on."""
    job, task = drill.run_job(), drill.tear_down_task(timeout=0.1)
    deferred = drill.worker.run(task)
    with pytest.raises(StopError, match=r"THE DRILL'S JOB MAY STILL RUN .*which stays") as caught:
        drill.go_on(task, deferred)
    assert isinstance(caught.value, AirflowFailException)
    assert job.requested_stop() == DRILL
    assert job.checkpoint.exists()

    job.acknowledge()
    drill.worker.run_states[RUN] = "success"
    task = drill.tear_down_task()
    drill.go_on(task, drill.go_on(task, drill.worker.run(task)))
    assert _names(drill) == {"source"}


def test_a_dead_driver_counts_as_stopped_after_its_timeout(drill: Drill) -> None:
    """A drill that was killed leaves no answer; its silence is enough here."""
    drill.run_job().beat(3, lease=0.01)
    drill.worker.run_states[RUN] = "failed"
    task = drill.tear_down_task(heartbeat_timeout="0.1")
    drill.go_on(task, drill.go_on(task, drill.worker.run(task)))
    assert drill.result()["stopped"] == "silent"
    assert _names(drill) == {"source"}
    assert TearDownDrillOperator(task_id="t", folder="/d").seconds("heartbeat_timeout") == 60.0


def test_a_driver_that_hangs_is_killed(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``kill_after``, as a stop of any job."""
    job = drill.run_job()
    killed = []

    def kill(*_: object) -> bool:
        killed.append(True)
        return True

    monkeypatch.setattr("airflow_mm2_offsets.operators.stop.SparkKillHook.kill", kill)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local"}')
    drill.worker.run_states[RUN] = "failed"
    job.beat(3, lease=0.01)
    task = drill.tear_down_task(kill_after=0.1)
    deferred = drill.go_on(task, drill.worker.run(task))
    drill.go_on(task, drill.go_on(task, deferred))
    assert killed == [True]
    assert drill.result()["stopped"] == "killed"
    assert _names(drill) == {"source"}


def test_a_tear_down_that_was_lost_is_repeated(drill: Drill) -> None:
    """At any step, and when all is gone already."""
    job, task = drill.run_job(), drill.tear_down_task()
    drill.worker.run(task)
    deferred = drill.worker.run(task)
    job.acknowledge()
    drill.go_on(task, deferred)
    drill.worker.run_states[RUN] = "success"
    deferred = drill.go_on(task, drill.worker.run(task))
    drill.go_on(task, deferred)
    assert drill.result()["stopped"] == "acknowledged"
    (event,) = events(rebuild(deferred))
    drill.worker.run(task, after=deferred, event=event)
    assert drill.result()["removed"] == 0
    drill.worker.run(task)
    assert drill.result()["removed"] == 0
    assert _names(drill) == {"source"}
