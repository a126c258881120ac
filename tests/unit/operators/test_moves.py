"""A whole move, task by task, through the job's journal: there, home, and given up."""

from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException
from airflow.providers.standard.operators.python import PythonOperator
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    NotReadyError,
    StopError,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.journal import Event, FenceState, State
from airflow_mm2_offsets.moves.overview import overview_of
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.handover import HandOverOperator, TriggerTargetDagOperator
from airflow_mm2_offsets.operators.links import PROBLEM
from airflow_mm2_offsets.operators.moving import INTENT
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from airflow_mm2_offsets.sensors.stopped import SparkStoppedSensor
from airflow_mm2_offsets.spark.offsets import parse_offsets
from airflow_mm2_offsets.task_groups import STEPS, failover_tasks
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.mover import WAITS, Mover
from tests.unit.operators.spark_job import Job


def test_a_job_is_moved(mover: Mover) -> None:
    """The journal tells each step what it needs, and the fence tells the driver where to begin."""
    east, west = mover.job.homes
    mover.until_start(mover.folder / "source")
    plan = mover.worker.xcoms["TranslateOffsetsOperator", "return_value"]
    assert plan["verdict"] == "ready"
    started = mover.run(TriggerTargetDagOperator)
    assert started == {"dag_id": "orders_stream", "run_id": "failover__manual__1__orders__1"}
    assert mover.worker.triggered["orders_stream", "failover__manual__1__orders__1"] == {
        "kafka_conn_id": "kafka_target",
        "folder": west.folder,
    }
    fence = read_fence(UPath(west.control))
    assert fence is not None
    assert fence.starting_offsets == '{"orders":{"0":9,"1":6,"2":3,"3":2}}'
    assert (mover.fence(east), fence.topics) == (FenceState.MOVED, "orders")
    mover.begin(Path(west.folder), 9, 6, 3, 2)
    mover.run(SparkStartedSensor, **WAITS)
    # Noted are the wait for the proof, what MirrorMaker 2 has copied, and the plan.
    noted = ["ask", "note", "prove", "note", "note", "hand over", "arrive"]
    assert mover.events() == noted
    last = mover.entries()[-1]
    assert (last.state, last.home) == (State.HOME, west.folder)


def test_a_check_says_where_the_job_goes(mover: Mover) -> None:
    """Before the stop, and once more while the move is under way."""
    mover.source.beat(1, bootstrap_servers=["source:9092"])
    report = mover.run(CheckFailoverOperator)
    assert report["policy"] == "planned"
    mover.until_start(mover.folder / "source")
    assert mover.run(CheckFailoverOperator)["is_under_way"]
    mover.worker.run_id = "manual__2"
    with pytest.raises(NotReadyError, match="wait for that run"):
        mover.run(CheckFailoverOperator)


def test_every_task_may_be_cleared(mover: Mover) -> None:
    """In any order, before and after the hand-over, and no second job is started."""
    mover.until_start(mover.folder / "source")
    mover.until_start(mover.folder / "source")
    mover.run(ApproveFailoverOperator, ask="never")
    mover.run(TriggerTargetDagOperator)
    for _ in range(2):
        mover.run(TriggerTargetDagOperator)
    west = mover.job.homes[1]
    mover.begin(Path(west.folder), 9, 6, 3, 2)
    for _ in range(2):
        mover.run(SparkStartedSensor, **WAITS)
        mover.run(TriggerTargetDagOperator)
        proof = mover.run(StopSparkStreamingOperator, deferrable=True)
        assert proof["proof"] == "acknowledged"
        for operator in (CheckFailoverOperator, Mm2ReplicatedSensor):
            assert mover.run_task(mover.task(operator)) == "SKIPPED"
        mover.run(TranslateOffsetsOperator)
        assert mover.run(ApproveFailoverOperator)["approved"] is True
    assert list(mover.worker.triggered) == [("orders_stream", "failover__manual__1__orders__1")]
    assert mover.entries()[-1].home == west.folder


