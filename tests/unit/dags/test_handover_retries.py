"""The task that starts the target job, tried again: what it finds, and what its message says."""

import re
import shutil
from functools import partial

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, NotReadyError, PlanError, StopError
from airflow_mm2_offsets.operators import handover_checks
from airflow_mm2_offsets.spark.fence import FenceState, lift_fence
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, new_lock
from airflow_mm2_offsets.spark.rollback import FailoverRun, roll_back
from airflow_mm2_offsets.spark.stopping import forget_stop
from tests.unit.dags.failovers import STARTING, STOP, Failover, tells_of_dags

FRESH = "nothing was started on the target. Stop the job with a new run of the failover"
EARLIER = (
    "an earlier try handed the job over and may have triggered the run 'mm2_failover__manual__1' "
    "of DAG orders_stream"
)


def _refuse_trigger(run: Failover, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run up to the trigger, which Airflow's server does not answer well."""
    run.run_until("submit_target")

    def refuse(_message: object) -> object:
        raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))

    with monkeypatch.context() as patch:
        patch.setattr(run.worker, "_trigger", refuse)
        with pytest.raises(AirflowRuntimeError):
            run.run("submit_target")
    assert not run.worker.triggered
    assert run.fence_state() is FenceState.MOVED


def test_a_trigger_that_failed_is_tried_again(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marked as moved, not triggered: the next try starts the job, once."""
    _refuse_trigger(run, monkeypatch)
    run.run("submit_target")
    assert list(run.worker.triggered) == [("orders_stream", "mm2_failover__manual__1")]


def test_before_the_mark_nothing_can_have_been_started(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claimed, and the mark failed: the source job has run since, and a new run is the step."""
    run.run_until("submit_target")

    def fail(*_: object, **__: object) -> None:
        raise StopError("no storage")

    with monkeypatch.context() as patch:
        patch.setattr(handover_checks, "mark_moved", fail)
        with pytest.raises(StopError, match="no storage"):
            run.run("submit_target")
    run.source.beat(2)
    with pytest.raises(HandoverError) as caught:
        run.run("submit_target")
    assert str(caught.value).endswith(f"the job has run since; {FRESH}")


@pytest.mark.parametrize("triggered", [True, False])
@pytest.mark.parametrize(
    ("lifted", "named"),
    [
        (
            True,
            f"the fence of '{STOP}' was lifted, so the job may run again; {EARLIER}. See whether",
        ),
        (False, f"when the positions were read: the job has run since; {EARLIER}. See whether"),
    ],
)
def test_after_the_mark_the_run_that_may_exist_is_named(
    run: Failover, monkeypatch: pytest.MonkeyPatch, *, triggered: bool, lifted: bool, named: str
) -> None:
    """Whether it was triggered Airflow knows: the message does not say that nothing was started."""
    _refuse_trigger(run, monkeypatch)
    if triggered:
        run.run("submit_target")
    before = dict(run.worker.triggered)
    if lifted:
        lift_fence(str(run.source.control), STOP)
    run.source.beat(2)
    with pytest.raises(HandoverError, match=re.escape(named)) as caught:
        run.run("submit_target")
    assert "nothing was started" not in str(caught.value)
    assert run.worker.triggered == before


@tells_of_dags
def test_after_the_mark_a_paused_dag_is_told_with_what_may_wait(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may be queued already: unpausing starts it."""
    _refuse_trigger(run, monkeypatch)
    run.worker.paused = {"orders_stream": True}
    with pytest.raises(NotReadyError) as caught:
        run.run("submit_target")
    assert str(caught.value).startswith(f"{EARLIER}: DAG orders_stream is paused")


def test_a_run_that_waits_to_begin_is_not_triggered_twice(run: Failover) -> None:
    """Triggered, and the target job has yet to begin: skipped, by the id of the DAG run."""
    run.run_until("submit_target")
    run.run("submit_target")
    before = dict(run.worker.triggered)
    run.run("submit_target")
    assert run.worker.triggered == before


def test_a_job_that_has_begun_is_left_alone_whatever_became_of_the_source(run: Failover) -> None:
    """Plan, fence and source may be gone by then: there is nothing left to compare."""
    run.run_until("submit_target")
    run.run("submit_target")
    run.run("wait_started")
    run.worker.triggered.clear()
    lift_fence(str(run.source.control), STOP)
    (run.source.checkpoint / "metadata").unlink()
    for plan in (run.target / "plans").iterdir():
        plan.unlink()
    run.run("submit_target")
    assert not run.worker.triggered


def test_without_a_control_location_the_claim_tells(run: Failover) -> None:
    """A job without stop control has no fence: what was started is known all the same."""
    run.run_until("submit_target")
    run.remove_control()
    run.run("submit_target")
    assert len(run.worker.triggered) == 1
    run.source.commit(1, 8, 0, 0, 0)
    with pytest.raises(HandoverError, match=re.escape(f"the job has run since; {EARLIER}")):
        run.run("submit_target")
    run.play("wait_started")
    run.worker.triggered.clear()
    run.run("submit_target")
    assert not run.worker.triggered


def test_without_a_control_location_a_target_in_use_is_refused(run: Failover) -> None:
    """Somebody else's checkpoint would be gone on with."""
    run.run_until("submit_target")
    vars(run.dag.get_task("submit_target"))["control"] = None
    run.play("wait_started")
    with pytest.raises(
        NotReadyError, match=r"nothing was started on the target: .*/checkpoint hol"
    ):
        run.run("submit_target")
    assert not run.worker.triggered


@pytest.mark.parametrize("has_control", [True, False])
def test_a_dag_run_of_a_former_life_is_not_taken_for_this_ones(
    run: Failover, *, has_control: bool
) -> None:
    """The run failed after the trigger, the job ran on the source again, and all is cleared.

    The DAG run of that id is long dead, and was given other offsets. Deleted, the task goes on.
    """
    if not has_control:
        run.remove_control()
    run.run_until("wait_started")
    forget_stop(str(run.source.control), STOP)
    shutil.rmtree(run.target)
    if not has_control:
        run.remove_control()
    run.source.beat(1, run_id="r2")
    run.source.commit(1, 9, 0, 0, 0)
    vars(run.source)["acknowledge"] = partial(run.source.acknowledge, batch_id=1)
    run.run_until("submit_target")
    before = dict(run.worker.triggered)
    named = "DAG orders_stream has the run 'mm2_failover__manual__1' already.* delete that DAG run"
    for _ in range(2):
        with pytest.raises(HandoverError, match=f"^nothing was started on the target: {named}"):
            run.run("submit_target")
    assert run.worker.triggered == before
    run.worker.triggered.clear()
    run.run("submit_target")
    (conf,) = run.worker.triggered.values()
    assert conf["starting_offsets"] == STARTING.replace("9", "14")


def test_without_a_control_location_a_run_that_was_rolled_back_begins_anew(run: Failover) -> None:
    """Its stop forgets the mark of the roll-back, as it does in a control location."""
    run.run_until("submit_target")
    run.remove_control()
    target = UPath(run.target) / "checkpoint"
    roll_back(FailoverRun(request_id=STOP, control=None, target_checkpoint=target, has_killed=True))
    with pytest.raises(HandoverError, match="was rolled back, since"):
        run.run("submit_target")
    run.run("stop_source")
    run.run("submit_target")
    assert len(run.worker.triggered) == 1


def test_another_plan_than_the_approved_one_starts_nothing(run: Failover) -> None:
    """As where the plan was deleted and made anew, and only its own task was cleared."""
    run.run_until("submit_target")
    run.worker.xcoms["approve", "return_value"]["plan_digest"] = "0" * 64
    with pytest.raises(PlanError, match=r"was approved: nothing was started by this try"):
        run.run("submit_target")
    assert not run.worker.triggered
    run.run("forecast")
    run.run("approve")
    run.run("submit_target")
    assert len(run.worker.triggered) == 1


def test_without_a_control_location_the_check_finds_another_run(run: Failover) -> None:
    """By its lock, before the job is killed."""
    source = UPath(run.source.checkpoint)
    acquire_lock(LockPlaces(source=source, target=None), new_lock("another:1", "planned"))
    vars(run.task("check"))["control"] = None
    with pytest.raises(NotReadyError, match=r"the run 'another:1' \(planned\) works on it, since"):
        run.run("check")
