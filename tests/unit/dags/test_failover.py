"""The failover DAG, task by task, with a job and clusters that are only played."""

import time
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.errors import NotReadyError, ReconciliationError, StopError
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.clusters import Clusters, define
from tests.unit.operators.worker import events, rebuild
from tests.unit.spark import checkpoints

RUN = "mm2_failover__manual__1"


def _outcome(run: Failover) -> dict[Any, Any]:
    kept = {key: value for key, value in run.worker.xcoms.items() if key[0] in STEPS}
    return {**kept, "asked": run.source.requested_stop(), "triggered": dict(run.worker.triggered)}


def test_a_failover_from_check_to_report(run: Failover) -> None:
    """Params, templates and XComs carry the job from its positions to those on the target."""
    for task_id in STEPS:
        run.run(task_id)
    assert run.source.requested_stop() == "mm2_failover:manual__1"
    assert run.worker.triggered == {
        ("orders_stream", RUN): {
            "kafka_conn_id": "kafka_target",
            "topic": "orders",
            "folder": str(run.target),
            "starting_offsets": STARTING,
        }
    }
    report = run.worker.xcoms["report", "return_value"]
    assert report["stopped"]["clean"] is True
    assert report["plan"] == run.worker.xcoms["translate", "return_value"]
    assert report["started"]["positions"] == '{"orders":{"0":15,"1":0,"2":0,"3":0}}'


@pytest.mark.parametrize("task_id", STEPS[:-1])
def test_a_cleared_task_ends_in_the_same_result(run: Failover, task_id: str) -> None:
    """Whichever task is cleared with all after it: one stop, one plan, one target job."""
    for each in STEPS:
        run.run(each)
    first = _outcome(run)
    for each in STEPS[STEPS.index(task_id) :]:
        run.run(each)
    assert _outcome(run) == first


def test_the_verification_compares_the_switch_where_it_is_asked_for(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skipped unless asked for; else it has the plan, both outputs, and where the job stands."""
    submitted: list[ReconcileOperator] = []

    def submit(self: ReconcileOperator, context: Context) -> None:
        assert context
        submitted.append(self)
        raise ReconciliationError("no Spark here")

    monkeypatch.setattr(ReconcileOperator, "execute", submit)
    for each in STEPS:
        run.run(each)
    assert not submitted

    run.worker.conf = {**run.worker.conf, "verify": True}
    with pytest.raises(ReconciliationError):
        run.run("verify")
    (verify,) = submitted
    assert verify.plan == run.worker.xcoms["translate", "return_value"]
    assert verify.committed == '{"orders":{"0":15,"1":0,"2":0,"3":0}}'
    assert verify.report == f"{run.target}/verified"
    assert [each["path"] for each in verify.sinks] == [
        f"{run.source.folder}/output",
        f"{run.target}/output",
    ]


def _wait_for_the_stop(run: Failover, **params: object) -> SparkStoppedTrigger:
    run.worker.conf = {**run.worker.conf, **params}
    stop = run.dag.get_task("stop_source")
    assert isinstance(stop, BaseOperator)
    trigger = rebuild(run.worker.run(stop))
    assert isinstance(trigger, SparkStoppedTrigger)
    return trigger


def test_a_job_is_neither_given_up_nor_killed_by_default(run: Failover) -> None:
    """By default a job that says nothing fails the failover; it goes on where it is."""
    trigger = _wait_for_the_stop(run)
    assert trigger.heartbeat_timeout is None
    assert trigger.deadline == pytest.approx(time.time() + 600, abs=5)


def test_a_silent_job_is_given_up_after_heartbeat_timeout(run: Failover) -> None:
    """After ``heartbeat_timeout`` its silence is the proof, and the failover goes on from there."""
    run.source.beat(1, lease=0.1)
    trigger = _wait_for_the_stop(run, heartbeat_timeout=30)
    assert trigger.heartbeat_timeout == 30.0
    trigger.heartbeat_timeout = 0.05
    (event,) = events(trigger)
    assert event["result"]["proof"] == "silent"


def test_a_job_that_does_not_stop_is_killed_after_kill_after(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ``kill_after`` the Spark connection says how; here, that it runs elsewhere."""
    define(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    run.worker.conf = {**run.worker.conf, "kill_after": 0}
    stop = run.dag.get_task("stop_source")
    assert isinstance(stop, BaseOperator)
    deferred = run.worker.run(stop)
    (event,) = events(rebuild(deferred))
    with pytest.raises(StopError, match="run this task on h, or end it there"):
        run.worker.run(stop, after=deferred, event=event)


def test_a_check_that_fails_leaves_the_job_alone(run: Failover) -> None:
    """The check names the problem before the job is asked to stop."""
    checkpoints.simple(run.target / "checkpoint")
    with pytest.raises(NotReadyError):
        run.run("check")
    assert run.source.requested_stop() is None


@pytest.mark.parametrize("conn_id", [None, "", "elsewhere"])
def test_the_target_job_reads_the_target(
    run: Failover, clusters: Clusters, monkeypatch: pytest.MonkeyPatch, conn_id: str | None
) -> None:
    """An empty field of the form means the default connection."""
    servers = {"bootstrap.servers": clusters.target.bootstrap_servers}
    define(monkeypatch, "elsewhere", conn_type="kafka", extra=servers)
    define(
        monkeypatch,
        "mm2_default",
        extra={"replication_policy": "identity", "target_kafka_conn_id": conn_id},
    )
    run.run_until("submit_target")
    run.run("submit_target")
    (conf,) = run.worker.triggered.values()
    assert conf["kafka_conn_id"] == (conn_id or "kafka_target")
