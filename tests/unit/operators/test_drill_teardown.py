"""The end of a drill: its job stops, and all that it has made is removed."""

import asyncio
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_mm2_offsets.errors import DrillError, StopError
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.operators import drill_teardown
from airflow_mm2_offsets.spark.drill import mark_drill
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.drills import RUN, Drill
from tests.unit.operators.worker import Worker, events, rebuild

OWN = "mm2_drill:manual__1"
NOTHING = {"removed": 0, "seconds": 0.0, "stopped": None, "moved": None}


@pytest.fixture
def planned(worker: Worker, clusters: Clusters, tmp_path: Path) -> Drill:
    """A drill whose positions are translated."""
    drill = Drill.beside(worker, clusters, tmp_path)
    drill.run("translate")
    return drill


@pytest.fixture
def drill(planned: Drill) -> Drill:
    """A drill whose copy was triggered."""
    planned.run("start_drill")
    return planned


def _is_gone(drill: Drill) -> bool:
    return not drill.folder.parent.exists()


def test_the_stop_needs_nobody_who_waits(drill: Drill) -> None:
    """Its fence stays if the task, or its wait in the triggerer, is killed."""
    drill.begin()
    task = drill.task("tear_down")
    deferred = drill.worker.run(task)
    task.on_kill()
    trigger = rebuild(deferred)
    asyncio.run(trigger.on_kill())
    assert type(trigger).__name__ == "DrillStoppedTrigger"
    assert drill.copy.requested_stop() == OWN


def test_a_drill_that_never_began_is_nothing_to_remove(planned: Drill) -> None:
    """Its check refused it: there is no mark, and no folder is made."""
    before = planned.files()
    assert planned.run("tear_down") == NOTHING
    assert planned.files() == before
    assert _is_gone(planned)


def test_another_drills_folder_stays(planned: Drill) -> None:
    """This drill was refused because of it."""
    mark_drill(UPath(planned.folder), "another")
    assert planned.run("tear_down") == NOTHING
    assert planned.folder.joinpath("drill.json").exists()


def test_a_copy_of_a_drills_folder_stays(drill: Drill) -> None:
    """Its record names the folder that it was written in."""
    elsewhere = drill.root / "copy"
    drill.folder.rename(elsewhere)
    drill.arguments = {"tear_down": {"folder": str(elsewhere)}}
    with pytest.raises(DrillError, match="is a copy, and stays"):
        drill.run("tear_down")
    assert elsewhere.joinpath("drill.json").exists()


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_copy_that_did_not_come_up(drill: Drill, *, deferrable: bool) -> None:
    """Its DAG run failed before a driver wrote anything."""
    drill.arguments = {"tear_down": {"deferrable": deferrable}}
    drill.worker.run_states[RUN] = "failed"
    assert drill.run("tear_down")["stopped"] is None
    assert _is_gone(drill)


def test_a_copy_that_begins_while_its_run_is_awaited(drill: Drill) -> None:
    """It finds the fence, and its stop is proved as that of any other."""
    deferred = drill.worker.run(drill.task("tear_down"))
    drill.copy.beat(1)
    drill.worker.run_states[RUN] = "failed"
    waits = []
    while deferred.type == "DeferTask":
        waits.append(deferred.next_method)
        drill.wait(deferred)
        (event,) = events(rebuild(deferred))
        deferred = drill.worker.run(drill.task("tear_down"), after=deferred, event=event)
    assert waits == ["look_again", "execute_complete", "remove_after_run"]
    assert drill.worker.xcoms["tear_down", "return_value"]["stopped"] == "acknowledged"
    assert _is_gone(drill)


def test_a_queued_run_keeps_the_folder_and_its_fence(drill: Drill) -> None:
    """The copy would begin whenever Airflow has a slot: the fence ends it then."""
    drill.worker.run_states[RUN] = "queued"
    drill.more = {"heartbeat_timeout": 0.01}
    drill.arguments = {"tear_down": {"timeout": 0.05}}
    with pytest.raises(DrillError, match=r"stays, because the run .* is queued.* delete") as caught:
        drill.run("tear_down")
    assert isinstance(caught.value, AirflowFailException)
    assert drill.copy.requested_stop() == OWN
    del drill.worker.triggered[RUN]  # the user deletes it, and clears the task
    drill.run("tear_down")
    assert _is_gone(drill)


