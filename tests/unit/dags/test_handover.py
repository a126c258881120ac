"""Faults between the tasks of a failover: never two jobs, never positions that are left behind."""

import random

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    Mm2OffsetsError,
    NotReadyError,
)
from airflow_mm2_offsets.spark.fence import FenceState, lift_fence, new_fence
from airflow_mm2_offsets.spark.stopping import begin_stop
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.dags.failovers import MOVING, STARTING, STOP, Failover


def _lift(run: Failover) -> None:
    lift_fence(str(run.source.control), STOP)


def _start_again(run: Failover, *, does_a_batch: bool = True) -> None:
    """Let somebody lift the fence and start the source job again."""
    _lift(run)
    run.source.beat(1, run_id="r2")
    if does_a_batch:
        run.source.commit(1, 8, 0, 0, 0)


def test_a_source_job_that_was_started_again_is_not_moved_from_where_it_was(run: Failover) -> None:
    """Stopped, MirrorMaker 2 down, started again, MirrorMaker 2 back, the failed task cleared."""
    run.run_until("wait_replicated")
    _start_again(run)
    run.run("wait_replicated")
    with pytest.raises(HandoverError) as caught:
        run.run("translate")
    text = str(caught.value)
    assert 'is {"orders":{"0":8,"1":0,"2":0,"3":0}} now, and was {"orders":{"0":4,' in text
    assert "nothing was started" in text
    assert isinstance(caught.value, AirflowFailException)
    assert not run.worker.triggered


def test_a_conf_that_no_dag_run_takes_moves_no_job(run: Failover) -> None:
    """Airflow would refuse it after the mark, and the failover could not be rolled back."""
    run.run_until("submit_target")
    task = run.task("submit_target")
    vars(task)["conf"] = {**vars(task)["conf"], "started": object}
    with pytest.raises(ConfigurationError, match="conf can't be given to a DAG run, which takes J"):
        run.run("submit_target")
    assert run.fence_state() is FenceState.STOPPING


def test_a_source_job_that_was_started_again_is_seen_before_its_first_batch(run: Failover) -> None:
    """The fence that was lifted tells, though the checkpoint stands where it stood."""
    run.run_until("wait_replicated")
    _start_again(run, does_a_batch=False)
    run.run("wait_replicated")
    run.run("translate")
    with pytest.raises(HandoverError, match=f"the fence of '{STOP}' was lifted"):
        run.run("submit_target")
    assert not run.worker.triggered


@pytest.mark.parametrize(
    ("beat", "named"),
    [
        ({"heartbeat": 2}, "run r of the query is at heartbeat 2 now, and run r was at 1 when"),
        ({"heartbeat": 1, "run_id": "r2"}, "run r2 of the query is at heartbeat 1 now, and run r "),
    ],
)
def test_a_driver_that_beats_behind_the_fence_is_seen(
    run: Failover, beat: dict[str, object], named: str
) -> None:
    """One that knows no fence, or was only paused: both values are named, nothing is started."""
    run.run_until("submit_target")
    run.source.beat(**beat)  # type: ignore[arg-type]
    with pytest.raises(HandoverError, match=named):
        run.run("submit_target")
    assert not run.worker.triggered
    assert run.fence_state() is FenceState.STOPPING


def test_a_batch_that_was_begun_behind_the_fence_is_seen(run: Failover) -> None:
    """It may have written to the sink what the target job would write again."""
    run.run_until("submit_target")
    run.source.commit(1, 8, 0, 0, 0)
    (run.source.checkpoint / "commits" / "1").unlink()
    with pytest.raises(HandoverError, match="its pending_batch is 1 now, and was None when it was"):
        run.run("submit_target")
    assert not run.worker.triggered


def test_the_job_is_marked_as_moved_before_it_is_started(run: Failover) -> None:
    """From there on no other run moves it, whatever fails."""
    run.run_until("submit_target")
    assert run.fence_state() is FenceState.STOPPING
    run.run("submit_target")
    assert run.fence_state() is FenceState.MOVED
    assert len(run.worker.triggered) == 1


@pytest.mark.parametrize("seed", range(6))
def test_tasks_of_a_finished_run_cleared_in_any_order(run: Failover, seed: int) -> None:
    """Each succeeds or is skipped: one target job, from the positions of the stop."""
    for each in MOVING:
        run.run(each)
    for each in random.Random(seed).sample(MOVING, len(MOVING)):  # noqa: S311 - an order
        run.run(each)
        assert list(run.worker.triggered) == [("orders_stream", "mm2_failover__manual__1")]
        assert run.worker.xcoms["translate", "starting_offsets"] == STARTING
    assert run.source.requested_stop() == STOP


@pytest.mark.parametrize("failed", ["wait_replicated", "translate", "submit_target"])
@pytest.mark.parametrize("seed", range(3))
def test_tasks_of_a_failed_run_cleared_once_the_source_job_runs_again(
    run: Failover, failed: str, seed: int
) -> None:
    """In whatever order they are cleared, nothing is started beside the job that runs."""
    run.run_until(failed)
    _start_again(run)
    cleared = [
        each for each in MOVING[: MOVING.index("submit_target") + 1] if each != "stop_source"
    ]
    for each in random.Random(seed).sample(cleared, len(cleared)):  # noqa: S311 - an order
        run.source.beat(2 + seed, run_id="r2")
        try:
            run.run(each)
        except (Mm2OffsetsError, TypeError):  # a task before which nothing was read has no input
            continue
    assert not run.worker.triggered
    assert run.fence_state() is None


@pytest.mark.parametrize("failed", ["translate", "submit_target"])
def test_a_task_cleared_while_the_fence_stands_goes_on(run: Failover, failed: str) -> None:
    """A failed run whose job nobody has touched ends as if nothing had been."""
    run.run_until(failed)
    for each in MOVING:
        run.run(each)
    (conf,) = run.worker.triggered.values()
    assert conf["starting_offsets"] == STARTING


def _second_run(run: Failover) -> Failover:
    """Return another run for the same job, to another folder."""
    run.worker.run_id = "manual__2"
    dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
    return Failover(run.worker, dag, run.source, "elsewhere")


def test_a_job_is_not_moved_twice(run: Failover) -> None:
    """A second run to another folder is refused, and told by whom and where the job was moved."""
    for each in MOVING:
        run.run(each)
    second = _second_run(run)
    with pytest.raises(NotReadyError) as caught:
        second.run("check")
    assert f"the job was moved to {run.target} by '{STOP}'" in str(caught.value)
    for each in ("read_positions", "wait_replicated", "translate"):
        second.run(each)
    with pytest.raises(HandoverError, match=f"the job was moved to {run.target} by '{STOP}'"):
        second.run("submit_target")
    assert list(run.worker.triggered) == [("orders_stream", "mm2_failover__manual__1")]


def test_a_job_that_another_run_is_stopping_is_left_to_it(run: Failover) -> None:
    """Until its stop is answered; a run that failed after that may be followed by another."""
    begin_stop(str(run.source.control), new_fence(STOP, str(run.target)))
    second = _second_run(run)
    with pytest.raises(NotReadyError, match=f"the job is being moved to .* by '{STOP}'"):
        second.run("check")
    run.source.acknowledge()
    second.run("check")