@pytest.mark.parametrize("is_archived", [False, True])
def test_the_way_home_needs_no_folders_exchanged(mover: Mover, *, is_archived: bool) -> None:
    """The journal says where the job is, by which plan it came, and where it goes.

    The job's archive is of the mirror, whose source the job then goes to.
    """
    if is_archived:
        mover.more = {"archive": str(mover.folder / "archive")}
        archive = SyncArchive(f"{mover.folder}/archive/{mover.job.mm2_conn_id}")
        archive_syncs(Mm2OffsetHook().get_conn(), archive)
    mover.until_start(mover.folder / "source")
    west = mover.arrive()
    mover.worker.run_id = "manual__2"
    mover.until_start(Path(west.folder))
    mover.run(TriggerTargetDagOperator)
    home = mover.job.homes[0].stay(2)
    number = mover.entries()[-1].move
    conf = mover.worker.triggered["orders_stream", f"failover__manual__2__orders__{number}"]
    assert conf == {"kafka_conn_id": "kafka_source", "folder": home.folder}
    fence = read_fence(UPath(home.control))
    assert fence is not None
    assert fence.starting_offsets == '{"orders":{"0":4,"1":6,"2":3,"3":2}}'
    assert mover.fence(west) is FenceState.MOVED


def test_each_move_is_checked_by_its_own_direction(mover: Mover) -> None:
    """There, home, and there again: only the way home asks for the plan of the move before it."""
    at = mover.job.homes[0]
    for run, side in enumerate(("source", "target", "source"), 1):
        mover.worker.run_id = f"manual__{run}"
        Job.at(Path(at.folder)).beat(1, bootstrap_servers=[f"{side}:9092"])
        report = mover.run(CheckFailoverOperator)
        (translation,) = (each for each in report["checks"] if each["name"] == "translation")
        assert translation["status"] == "ok"
        mover.until_start(Path(at.folder))
        at = mover.arrive()
    assert at == mover.job.homes[1].stay(2)


def test_a_second_run_to_the_same_cluster_is_told_at_once(mover: Mover) -> None:
    """Before its stop: the job is there already."""
    mover.to = "target"
    Job.at(mover.folder / "source").beat(1, bootstrap_servers=["source:9092"])
    mover.run(CheckFailoverOperator)
    mover.until_start(mover.folder / "source")
    west = mover.arrive()
    mover.worker.run_id = "manual__2"
    assert f"job orders is already at {west}: there is nothing to move" in mover.problems()


def test_a_job_that_has_run_since_is_not_started_elsewhere(mover: Mover) -> None:
    """Somebody has started it again, hours after the stop."""
    mover.until_start(mover.folder / "source")
    mover.source.commit(1, 5, 6, 3, 2)
    with pytest.raises(HandoverError, match="committed_batch is 1 now, and was 0"):
        mover.run(TriggerTargetDagOperator)
    assert mover.worker.triggered == {}


@pytest.mark.parametrize(("name", "problem"), [("paused", "is paused"), ("absent", "has no DAG")])
def test_a_dag_that_can_not_run_is_not_triggered(mover: Mover, name: str, problem: str) -> None:
    """Nothing is handed over."""
    mover.worker.paused = {"orders_stream": True} if name == "paused" else {}
    mover.until_start(mover.folder / "source")
    with pytest.raises(NotReadyError, match=problem):
        mover.run(TriggerTargetDagOperator)
    assert mover.entries()[-1].state is State.STOPPED


