"""Faults in front of the start on the target: a DAG, a checkpoint or a plan that has changed."""

from collections.abc import Callable

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_mm2_offsets.errors import (
    NotReadyError,
    PlanError,
    StopError,
)
from airflow_mm2_offsets.spark.fence import FenceState
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.dags.failovers import MOVING, STARTING, Failover, tells_of_dags
from tests.unit.operators.clusters import Clusters


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
    assert run.source.requested_stop() is None


@tells_of_dags
def test_a_dag_that_was_paused_meanwhile_gets_no_run(run: Failover) -> None:
    """Nothing is queued, and the job is not marked as moved; unpaused, the cleared task goes on."""
    run.run_until("submit_target")
    run.worker.paused = {"orders_stream": True}
    with pytest.raises(NotReadyError, match="on the target: DAG orders_stream is paused"):
        run.run("submit_target")
    assert not run.worker.triggered
    assert run.fence_state() is FenceState.STOPPING
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
    assert "does not tell a task about DAG orders_stream: check that it exists" in caplog.text


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
    path = run.target / "plans" / "manual__1.json"
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


@pytest.mark.parametrize("starting_offsets", [None, STARTING.replace("9", "8")])
def test_offsets_that_are_not_the_plans_start_nothing(
    run: Failover, starting_offsets: str | None
) -> None:
    """Those of a task that was only marked as successful (none), and those of an older plan."""
    run.run_until("submit_target")
    run.worker.xcoms["translate", "starting_offsets"] = starting_offsets
    with pytest.raises(PlanError, match="conf says starting_offsets"):
        run.run("submit_target")
    assert not run.worker.triggered
    assert run.fence_state() is FenceState.STOPPING


def test_a_recreated_run_moves_no_job_to_another_folder(run: Failover) -> None:
    """Its id is that of the run that moved the job, and the DAG run of the target was deleted."""
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
    clusters.truncate_target(3)


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
