"""Approval, way back and report on a real Airflow: asked, approved, rejected, and timed out."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Event, FenceState
from airflow_mm2_offsets.moves.move import Mover
from stack.airflow import ADMIN, Airflow
from stack.airflow_api import UnansweredError
from stack.waiting import wait_until
from tests.unit.operators.spark_job import Job

pytestmark = pytest.mark.long
LATE = 20
"""Seconds: Airflow fails a task whose deadline comes before the scheduler knows that it waits."""
DAG_ID = "moves"
DAG = """
import json

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, chain
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.testing import simulated_mm2

FOLDER = "{{ dag_run.conf.folder }}"
MOVE = {
    "job": {
        "name": "orders",
        "homes": {side: f"{FOLDER}/{side}" for side in ("source", "target")},
        "dag": "stream",
        "records": f"{FOLDER}/records",
    }
}


class StopInMemory(StopSparkStreamingOperator):
    def execute(self, context):
        with simulated_mm2() as mm2:
            mm2.use_connection("mm2_default")
            mm2.source.create_topic("orders", partitions=2)
            return super().execute(context)


def record(job, run, event, facts):
    mover = Mover(SparkJob.from_json(job), run, PLANNED, UPath)
    mover.record(mover.find(), Event(event), **json.loads(facts))


def play(task_id, event, facts="{}"):
    arguments = [MOVE["job"], "{{ dag.dag_id }}:{{ run_id }}", event, facts]
    return PythonOperator(task_id=task_id, python_callable=record, op_args=arguments)


with DAG("stream", schedule=None):
    PythonOperator(task_id="run", python_callable=print)

with DAG("moves", schedule=None):
    chain(
        StopInMemory(
            task_id="stop_source",
            move=MOVE,
            quiet_period=0.5,
            poll_interval=0.2,
            deferrable=False,
        ),
        play("translate", "note", "{{ dag_run.conf.note | tojson }}"),
        ApproveFailoverOperator(
            task_id="approve",
            move=MOVE,
            response_timeout="{{ dag_run.conf.deadline }}",
            assigned_users="admin",
        ),
        play("start_target", "hand over"),
        play("wait_started", "arrive"),
        ReportFailoverOperator(task_id="report", move=MOVE, on_failure="restart"),
    )
