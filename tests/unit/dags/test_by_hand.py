"""Tasks that a user has marked or cleared by hand, at moments that no run brings by itself."""

import pytest

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.fence import read_fence
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import MOVING, Failover
from tests.unit.dags.ways_home import way_home
from tests.unit.operators.clusters import RECORDS, Clusters


def _forget(run: Failover, task_id: str) -> None:
    """Leave nothing of a task, as where it never ran and was marked as success."""
    for key in [key for key in run.worker.xcoms if key[0] == task_id]:
        del run.worker.xcoms[key]


def test_a_rejected_failover_that_was_marked_as_approved_starts_nothing(run: Failover) -> None:
    """The task has failed by a person's answer; a success by hand does not change the answer."""
    run.run_until("submit_target")
    answer = run.worker.xcoms["approve", "return_value"]
    answer.update(approved=False, by="Ann", why="Ann has rejected it")
    with pytest.raises(HandoverError, match=r"was rejected: Ann has rejected it: nothing was"):
        run.run("submit_target")
    assert not run.worker.triggered
    run.run("approve")
    run.run("submit_target")
    assert len(run.worker.triggered) == 1


def test_positions_that_nobody_has_read_are_named(run: Failover) -> None:
    """Marked as success, ``read_positions`` leaves nothing that the hand-over could compare."""
    run.run_until("submit_target")
    _forget(run, "read_positions")
    with pytest.raises(HandoverError, match=r"is None.*nothing was started.*Clear read_positions"):
        run.run("submit_target")
    assert not run.worker.triggered


def test_a_run_stops_no_job_that_has_come_home_from_it(run: Failover, clusters: Clusters) -> None:
    """It would stop the job and start none: its target job has begun before, and is not started."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for each in MOVING:
        run.run(each)
    conf = run.worker.conf
    back = way_home(run.worker, run, "manual__2")
    for each in STEPS[: STEPS.index("wait_started")]:
        back.run(each)
    run.worker.run_id, run.worker.conf = "manual__1", conf
    run.source.beat(9, run_id="at home", application_id="at home")
    with pytest.raises(HandoverError, match=r"has handed the job over before.*Start a new run"):
        run.run("stop_source")
    assert read_fence(str(run.source.control)) is None


def test_a_run_that_was_rolled_back_may_stop_its_job_again(run: Failover) -> None:
    """Its claim is dropped with its fence."""
    run.run_until("submit_target")
    run.run("roll_back")
    run.run_until("wait_started")
    assert len(run.worker.triggered) == 1