class TestRollBack:
    """A move that has failed is taken back until it hands over."""

    def test_a_job_that_has_stopped_may_run_again(self, mover: Mover) -> None:
        """And its next move is a new one."""
        east, _ = mover.job.homes
        mover.until_start(mover.folder / "source")
        answer = mover.run(RollbackFailoverOperator)
        assert (answer["done"], answer["job"]) == ("rolled_back", "stopped")
        assert mover.run(RollbackFailoverOperator) == answer
        assert mover.fence(east) is FenceState.OPEN
        assert mover.events()[-2:] == ["return", "arrive"]
        assert mover.worker.triggered == {}
        with pytest.raises(HandoverError):
            mover.run(TriggerTargetDagOperator)

    def test_it_is_started_again_once(self, mover: Mover) -> None:
        """Where that is asked for; a retry finds the DAG run."""
        mover.until_start(mover.folder / "source")
        for _ in range(2):
            answer = mover.run(RollbackFailoverOperator, on_failure="restart")
            assert answer["job"] == "restarted"
        ((key, conf),) = mover.worker.triggered.items()
        assert key == ("orders_stream", "failover__manual__1__orders__1__restart")
        assert conf == {"kafka_conn_id": "kafka_source", "folder": mover.job.homes[0].folder}

    def test_a_stop_without_a_proof_is_withdrawn(self, mover: Mover) -> None:
        """The job runs on."""
        mover.worker.run(mover.task(StopSparkStreamingOperator, deferrable=True))
        answer = mover.run(RollbackFailoverOperator)
        assert (answer["done"], answer["job"]) == ("rolled_back", "runs")
        assert mover.events() == ["ask", "note", "withdraw"]

    def test_after_the_hand_over_it_refuses(self, mover: Mover) -> None:
        """And says what to do."""
        mover.until_start(mover.folder / "source")
        mover.run(TriggerTargetDagOperator)
        with pytest.raises(HandoverError, match=r"jobs settle --journal .*/orders --at .*/source`"):
            mover.run(RollbackFailoverOperator)

    def test_a_run_that_has_begun_nothing_undoes_nothing(self, mover: Mover) -> None:
        """Nor does one whose job another run has taken over."""
        assert mover.run(RollbackFailoverOperator)["done"] == "nothing_to_undo"
        assert mover.run(RollbackFailoverOperator, on_failure="keep")["done"] == "kept"
        assert mover.entries() == []


def test_a_job_of_a_platform_gets_its_offsets_by_xcom(mover: Mover) -> None:
    """The task after the hand-over submits it, with a token that is the same in each try."""
    mover.until_start(mover.folder / "source")
    handed = mover.run(HandOverOperator)
    assert handed == mover.run(HandOverOperator)
    assert handed["starting_offsets"] == '{"orders":{"0":9,"1":6,"2":3,"3":2}}'
    assert (handed["topic"], handed["folder"]) == ("orders", mover.job.homes[1].folder)
    assert len(handed["token"]) == 36
    assert mover.entries()[-1].event is Event.HAND_OVER


def _group(mover: Mover, **settings: Any) -> DAG:
    with DAG("failover", schedule=None) as dag:
        failover_tasks(job=mover.job, prefix_group_id=False, **settings)
    return dag


def test_the_graph_is_a_line(mover: Mover) -> None:
    """One step after the other, of which each reads in the journal what it needs."""
    dag = _group(mover)
    edges = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert [*edges] == [*STEPS]
    assert edges == {name: {after} for name, after in pairwise(STEPS)} | {"report": set()}


def test_a_dry_run_changes_nothing(mover: Mover) -> None:
    """Each step says what it would do, and the plan is of the job's present positions."""
    dag = _group(mover, dry_run="{{ dag_run.conf.dry_run }}")
    mover.worker.conf = {"dry_run": True}
    files = {path for path in mover.folder.rglob("*") if path.is_file()}
    for task in dag.tasks:
        if task.task_id != "check":
            mover.worker.run(task)
    intents = [mover.worker.xcoms.get((name, INTENT)) for name in STEPS]
    assert [bool(each) for each in intents] == [
        *(False, True, True, False),
        *(True, True, True, False),
    ]
    assert mover.worker.xcoms["translate", "return_value"]["verdict"] == "ready"
    assert mover.worker.xcoms["report", "return_value"]["outcome"] == "not begun"
    assert {path for path in mover.folder.rglob("*") if path.is_file()} == files
    assert mover.worker.triggered == {}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"lost_at": "yesterday"}, "lost_at"),
        ({"max_rate": "fast"}, "'fast' is not a number of records per second"),
        ({"lostat": "2026-11-21"}, "lost_at"),
    ],
)
def test_a_wrong_option_is_refused_before_the_stop(
    mover: Mover, options: dict[str, str], problem: str
) -> None:
    """Also one that only the forecast counts with."""
    with pytest.raises((ConfigurationError, NotReadyError), match=problem):
        mover.run(CheckFailoverOperator, options=options)
    assert mover.events() == []