"""
NUMBERS = {"refused": 0, "read_again_at_most": 7, "lost_at_most": 12}
FREE = dict.fromkeys(NUMBERS, 0)
"""Numbers that no person is asked about."""
SUMMARY = "orders[0]  at most 12 at risk"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("airflow")
    dags = folder / "dags"
    dags.mkdir()
    (dags / "moves.py").write_text(DAG)
    # The scheduler looks for passed deadlines every 15 s otherwise.
    env = {"AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2"}
    made = Airflow(folder / "home", dags, connections={}, env=env, progress=print)
    try:
        made.start()
        made.api.wait_dags(DAG_ID, "stream")
        yield made
    finally:
        made.stop()


class _Run:
    """A run of the DAG whose job has stopped, with the files of its own."""

    def __init__(
        self, airflow: Airflow, folder: Path, numbers: Mapping[str, int] = NUMBERS, late: int = 0
    ) -> None:
        self.airflow, self.folder, self.job = airflow, folder, Job(folder / "source", 4, 6)
        note = {"numbers": numbers, "summaries": {"Forecast": SUMMARY}, "plan_digest": "d"}
        conf = {"folder": str(folder), "note": note, "deadline": late or None}
        self.run_id = airflow.api.trigger(DAG_ID, conf)
        wait_until(lambda: self.job.requested_stop() is not None, "the stop")
        self.job.acknowledge(queries=[self.job.query_answer()])

    @property
    def mover(self) -> Mover:
        """What carries the steps of the run out."""
        homes = tuple(
            Home(cluster=side, folder=str(self.folder / side)) for side in ("source", "target")
        )
        job = SparkJob(name="orders", homes=homes, records=str(self.folder / "records"))
        return Mover(job, f"{DAG_ID}:{self.run_id}", PLANNED, UPath)

    def fence(self) -> FenceState:
        """Return what the drivers obey where the job was."""
        fence = self.job.fence()
        assert fence is not None
        return fence.state

    def wait_for_question(self) -> dict[str, object]:
        questions: list[dict[str, object]] = []

        def is_asked() -> bool:
            question = self.airflow.api.question(DAG_ID, self.run_id, "approve")
            questions.extend([question] if question else [])
            return bool(questions) and self._is_parked()

        wait_until(is_asked, "the question")
        return questions[-1]

    def _is_parked(self) -> bool:
        """Tell whether the scheduler knows: a task that is answered before it does is failed."""
        log = (self.airflow.home / "parts" / "scheduler.log").read_text(errors="replace")
        event = f"dag_id='{DAG_ID}', task_id='approve', run_id='{self.run_id}'"
        return f"for task instance TaskInstanceKey({event}" in log

    def wait_end(self) -> tuple[str | None, dict[str, str | None]]:
        """Return the states of run and tasks."""
        api = self.airflow.api
        wait_until(lambda: api.state(DAG_ID, self.run_id) in {"success", "failed"}, "its end")
        tasks = api.tasks(DAG_ID, self.run_id)
        return api.state(DAG_ID, self.run_id), {name: each.state for name, each in tasks.items()}

    def report(self) -> dict[str, Any]:
        api, folder = self.airflow.api, self.folder / "records" / "orders.reports"
        report = api.xcom(DAG_ID, self.run_id, "report")
        (written,), (summary,) = folder.glob("*.json"), folder.glob("*.md")
        stored = json.loads(written.read_text())
        assert {**stored, "files": report["files"]} == report
        assert summary.read_text() == api.xcom(DAG_ID, self.run_id, "report", "summary")
        return dict(report)

    def answered(self, by: str | None, verb: str) -> None:
        approval = self.airflow.api.xcom(DAG_ID, self.run_id, "approve")
        assert (approval["by"], approval["asked"]) == (by, True)
        assert verb in approval["why"]


def test_approval_and_the_way_back(airflow: Airflow, tmp_path: Path) -> None:
    """Four runs at once: approved, rejected, timed out, and one that asks nobody.

    A question is open until its task ends: whoever waits where nobody answers is not kept waiting.
    """
    free = _Run(airflow, tmp_path / "free", FREE)
    approved, rejected = (_Run(airflow, tmp_path / name) for name in ("approved", "rejected"))
    late = _Run(airflow, tmp_path / "late", late=LATE)

    question = approved.wait_for_question()
    with pytest.raises(UnansweredError, match="task approve of run"):
        airflow.api.refuse_questions()
    assert question["subject"] == (
        "Failover (planned) of orders: 0 refused partitions, 7 records read again, "
        "12 records at risk"
    )
    assert "| records at risk | 12 | 0 | **above** |" in str(question["body"])
    assert f"```text\n{SUMMARY}\n```" in str(question["body"])
    assert f"starts the job at target ({tmp_path}/approved/target)" in str(question["body"])
    assert "the job has been stopped since" in str(question["body"])
    airflow.api.answer(DAG_ID, approved.run_id, "approve", "Approve")
    rejected.wait_for_question()
    airflow.api.answer(DAG_ID, rejected.run_id, "approve", "Reject")

    before = {"stop_source": "success", "translate": "success"}
    moved = dict.fromkeys(("approve", "start_target", "wait_started", "report"), "success")
    for run in (free, approved):
        assert run.wait_end() == ("success", {**before, **moved})
        assert run.report()["outcome"] == "moved"
        assert run.fence() is FenceState.MOVED
    approved.answered(ADMIN, "has approved it")

    not_run = dict.fromkeys(("start_target", "wait_started"), "upstream_failed")
    for run in (rejected, late):
        ends = {**before, "approve": "failed", **not_run, "report": "failed"}
        assert run.wait_end() == ("failed", ends)
        assert run.fence() is FenceState.OPEN
        report = run.report()
        assert (report["outcome"], report["failed"]) == ("given up", ["approve"])
        assert report["rollback"]["job"] == "restarted"
        with pytest.raises(HandoverError, match="can't hand over"):
            run.mover.record(run.mover.find(), Event.HAND_OVER)
    rejected.answered(ADMIN, "has rejected it")
    late.answered(None, f"nobody answered within {timedelta(seconds=LATE)}")
    # Each was restarted once, also where the task is cleared.
    airflow.api.clear(DAG_ID, late.run_id, "report", downstream=False)
    late.wait_end()
    restarts = [each for each in airflow.api.runs("stream") if each.endswith("__restart")]
    assert len(restarts) == 2
    airflow.api.refuse_questions()
