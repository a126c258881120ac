"""Faults between the tasks of a failover: never two jobs, never positions that are left behind."""

import random
from collections.abc import Callable

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_mm2_offsets.errors import (
    HandoverError,
    Mm2OffsetsError,
    NotReadyError,
    PlanError,
    StopError,
)
from airflow_mm2_offsets.spark.fence import FenceState, lift_fence, new_fence, read_fence
from airflow_mm2_offsets.spark.stopping import begin_stop
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.dags.folder import FOLDER, STEPS, parse
from tests.unit.operators.clusters import Clusters

STOP = "mm2_failover:manual__1"
MOVING = STEPS[:-1]
"""All but the comparison, which is off."""


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
    assert _state(run) is FenceState.STOPPING


def test_a_batch_that_was_begun_behind_the_fence_is_seen(run: Failover) -> None:
    """It may have written to the sink what the target job would write again."""
    run.run_until("submit_target")
    run.source.commit(1, 8, 0, 0, 0)
    (run.source.checkpoint / "commits" / "1").unlink()
    with pytest.raises(HandoverError, match="its pending_batch is 1 now, and was None when it was"):
        run.run("submit_target")
    assert not run.worker.triggered


def _state(run: Failover) -> FenceState | None:
    fence = read_fence(str(run.source.control))
    return fence and fence.state


def test_the_job_is_marked_as_moved_before_it_is_started(run: Failover) -> None:
    """From there on no other run moves it, whatever fails."""
    run.run_until("submit_target")
    assert _state(run) is FenceState.STOPPING
    run.run("submit_target")
    assert _state(run) is FenceState.MOVED
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
    assert run.source.asked() == STOP


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
    assert _state(run) is None


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


tells_of_dags = pytest.mark.skipif(
    not hasattr(RuntimeTaskInstance, "get_dag"), reason="Airflow tells a task of DAGs from 3.2 on"
)


@tells_of_dags
@pytest.mark.parametrize(
    ("paused", "named"),
    [({"orders_stream": True}, "DAG orders_stream is paused"), ({}, "has no DAG orders_stream")],
)
def test_a_dag_that_would_not_start_is_refused_before_anything_is_stopped(
    run: Failover, paused: dict[str, bool], named: str
) -> None:
    """Its run would be queued, and start another copy once somebody unpauses it."""
    run.worker.paused = paused
    with pytest.raises(NotReadyError, match=named):
        run.run("check")
    assert run.source.asked() is None


@tells_of_dags
def test_a_dag_that_was_paused_meanwhile_gets_no_run(run: Failover) -> None:
    """Nothing is queued, and the job is not marked as moved; unpaused, the cleared task goes on."""
    run.run_until("submit_target")
    run.worker.paused = {"orders_stream": True}
    with pytest.raises(NotReadyError, match="on the target: DAG orders_stream is paused"):
        run.run("submit_target")
    assert not run.worker.triggered
    assert _state(run) is FenceState.STOPPING
    run.worker.paused = {"orders_stream": False}
    run.run("submit_target")
    assert run.worker.triggered


def test_an_airflow_that_tells_nothing_of_dags_is_gone_on_with(
    run: Failover, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before 3.2 a task may not ask; the log says what to look at."""
    monkeypatch.delattr(RuntimeTaskInstance, "get_dag", raising=False)
    run.worker.paused = {}
    run.run("check")
    assert (
        "does not tell a task about DAG orders_stream: see for yourself that it exists"
        in caplog.text
    )


def test_the_sink_is_checked_before_anything_is_stopped(run: Failover) -> None:
    """By default the folder that the target job writes to; the param names another."""
    for folder, params in ((run.target / "output", {}), (run.target / "x", {"sink": "x"})):
        log = folder / "_spark_metadata"
        log.mkdir(parents=True)
        (log / "4").write_text("v1")
        run.worker.conf = {**run.worker.conf, **{name: str(folder) for name in params}}
        with pytest.raises(NotReadyError, match="_spark_metadata has batches up to 4"):
            run.run("check")
        (log / "4").unlink()
        log.rmdir()


def test_a_target_checkpoint_that_came_meanwhile_is_refused(run: Failover) -> None:
    """Somebody else's job would be gone on with; where this run's is, it is found by its id."""
    run.run_until("submit_target")
    run.play("wait_started")
    with pytest.raises(NotReadyError, match="checkpoint holds commits, metadata, offsets, sources"):
        run.run("submit_target")
    assert not run.worker.triggered


def test_a_plan_that_was_edited_or_lost_starts_nothing(run: Failover) -> None:
    """Neither check nor hand-over goes by it."""
    run.run_until("submit_target")
    (path,) = (run.target / "plans").iterdir()
    whole = path.read_text()
    path.write_text(whole.replace('"target": "9"', '"target": "999999"'))
    with pytest.raises(PlanError, match=r"orders\[0\]: target is 999999, above high 9"):
        run.run("submit_target")
    with pytest.raises(NotReadyError, match=r"the failover can't go on; 1 to mend:\n.*999999"):
        run.run("check")
    path.unlink()
    with pytest.raises(PlanError, match="is gone, and the target job is to start from it"):
        run.run("submit_target")
    assert not run.worker.triggered


@pytest.mark.parametrize("told", [None, STARTING.replace("9", "8")])
def test_offsets_that_are_not_the_plans_start_nothing(run: Failover, told: str | None) -> None:
    """A task marked as successful leaves none; what an older plan said is not gone by either."""
    run.run_until("submit_target")
    run.worker.xcoms["translate", "starting_offsets"] = told
    with pytest.raises(PlanError, match="conf says starting_offsets"):
        run.run("submit_target")
    assert not run.worker.triggered
    assert _state(run) is FenceState.STOPPING


def test_a_run_that_is_made_again_moves_no_job_to_another_folder(run: Failover) -> None:
    """Its id is that of the run that moved the job, whose target run somebody has deleted."""
    for each in MOVING:
        run.run(each)
    run.worker.triggered.clear()
    dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
    again = Failover(run.worker, dag, run.source, "elsewhere")
    again.run_until("submit_target")
    with pytest.raises(StopError, match=f"was moved to {run.target} .* not to {again.target}"):
        again.run("submit_target")
    assert not run.worker.triggered


def test_a_job_that_has_begun_is_not_started_twice(run: Failover) -> None:
    """Its DAG run was deleted or purged, and the task cleared: the driver may run all the same."""
    for each in MOVING:
        run.run(each)
    run.worker.triggered.clear()
    run.run("submit_target")
    assert not run.worker.triggered


def _delete_records(clusters: Clusters) -> None:
    clusters.target.delete_records("orders", 0, 15)


def _truncate(clusters: Clusters) -> None:
    del clusters.target.log("orders", 0).entries[3:]


@pytest.mark.parametrize("cleared", ["submit_target", "translate"])
@pytest.mark.parametrize(
    ("change", "shown"),
    [(_delete_records, "it has deleted records"), (_truncate, "the topic was truncated")],
)
def test_a_target_that_holds_the_start_no_more_gets_no_job(
    run: Failover,
    clusters: Clusters,
    change: Callable[[Clusters], None],
    shown: str,
    cleared: str,
) -> None:
    """Retention, or hands, can be faster than the people between two tasks."""
    run.run_until("submit_target")
    change(clusters)
    with pytest.raises(
        PlanError, match=rf"orders\[0\]: starts at 9, and the target holds .*{shown}"
    ):
        run.run(cleared)
    assert not run.worker.triggered
