"""mm2_readiness: the report on a schedule, which changes nothing."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.errors import NotReadyError
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.dags.failovers import Failover
from tests.unit.operators.mover import Mover
from tests.unit.operators.spark_job import Job


def _run(mover: Mover, **params: Any) -> dict[str, Any]:
    dag = parse(FOLDER / "mm2_readiness.py").dags["mm2_readiness"]
    mover.worker.conf = params
    task: Any = dag.get_task("check")
    mover.worker.run(task)
    report: dict[str, Any] = mover.worker.xcoms["check", "return_value"]
    return report


def test_it_reports_and_leaves_no_trace(mover: Mover) -> None:
    """No file, not even the note of ids: a failover's own check writes that."""
    before = _files(mover)
    report = _run(mover)
    assert report["totals"]["failed"] == 0
    assert (report["run_id"], report["policy"]) == ("mm2_readiness:manual__1", "planned")
    assert _files(mover) == before


def _files(mover: Mover) -> set[Path]:
    return {each for each in mover.folder.rglob("*") if each.is_file()}


def test_it_fails_where_the_failover_would(mover: Mover) -> None:
    """The task fails, so that it alerts; the report is its return value all the same."""
    (mover.folder / "source" / "control" / "driver.json").unlink()
    with pytest.raises(NotReadyError, match="no job has run with the control location"):
        _run(mover)
    assert mover.worker.xcoms["check", "return_value"]["verdict"] == "not_ready"
    assert "NOT READY" in mover.worker.xcoms["check", "summary"]


def test_a_lost_checkpoint_needs_other_positions(mover: Mover) -> None:
    """In a disaster: saved ones, or those that the user gives."""
    shutil.rmtree(Job.at(mover.folder / "source").checkpoint)
    with pytest.raises(NotReadyError, match="there are no saved positions of the checkpoint"):
        _run(mover, policy="disaster")
    positions = '{"orders":{"0":4,"1":0,"2":0,"3":0}}'
    report = _run(mover, policy="disaster", positions=positions)
    (check,) = (each for each in report["checks"] if each["name"] == "checkpoint_readable")
    assert check["status"] == "warning"


def test_each_param_reaches_the_check() -> None:
    """None is asked for in vain."""
    dag = parse(FOLDER / "mm2_readiness.py").dags["mm2_readiness"]
    fields = str(vars(dag.get_task("check")))
    assert not [name for name in dag.params if f"params.{name}" not in fields]


def test_it_is_of_the_next_move_after_a_move(mover: Mover, run: Failover) -> None:
    """The journal says where the job is: nobody exchanges folders."""
    run.run_all()
    Job.at(run.target).beat(2)
    mover.worker.run_id = "manual__2"
    report = _run(mover)
    assert report["totals"]["failed"] == 0
    (check,) = (each for each in report["checks"] if each["name"] == "checkpoint_readable")
    assert str(run.target) in check["value"]