def test_the_forecast_counts_with_what_the_user_knows(mover: Mover) -> None:
    """When the source was lost, and how fast it was written at most."""
    mover.stop(mover.source.folder)
    mover.run(TranslateOffsetsOperator, options='{"max_rate": 7}')
    forecast = mover.worker.xcoms["TranslateOffsetsOperator", "forecast"]
    assert forecast["request"]["max_rate"] == 7


def test_a_wait_is_told_with_its_deadline(mover: Mover, clusters: Clusters) -> None:
    """The journal has what is missing, and until when; whatever comes next ends it."""
    clusters.source.produce("orders", 0, [b"new"] * 3)
    mover.source.commit(0, 12, 6, 3, 2)
    waiting = mover.worker.run(mover.task(StopSparkStreamingOperator, deferrable=True))
    assert waiting.type == "DeferTask"
    status = overview_of(mover.job, UPath).moves[-1]
    assert status.waits_for == "the proof that the Spark job has stopped"
    mover.stop(mover.source.folder)
    assert overview_of(mover.job, UPath).moves[-1].waits_for is None
    task = mover.task(Mm2ReplicatedSensor, timeout=600, deferrable=True)
    assert mover.worker.run(task).type == "DeferTask"
    status = overview_of(mover.job, UPath).moves[-1]
    assert status.waits_for is not None
    assert "everything before the positions: orders[0] at 12" in status.waits_for
    assert status.deadline is not None
    left = (status.deadline - datetime.now(UTC)).total_seconds()
    assert 500 < left < 601
    failed = status.with_cause("wait_replicated: waited 600 s")
    assert (failed.waits_for, failed.deadline) == (None, None)


def test_a_stop_that_is_proved_again_is_no_wait(mover: Mover) -> None:
    """A retry adds nothing to the journal, so that nothing would end its wait there."""
    mover.stop(mover.source.folder)
    entries = mover.entries()
    looks = {"quiet_period": 0.05, "poll_interval": 0.02, "deferrable": True}
    mover.run(StopSparkStreamingOperator, timeout=1200, **looks)
    assert mover.entries() == entries
    assert overview_of(mover.job, UPath).moves[-1].waits_for is None


def test_a_wait_that_is_rescheduled_is_told_once(mover: Mover, clusters: Clusters) -> None:
    """Each look is a process of its own; the deadline stays that of the first."""
    clusters.source.produce("orders", 0, [b"new"] * 3)
    mover.source.commit(0, 12, 6, 3, 2)
    mover.stop(mover.source.folder)
    modes = {"mode": "reschedule", "deferrable": False}
    for timeout in (600, 1200):
        task = mover.task(Mm2ReplicatedSensor, timeout=timeout, **modes)
        assert mover.worker.run(task).type == "RescheduleTask"
    assert mover.events() == ["ask", "note", "prove", "note"]
    deadline = overview_of(mover.job, UPath).moves[-1].deadline
    assert deadline is not None
    assert (deadline - datetime.now(UTC)).total_seconds() < 601