def test_a_submit_that_did_not_wait_keeps_the_folder(drill: Drill) -> None:
    """The run has succeeded without a driver: a cluster may start it later."""
    drill.worker.run_states[RUN] = "success"
    with pytest.raises(DrillError, match="has not begun yet, so it may begin later"):
        drill.run("tear_down")
    assert drill.folder.exists()


def test_a_copy_that_does_not_stop_keeps_its_folder(drill: Drill) -> None:
    """It writes there; the error is loud, and a cleared task goes on."""
    drill.begin()
    drill.answers = False
    drill.more = {"heartbeat_timeout": 0.05}
    drill.arguments = {"tear_down": {"timeout": 0.1}}
    with pytest.raises(StopError, match=r"THE DRILL'S JOB MAY STILL RUN .*which stays") as caught:
        drill.run("tear_down")
    assert isinstance(caught.value, AirflowFailException)
    assert drill.copy.requested_stop() == OWN
    assert drill.copy.checkpoint.exists()
    drill.answers, drill.arguments = True, {}
    assert drill.run("tear_down")["stopped"] == "acknowledged"
    assert _is_gone(drill)


def test_a_dead_driver_counts_as_stopped_after_its_timeout(drill: Drill) -> None:
    """A copy that was killed leaves no answer; its silence is enough here."""
    drill.begin().beat(3, lease=0.01, interval=0.01)
    drill.answers = False
    drill.more = {"heartbeat_timeout": 0.1}
    assert drill.run("tear_down")["stopped"] == "silent"
    assert _is_gone(drill)


def test_a_job_that_names_no_timeout_has_one_here(drill: Drill) -> None:
    """Without one the tear-down of a copy that has died would never end."""
    task = drill.task("tear_down")
    assert isinstance(task, drill_teardown.TearDownDrillOperator)
    assert task.parse_settings() == (2.0, None)
    drill.more, drill.arguments = {"heartbeat_timeout": None}, {"tear_down": {"timeout": 600}}
    task = drill.task("tear_down")
    assert isinstance(task, drill_teardown.TearDownDrillOperator)
    assert task.parse_settings() == (60.0, None)


@pytest.mark.parametrize("is_other", [False, True])
def test_a_driver_that_hangs_is_killed(
    drill: Drill, monkeypatch: pytest.MonkeyPatch, *, is_other: bool
) -> None:
    """With the job's ``kill_after``, as a stop of any job; never a driver of another folder."""
    killed = []

    def kill(*_: object) -> bool:
        killed.append(True)
        return True

    monkeypatch.setattr(SparkKillHook, "kill", kill)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local"}')
    drill.worker.run_states[RUN] = "failed"
    drill.answers = False
    drill.more = {"heartbeat_timeout": None, "kill_after": 0.1}
    own = {"control": f"file:{drill.source.control}"} if is_other else {}
    drill.begin().beat(3, lease=0.01, interval=0.01, **own)
    if is_other:
        with pytest.raises(DrillError, match=r"nothing was killed: .* is not the control location"):
            drill.run("tear_down")
        assert killed == []
        return
    assert drill.run("tear_down")["stopped"] == "silent"
    assert killed == [True]
    assert _is_gone(drill)


@pytest.mark.parametrize("at", ["close_drill", "read_driver", "_proof_of", "remove_drill"])
def test_a_tear_down_that_was_lost_is_repeated(
    drill: Drill, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """At any step, and when all is gone already."""
    drill.begin()

    def die(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(drill_teardown, at, die)
        with pytest.raises(MemoryError):
            drill.run("tear_down")
    assert drill.run("tear_down")["stopped"] == "acknowledged"
    assert _is_gone(drill)
    assert drill.run("tear_down") == NOTHING


def test_a_journal_that_can_not_be_read_holds_nothing_up(drill: Drill) -> None:
    """Whether the job was moved meanwhile is then a remark of the report."""
    drill.move()
    (entry,) = Path(drill.job.journal).iterdir()
    entry.write_text("{")
    moved = drill.run("tear_down")["moved"]
    assert moved.startswith("It is not known whether job orders was moved during the drill")
    assert _is_gone(drill)


def test_a_home_that_was_taken_from_the_job_keeps_the_folder(drill: Drill) -> None:
    """How to kill a driver there is not known any more."""
    east, west = drill.job.homes
    drill.more = {"homes": (east, Home(cluster="third", folder=west.folder))}
    with pytest.raises(DrillError, match=r"runs at 'target', and job orders has no home there"):
        drill.run("tear_down")
    assert drill.folder.exists()
