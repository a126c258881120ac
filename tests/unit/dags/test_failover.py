"""mm2_failover, task by task, with a job and clusters that are only played."""

import random
import shutil
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import HandoverError, NotReadyError
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.task_groups import STEPS
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.mover import Mover
from tests.unit.operators.spark_job import Job


def test_a_failover_from_check_to_report(run: Failover) -> None:
    """The job is stopped, moved and started once; its journal has each decision."""
    ends = {task_id: run.run(task_id) for task_id in STEPS}
    assert ends == dict.fromkeys(STEPS, "SUCCESS")
    ((dag_id, _),) = run.worker.triggered
    (conf,) = run.worker.triggered.values()
    assert dag_id == "orders_stream"
    assert conf == {"kafka_conn_id": "kafka_target", "folder": str(run.target)}
    assert run.starting_offsets() == [STARTING]
    events = [each.event for each in run.mover.entries() if each.event is not Event.NOTE]
    assert events == [Event.ASK, Event.PROVE, Event.HAND_OVER, Event.ARRIVE]
    report = run.worker.xcoms["report", "return_value"]
    assert report["outcome"] == "moved"
    assert report["status"]["run"] == "mm2_failover:manual__1"


@pytest.mark.parametrize("seed", range(4))
def test_tasks_of_a_finished_run_cleared_in_any_order(run: Failover, seed: int) -> None:
    """No second job is started, nothing is stopped, and the journal stays as it is."""
    run.run_all()
    entries, triggered = run.mover.entries(), {**run.worker.triggered}
    chosen = random.Random(seed)  # noqa: S311 - no secret
    for task_id in chosen.choices([*STEPS], k=6):
        run.run(task_id)
    assert (run.mover.entries(), run.worker.triggered) == (entries, triggered)


def test_a_check_that_fails_leaves_the_job_alone(run: Failover) -> None:
    """Nothing was stopped, and the report says so and fails."""
    (run.source.control / "driver.json").unlink()
    with pytest.raises(NotReadyError, match="no job has run with the control location"):
        run.run("check")
    run.worker.states = {"check": "failed", "stop_source": "upstream_failed"}
    with pytest.raises(AirflowFailException, match="the move failed in check"):
        run.run("report")
    report = run.worker.xcoms["report", "return_value"]
    assert (report["outcome"], report["failed"]) == ("not begun", ["check"])
    assert (run.mover.entries(), run.source.fence()) == ([], None)


def test_a_job_that_was_started_again_is_not_moved_from_where_it_was(run: Failover) -> None:
    """Somebody has opened its fence and started it, and it has done a batch."""
    run.run_until("start_target")
    run.source.commit(1, 5, 6, 3, 2)
    with pytest.raises(HandoverError, match="has run since"):
        run.run("start_target")
    assert (run.worker.triggered, run.starting_offsets()) == ({}, [])


def test_a_driver_that_beats_behind_the_fence_is_seen(run: Failover) -> None:
    """Before its first batch."""
    run.run_until("start_target")
    run.source.beat(9)
    with pytest.raises(HandoverError, match="is at heartbeat 9 now"):
        run.run("start_target")
    assert run.worker.triggered == {}


def test_a_rejected_move_that_was_marked_as_approved_starts_nothing(run: Failover) -> None:
    """The answer is in the journal, and not in the state of a task."""
    run.run_until("approve")
    run.note(approval={"approved": False, "why": "anna has rejected it"})
    with pytest.raises(HandoverError, match="anna has rejected it"):
        run.run("start_target")
    assert run.worker.triggered == {}


def test_a_checkpoint_that_came_meanwhile_is_refused(run: Failover) -> None:
    """Spark would continue from it, and not from the plan."""
    run.run_until("start_target")
    run.mover.begin(run.target, 1, 1, 1, 1)
    with pytest.raises(NotReadyError, match="already"):
        run.run("start_target")
    assert run.worker.triggered == {}


def test_a_job_that_has_begun_is_not_started_twice(run: Failover) -> None:
    """Even if its DAG run was deleted."""
    run.run_until("wait_started")
    run.mover.begin(run.target, 9, 6, 3, 2)
    run.worker.triggered.clear()
    assert run.run("start_target") == "SKIPPED"
    assert run.worker.triggered == {}


@pytest.mark.parametrize("lost_before", ["check", "stop_source"])
def test_a_disaster_with_the_jobs_folder_lost(mover: Mover, lost_before: str) -> None:
    """The user says where the job stands, and that no driver of it runs."""
    run = Failover.of(
        mover,
        policy="disaster",
        positions='{"orders":{"0":4,"1":6,"2":3,"3":2}}',
        source_is_gone=True,
    )
    run.run_until(lost_before)
    shutil.rmtree(run.source.folder)
    run.source.folder.write_text("no folder")  # a storage that can't be reached
    for task_id in [*STEPS][[*STEPS].index(lost_before) :]:
        run.run(task_id)
    assert run.starting_offsets() == [STARTING]
    assert run.worker.xcoms["report", "return_value"]["outcome"] == "moved"


def test_a_second_run_that_names_the_cluster_moves_no_job_back(mover: Mover) -> None:
    """Without a name it would go home."""
    Failover.of(mover, to="target").run_all()
    Job.at(Path(mover.job.homes[1].folder)).beat(2)
    mover.worker.run_id = "manual__2"
    second = Failover.of(mover, to="target")
    with pytest.raises(HandoverError, match="is already at target"):
        second.run("stop_source")
    assert len(mover.worker.triggered) == 1