def test_a_move_above_its_thresholds_asks_a_person(mover: Mover) -> None:
    """The page shows the status, the forecast, where the job goes, and what Reject leads to."""
    mover.stop(mover.source.folder)
    mover.run(Mm2ReplicatedSensor, **WAITS)
    mover.run(TranslateOffsetsOperator)
    task = mover.task(ApproveFailoverOperator, ask="always", response_timeout=3600)
    assert mover.worker.run(task).type in {"AwaitInputTask", "DeferTask"}  # since 3.3; before
    (question,) = mover.worker.questions
    assert question.subject.startswith("Failover (planned) of orders: 0 refused partitions")
    shown = " ".join(question.body.split())
    for text in (
        "Job orders (planned, source (",
        "down for: ",
        "Forecast",
        f"**Approve** starts the job at target ({mover.job.homes[1].folder})",
        "orders has been stopped since",
        "and stays stopped until you start it at source (",
        "](/dags/",
        "Without an answer until",
    ):
        assert text in shown, text
    assert f"Answer in task {task.task_id}" in shown
    status = overview_of(mover.job, UPath).moves[-1]
    assert (status.waits_for, status.asked_in) == ("a person's answer", task.task_id)
    assert status.deadline is not None
    assert f"until {status.deadline:%Y-%m-%d %H:%M} UTC" in question.body
    assert f"Answer in task {task.task_id}" in status.next
    answer = {"approved": True, "by": "anna"}
    mover.steps.record(mover.steps.find(), Event.NOTE, approval=answer)
    answered = overview_of(mover.job, UPath).moves[-1]
    assert (answered.waits_for, answered.approved_by) == (None, "anna")


def test_a_failed_move_is_taken_back_and_reported(mover: Mover) -> None:
    """The last step rolls back, says what comes next, and fails."""
    mover.until_start(mover.folder / "source")
    dag = _group(mover, arguments={"report": {"reports": str(mover.folder / "reports")}})
    mover.worker.states = {"check": "success", "stop_source": "success", "approve": "failed"}
    mover.worker.xcoms["approve", PROBLEM] = "anna has rejected it"
    with pytest.raises(AirflowFailException, match="the move failed in approve \\(given up\\)"):
        mover.worker.run(dag.get_task("report"))
    report = mover.worker.xcoms["report", "return_value"]
    assert (report["outcome"], report["rollback"]["job"]) == ("given up", "stopped")
    assert report["status"]["cause"] == "approve: anna has rejected it"
    assert "may run at source" in report["next"][0]
    assert len(report["files"]) == 2
    assert mover.fence(mover.job.homes[0]) is FenceState.OPEN


def test_a_finished_move_is_reported(mover: Mover) -> None:
    """With its numbers and the downtime."""
    mover.until_start(mover.folder / "source")
    mover.run(TriggerTargetDagOperator)
    mover.begin(Path(mover.job.homes[1].folder), 9, 6, 3, 2)
    mover.run(SparkStartedSensor, **WAITS)
    report = mover.run(ReportFailoverOperator)
    assert report["outcome"] == "moved"
    assert report["status"]["numbers"] == {
        "refused": 0,
        "read_again_at_most": 0,
        "lost_at_most": 0,
    }


class TestTakeOver:
    """A run goes on where another has ended."""

    def test_a_job_that_never_began_is_moved_on(self, mover: Mover) -> None:
        """It was handed over, and its DAG run failed before a driver began."""
        mover.until_start(mover.folder / "source")
        mover.run(TriggerTargetDagOperator)
        offsets = mover.entries()[-1].facts["starting_offsets"]
        mover.worker.triggered["failover", "manual__1"] = {}
        mover.worker.run_states["failover", "manual__1"] = "failed"
        mover.worker.run_id = "manual__2"
        mover.run(StopSparkStreamingOperator, quiet_period=0.05, poll_interval=0.02)
        proof = mover.entries()[-1]
        assert (proof.event, proof.facts["proof"]) == (Event.PROVE, "not begun")
        assert proof.facts["positions"] == offsets
        assert mover.fence(mover.job.homes[1]) is FenceState.STOPPING

    def test_a_withdrawal_that_was_cut_off_looks_again(self, mover: Mover) -> None:
        """The job has stopped between the entry and the second look."""
        settings = {"quiet_period": 0.05, "poll_interval": 0.02, "deferrable": True}
        mover.worker.run(mover.task(StopSparkStreamingOperator, **settings))
        mover.source.acknowledge()
        mover.steps.record(mover.steps.find(), Event.WITHDRAW)
        undone = mover.run(RollbackFailoverOperator)
        assert undone["job"] == "stopped"
        withdrawn = ["ask", "note", "withdraw"]
        assert mover.events() == [*withdrawn, "ask", "prove", "return", "arrive"]


