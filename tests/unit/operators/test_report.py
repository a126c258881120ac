"""ReportFailoverOperator: what it writes, where, and when it fails."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from tests.unit.operators.mover import WAITS, Mover

SECONDS = 1.5 if hasattr(RuntimeTaskInstance, "get_task_breadcrumbs") else None
"""What the worker says a task took; Airflow 3.1 can't be asked."""
MOVED = dict.fromkeys(("check", "stop_source", "start_target", "wait_started"), "success")


def _report(mover: Mover, states: dict[str, str] = MOVED, **settings: Any) -> dict[str, Any]:
    """Run the task after others; return its report."""
    mover.worker.states = states
    task = mover.task(ReportFailoverOperator, reports=str(mover.folder / "reports"), **settings)
    assert isinstance(task.dag, DAG)
    with task.dag:
        for each in MOVED:
            EmptyOperator(task_id=each) >> task
    mover.worker.run(task)
    report: dict[str, Any] = mover.worker.xcoms[task.task_id, "return_value"]
    return report


def _failed(mover: Mover, match: str, **states: str) -> dict[str, Any]:
    with pytest.raises(AirflowFailException, match=match):
        _report(mover, MOVED | states)
    report: dict[str, Any] = mover.worker.xcoms["ReportFailoverOperator", "return_value"]
    return report


def test_a_job_that_was_moved(mover: Mover) -> None:
    """One document in XCom and storage, the summary in both; a retry writes the same files."""
    mover.until_start(mover.source.folder)
    mover.run(TriggerTargetDagOperator)
    mover.begin(Path(mover.job.homes[1].folder), 9, 6, 3, 2)
    mover.run(SparkStartedSensor, **WAITS)
    for _ in range(2):
        report = _report(mover)
    (path,) = (mover.folder / "reports").glob("failover__manual__1.*.json")
    written = json.loads(path.read_text())
    assert {**written, "files": report["files"], "remarks": []} == report
    assert (report["outcome"], report["failed"]) == ("moved", [])
    assert report["run"]["run_id"] == "manual__1"
    assert [step["task_id"] for step in report["steps"]] == [*MOVED]
    assert report["steps"][0] == {"task_id": "check", "state": "success", "seconds": SECONDS}
    (summary,) = (mover.folder / "reports").glob("*.md")
    assert summary.read_text() == mover.worker.xcoms["ReportFailoverOperator", "summary"]


def test_a_move_that_failed_after_its_hand_over_is_not_taken_back(mover: Mover) -> None:
    """The task fails for good with the failed task's name, and says where the job may run."""
    mover.until_start(mover.source.folder)
    mover.run(TriggerTargetDagOperator)
    report = _failed(mover, r"failed in wait_started \(handed over\)", wait_started="failed")
    assert (report["failed"], report["rollback"]) == (["wait_started"], None)
    assert report["next"][0].startswith("orders was handed over to target")
    assert mover.entries()[-1].event is Event.HAND_OVER


def test_a_move_that_can_not_be_taken_back_now_is_told(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job stops at this moment: without a report nobody would know what to do."""
    stopping = {"stopping": mover.steps.ask().request_id, "interval": 1.0}
    mover.source.beat(2, **stopping)
    monkeypatch.setattr(time, "sleep", lambda _: mover.source.beat(3, **stopping))
    report = _failed(mover, r"failed in stop_source \(stopping\)", stop_source="failed")
    assert report["rollback"] is None
    assert "The move was not taken back: " in report["remarks"][0]
    assert "is stopping at this moment: clear this task once it has" in report["remarks"][0]
    mover.source.beat(4, **{**stopping, "ended": True})
    report = _failed(mover, r"failed in stop_source \(given up\)", stop_source="failed")
    assert report["rollback"]["job"] == "stopped"


def test_a_job_of_which_nothing_is_known(mover: Mover, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage or an Airflow that does not answer is a remark, and fails no report."""

    def fail(_: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr("airflow_mm2_offsets.operators.report.steps_of", fail)
    report = mover.run(ReportFailoverOperator, reports="bad://z")
    assert report["files"] == []
    assert "the states of the tasks: KeyError" in report["remarks"][0]
    assert "the report is only in XCom: bad://z" in report["remarks"][1]


def test_no_login_is_reported(mover: Mover) -> None:
    """Neither in XCom nor in the files, whichever task it came from."""
    error = "sftp://etl:hunter2@host/orders is out of reach"
    _report(mover, results={"mine": {"error": error}})
    shown = [str(mover.worker.xcoms)]
    shown += [path.read_text() for path in mover.folder.rglob("reports/*")]
    assert "sftp://etl:***@host/orders" in shown[0]
    assert not [each for each in shown if "hunter2" in each]
