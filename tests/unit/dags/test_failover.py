"""The failover DAG, task by task, with a job and clusters that are only played."""

import time
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.errors import (
    HandoverError,
    NotReadyError,
    ReconciliationError,
    StopError,
)
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.spark.fence import FenceState, new_fence
from airflow_mm2_offsets.spark.stopping import begin_stop
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger
from tests.unit.dags.dags_folder import FOLDER, STEPS, parse
from tests.unit.dags.failovers import MOVING, STARTING, Failover
from tests.unit.operators.clusters import Clusters, define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import events, rebuild
from tests.unit.spark import checkpoints

RUN = "mm2_failover__manual__1"


def _outcome(run: Failover) -> dict[Any, Any]:
    # The check's report is of a moment: a cleared check finds its failover under way.
    # A report has the times of its own run.
    kept = {key: value for key, value in run.worker.xcoms.items() if key[0] in STEPS[1:-1]}
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


def test_two_jobs_are_moved_at_the_same_time(run: Failover) -> None:
    """Step by step beside each other, each ends with its own job on the target."""
    worker, conf, xcoms = run.worker, run.worker.conf, run.worker.xcoms
    job = Job(run.source.folder.parent / "refunds", 4, 0, 0, 0)
    dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
    other = Failover(worker, dag, job, "refunds-target")
    runs = [(run, "manual__1", conf, xcoms), (other, "manual__2", worker.conf, {})]
    for task_id in MOVING:
        for each, worker.run_id, worker.conf, worker.xcoms in runs:
            each.run(task_id)
    folders = {key[1]: conf["folder"] for key, conf in worker.triggered.items()}
    assert folders == {RUN: str(run.target), "mm2_failover__manual__2": str(other.target)}
    assert run.fence_state() is other.fence_state() is FenceState.MOVED


def test_of_two_runs_for_one_job_only_the_later_stop_may_start_it(run: Failover) -> None:
    """The second run takes over the fence of a stop that was answered; the first starts nothing."""
    run.run_until("submit_target")
    begin_stop(str(run.source.control), new_fence("mm2_failover:manual__2", "elsewhere"))
    with pytest.raises(HandoverError, match="the fence is not of 'mm2_failover:manual__1'"):
        run.run("submit_target")
    assert not run.worker.triggered


def test_the_job_gets_its_output_where_the_user_gives_one(run: Failover) -> None:
    """What ``check`` has looked at is where the job writes, and what is compared."""
    sink = str(run.target.parent / "lake")
    run.worker.conf = {**run.worker.conf, "sink": sink, "source_sink": "/was/here"}
    for task_id in MOVING:
        run.run(task_id)
    (conf,) = run.worker.triggered.values()
    assert conf["output"] == sink
    checks = run.worker.xcoms["check", "return_value"]["checks"]
    (looked_at,) = [each for each in checks if each["name"] == "sink"]
    assert sink in looked_at["value"]
    verify = run.task("verify")
    assert isinstance(verify, ReconcileOperator)
    context = {"params": {**run.dag.params.dump(), **run.worker.conf}}
    sinks = verify.render_template(verify.sinks, context)  # type: ignore[arg-type]
    assert [each["path"] for each in sinks] == ["/was/here", sink]


def test_a_job_that_is_started_again_writes_where_it_wrote(run: Failover) -> None:
    """A roll-back with ``restart`` gives the job on the source its own output."""
    conf = {"on_failure": "restart", "source_sink": "/was/here", "sink": "/is/to/be"}
    run.worker.conf = {**run.worker.conf, **conf}
    run.run_until("submit_target")
    run.run("roll_back")
    (restarted,) = run.worker.triggered.values()
    assert restarted["output"] == "/was/here"
    assert restarted["folder"] == str(run.source.folder)


def test_a_drill_writes_in_its_own_folder(run: Failover) -> None:
    """Its job gets no ``output``, and what is compared is in the drill's folder."""
    run.worker.conf = {**run.worker.conf, "mode": "drill"}
    verify = run.task("verify")
    assert isinstance(verify, ReconcileOperator)
    context = {"params": {**run.dag.params.dump(), **run.worker.conf, "sink": "/lake"}}
    sinks = verify.render_template(verify.sinks, context)  # type: ignore[arg-type]
    assert sinks[1]["path"] == f"{run.target}-drill/output"
    assert "output" not in vars(run.task("start_drill"))["conf"]