class TestPlatform:
    """A job that its platform cancels and submits; nothing of it obeys a fence."""

    @pytest.fixture
    def mover(self, mover: Mover) -> Mover:
        """The same job without stop control and without a DAG."""
        mover.more = {"is_controlled": False, "dag": None}
        return mover

    def _group(self, mover: Mover, calls: list[str], **settings: Any) -> DAG:
        with DAG("failover", schedule=None) as dag:
            failover_tasks(
                job=mover.job,
                prefix_group_id=False,
                stop=partial(PythonOperator, python_callable=lambda: calls.append("cancel")),
                submit=partial(PythonOperator, python_callable=lambda: calls.append("submit")),
                arguments={"stop_source": {"quiet_period": 0.05, **WAITS}},
                deferrable=True,
                **settings,
            )
        return dag

    def _until_submit(self, mover: Mover, dag: DAG) -> None:
        for name in ("cancel_source", "stop_source", "wait_replicated", "translate", "hand_over"):
            mover.run_task(dag.get_task(name))

    def test_it_is_cancelled_and_submitted_once(self, mover: Mover) -> None:
        """A second try submits nothing, and says what to look for."""
        calls: list[str] = []
        dag = self._group(mover, calls)
        self._until_submit(mover, dag)
        mover.run_task(dag.get_task("start_target"))
        with pytest.raises(HandoverError, match="may have submitted the job"):
            mover.run_task(dag.get_task("start_target"))
        assert calls == ["cancel", "submit"]
        stopped = ["ask", "note", "note", "note", "prove"]
        handed_over = ["note", "note", "hand over"]
        assert mover.events() == [*stopped, *handed_over, "submit", "submit"]
        _, may_end, has_ended, waits, proof, *_ = (each.facts for each in mover.entries())
        assert may_end == {"ended_by": "The cancel by the task cancel_source"}
        assert has_ended["has_ended"] is True
        assert waits["waits_for"].startswith(SparkStoppedSensor.wait_for)
        assert proof["basis"].startswith("quiet checkpoint after cancel by PythonOperator")

    def test_a_silence_that_is_proved_again_is_no_wait(self, mover: Mover) -> None:
        """What it proves may be the same as before, and would end no wait in the journal."""
        dag = self._group(mover, [])
        for name in ("cancel_source", "stop_source"):
            mover.run_task(dag.get_task(name))
        mover.run(SparkStoppedSensor, quiet_period=0.05, **{**WAITS, "timeout": 1200})
        assert [each.event for each in mover.entries() if "waits_for" in each.facts] == [Event.NOTE]
        assert overview_of(mover.job, UPath).moves[-1].waits_for is None

    def test_a_platform_with_a_token_is_asked_again(self, mover: Mover) -> None:
        """It starts one job of several submits."""
        calls: list[str] = []
        dag = self._group(mover, calls, submit_is_idempotent=True)
        self._until_submit(mover, dag)
        for _ in range(2):
            mover.run_task(dag.get_task("start_target"))
        assert calls == ["cancel", "submit", "submit"]
        for name in ("cancel_source", "stop_source", "hand_over"):
            mover.run_task(dag.get_task(name))
        assert len(calls) == 3
        mover.begin(Path(mover.job.homes[1].folder), 9, 6, 3, 2)
        assert mover.run_task(dag.get_task("start_target")) == "SKIPPED"
        assert len(calls) == 3

    def test_nothing_is_submitted_before_the_hand_over(self, mover: Mover) -> None:
        """A task that was marked as success by hand hands nothing over."""
        calls: list[str] = []
        dag = self._group(mover, calls)
        with pytest.raises(HandoverError, match="has not handed job orders over"):
            mover.run_task(dag.get_task("start_target"))
        assert calls == []

    def test_a_job_that_came_back_is_not_submitted(self, mover: Mover) -> None:
        """A restart policy has started it where it was."""
        calls: list[str] = []
        dag = self._group(mover, calls)
        self._until_submit(mover, dag)
        mover.source.commit(1, 5, 6, 3, 2)
        with pytest.raises(HandoverError, match="was written to since"):
            mover.run_task(dag.get_task("start_target"))
        assert calls == ["cancel"]

    def test_a_job_that_was_cancelled_is_not_said_to_run(self, mover: Mover) -> None:
        """Its stop has failed before the proof, and nothing starts it."""
        dag = self._group(mover, [])
        mover.run_task(dag.get_task("cancel_source"))
        undone = mover.run(RollbackFailoverOperator)
        assert (undone["done"], undone["job"]) == ("rolled_back", "stopped")
        assert undone["next"].startswith("orders was not moved, and may run at source")
        assert mover.entries()[-1].state is State.HOME

    def test_a_cancel_that_failed_leaves_it_unknown(self, mover: Mover) -> None:
        """The platform may have ended the job, and may not."""

        def fail() -> None:
            raise RuntimeError("the platform does not answer")

        with DAG("failover", schedule=None) as dag:
            failover_tasks(
                job=mover.job,
                prefix_group_id=False,
                stop=partial(PythonOperator, python_callable=fail),
                submit=partial(PythonOperator, python_callable=fail),
            )
        with pytest.raises(RuntimeError):
            mover.run_task(dag.get_task("cancel_source"))
        undone = mover.run(RollbackFailoverOperator, on_failure="restart")
        assert undone["job"] == "unknown"
        assert "cancel_source was to end it" in undone["next"]

    def test_a_second_proof_takes_the_place_of_the_first(self, mover: Mover) -> None:
        """The platform had started the job again; who clears the cancel gets on."""
        calls: list[str] = []
        dag = self._group(mover, calls)
        steps = ("cancel_source", "stop_source", "wait_replicated", "translate")
        for name in steps:
            mover.run_task(dag.get_task(name))
        mover.source.commit(1, 5, 6, 3, 2)
        with pytest.raises(HandoverError, match="was written to since"):
            mover.run_task(dag.get_task("hand_over"))
        for name in (*steps, "hand_over"):
            mover.run_task(dag.get_task(name))
        handed = mover.entries()[-1]
        assert handed.event is Event.HAND_OVER
        *_, proof = (each for each in mover.entries() if each.event is Event.PROVE)
        assert parse_offsets(proof.facts["positions"])["orders"][0] == 5
        assert handed.facts["plan"].endswith(f"/plans/{proof.number:06d}.json")

    def test_silence_without_a_cancel_proves_nothing(self, mover: Mover) -> None:
        """The task that cancels was marked as success by hand."""
        dag = self._group(mover, [])
        mover.worker.run(dag.get_task("cancel_source"))
        worker, mover.worker.run_id = mover.worker, "manual__2"
        worker.triggered["failover", "manual__1"] = {}
        worker.run_states["failover", "manual__1"] = "failed"
        with pytest.raises((StopError, HandoverError)):
            mover.run_task(dag.get_task("stop_source"))

    @pytest.mark.parametrize(
        "changes",
        [{"is_controlled": True}, {"dag": "orders_stream"}],
    )
    def test_a_job_that_contradicts_its_operators_is_refused(
        self, mover: Mover, changes: dict[str, Any]
    ) -> None:
        """It is stopped in one way, and started in one."""
        mover.more |= changes
        with pytest.raises(ConfigurationError, match="orders"):
            self._group(mover, [])
