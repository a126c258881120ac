"""Approval, way back and report on a real Airflow: asked, approved, rejected, and timed out."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_mm2_offsets.spark.fence import FenceState, mark_moved, read_fence
from stack.airflow import ADMIN, Airflow
from stack.airflow_api import UnansweredError
from stack.waiting import wait_until
from tests.unit.operators.spark_job import Job

pytestmark = pytest.mark.long
LATE = 20
"""Seconds: Airflow fails a task whose deadline comes before the scheduler knows that it waits."""
DAG_ID = "moves"
DAG = """
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.claim import claim_target
from airflow_mm2_offsets.spark.fence import mark_moved
from upath import UPath

FOLDER = "{{ dag_run.conf.folder }}"
PLACES = {"checkpoint": f"{FOLDER}/checkpoint", "control": f"{FOLDER}/control"}
TARGET = {"target_checkpoint": f"{FOLDER}/target/checkpoint"}


def hand_over(folder, request_id):
    claim_target(UPath(folder) / "target" / "checkpoint", request_id)
    mark_moved(f"{folder}/control", request_id, "the target")


with DAG("stream", schedule=None):
    PythonOperator(task_id="run", python_callable=print)

with DAG("moves", schedule=None, render_template_as_native_obj=True):
    stop = StopSparkStreamingOperator(
        task_id="stop_source", **PLACES, quiet_period=0.5, poll_interval=0.2, deferrable=False
    )
    approve = ApproveFailoverOperator(
        task_id="approve",
        plan="{{ dag_run.conf.plan }}",
        forecast="{{ dag_run.conf.forecast }}",
        job="orders",
        response_timeout="{{ dag_run.conf.deadline }}",
        assigned_users="admin",
    )
    submit = PythonOperator(
        task_id="submit_target",
        python_callable=hand_over,
        op_args=[FOLDER, "{{ dag.dag_id }}:{{ run_id }}"],
    )
    back = RollbackFailoverOperator(
        task_id="roll_back",
        **PLACES,
        **TARGET,
        on_failure="restart",
        trigger_dag_id="stream",
        restart_conf={"folder": FOLDER},
        trigger_rule="one_failed",
    )
    report = ReportFailoverOperator(
        task_id="report",
        **PLACES,
        **TARGET,
        source_folder=FOLDER,
        reports=f"{FOLDER}/reports",
        plan="{{ dag_run.conf.plan }}",
        forecast="{{ dag_run.conf.forecast }}",
        stopped=stop.output,
        approval=approve.output,
        rollback=back.output,
    )
    stop >> approve >> submit >> report
    [stop, approve, submit] >> back >> report
"""
PLAN = {
    "schema_version": 2,
    "totals": {"partitions": 2, "exact": 1, "bounded": 1, "refused": 0, "max_reread": 7},
    "partitions": [],
}
FORECAST = {
    "schema_version": 1,
    "totals": {
        "at_risk": {"at_least": "0", "at_most": "12"},
        "read_again": {"at_least": "0", "at_most": "7"},
    },
    "summary": "orders[0]  at most 12 at risk",
}
NO_RISK = {"at_least": "0", "at_most": "0"}


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
        self, airflow: Airflow, folder: Path, forecast: object = FORECAST, deadline: int = 0
    ) -> None:
        self.airflow, self.job = airflow, Job(folder, 4, 6)
        conf = {
            "folder": str(folder),
            "plan": PLAN,
            "forecast": forecast,
            "deadline": deadline or None,
        }
        self.run_id = airflow.api.trigger(DAG_ID, conf)
        wait_until(lambda: self.job.requested_stop() is not None, "the stop")
        self.job.acknowledge(queries=[self.job.query_answer()])

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

    def report(self) -> dict[str, object]:
        report = self.airflow.api.xcom(DAG_ID, self.run_id, "report")
        (written,) = (self.job.folder / "reports").glob("*.json")
        (summary,) = (self.job.folder / "reports").glob("*.md")
        stored = json.loads(written.read_text())
        assert {**stored, "files": report["files"]} == report
        assert summary.read_text() == self.airflow.api.xcom(
            DAG_ID, self.run_id, "report", "summary"
        )
        return dict(report)

    def answered(self, by: str | None, verb: str) -> None:
        approval = self.airflow.api.xcom(DAG_ID, self.run_id, "approve")
        assert (approval["by"], approval["asked"]) == (by, True)
        assert verb in approval["why"]


def test_approval_and_the_way_back(airflow: Airflow, tmp_path: Path) -> None:
    """Four runs at once: approved, rejected, timed out, and one that asks nobody.

    A question is open until its task ends: whoever waits where nobody answers is not kept waiting.
    """
    totals = {"at_risk": NO_RISK, "read_again": NO_RISK}
    free = _Run(airflow, tmp_path / "free", {**FORECAST, "totals": totals})
    approved, rejected = (_Run(airflow, tmp_path / name) for name in ("approved", "rejected"))
    late = _Run(airflow, tmp_path / "late", deadline=LATE)

    question = approved.wait_for_question()
    with pytest.raises(UnansweredError, match="task approve of run"):
        airflow.api.refuse_questions()
    assert question["subject"] == (
        "Failover (planned) of orders: 0 refused partitions, 7 records read again, "
        "12 records at risk"
    )
    assert "| records at risk | 12 | 0 | **above** |" in str(question["body"])
    assert "```text\norders[0]  at most 12 at risk\n```" in str(question["body"])
    airflow.api.answer(DAG_ID, approved.run_id, "approve", "Approve")
    rejected.wait_for_question()
    airflow.api.answer(DAG_ID, rejected.run_id, "approve", "Reject")

    moved = {"stop_source": "success", "approve": "success", "submit_target": "success"}
    for run in (free, approved):
        assert run.wait_end() == ("success", {**moved, "roll_back": "skipped", "report": "success"})
        report = run.report()
        assert report["outcome"] == "moved"
        fence = read_fence(str(run.job.control))
        assert fence is not None
        assert fence.state is FenceState.MOVED
    approved.answered(ADMIN, "has approved it")

    failed = {"stop_source": "success", "approve": "failed", "submit_target": "upstream_failed"}
    for run in (rejected, late):
        assert run.wait_end() == (
            "failed",
            {**failed, "roll_back": "success", "report": "failed"},
        )
        assert read_fence(str(run.job.control)) is None
        report = run.report()
        assert (report["outcome"], report["failed"]) == ("rolled_back", ["approve"])
        with pytest.raises(Exception, match="no fence stands"):
            mark_moved(str(run.job.control), f"{DAG_ID}:{run.run_id}", "the target")
    rejected.answered(ADMIN, "has rejected it")
    late.answered(None, f"nobody answered within {timedelta(seconds=LATE)}")
    # Each was restarted once, also where the task is cleared.
    airflow.api.clear(DAG_ID, late.run_id, "roll_back", downstream=False)
    late.wait_end()
    restarts = [each for each in airflow.api.runs("stream") if "__restart_" in each]
    assert len(restarts) == 2
    airflow.api.refuse_questions()
