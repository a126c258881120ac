"""mm2_readiness: the report on a schedule, which changes nothing."""

import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.readiness.thresholds import THRESHOLDS
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.operators.checks import check
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker


def _run(worker: Worker, **params: Any) -> dict[str, Any]:
    dag = parse(FOLDER / "mm2_readiness.py").dags["mm2_readiness"]
    worker.conf = params
    task = dag.get_task("check")
    assert isinstance(task, CheckFailoverOperator)
    worker.run(task)
    report: dict[str, Any] = worker.xcoms["check", "return_value"]
    return report


@pytest.fixture
def job(tmp_path: Path, clusters: Clusters) -> Job:
    """A job that has read topic orders, of four partitions."""
    clusters.copy_the_rest()
    return Job(tmp_path / "source", 4, 0, 0, 0)


def test_it_reports_and_leaves_no_trace(worker: Worker, job: Job) -> None:
    """Not even the note of ids: a failover's own check writes that."""
    before = set(job.folder.parent.rglob("*"))
    report = _run(worker, source_folder=str(job.folder))
    assert report["totals"]["failed"] == 0
    assert report["run_id"] == "mm2_readiness:manual__1"
    assert set(job.folder.parent.rglob("*")) == before


def test_it_fails_where_the_failover_would(worker: Worker, job: Job) -> None:
    """The task fails, so that it alerts; the report is its return value all the same."""
    (job.control / "driver.json").unlink()
    with pytest.raises(NotReadyError, match="no job has run with the control location"):
        _run(worker, source_folder=str(job.folder))
    assert worker.xcoms["check", "return_value"]["verdict"] == "not_ready"
    assert "NOT READY" in worker.xcoms["check", "summary"]


def test_a_mode_that_does_not_exist_is_refused(worker: Worker, job: Job) -> None:
    """A template may give any text."""
    with pytest.raises(ConfigurationError, match="mode is 'panic'; give one of planned"):
        worker.run(check(job, mode="panic"))


OF_A_RUN = {"plan_path", "request_id", "is_dry_run", "note_ids", "timeout", "kwargs", "self"}
"""What a schedule does not have: a run's own plan and stop, and what is fixed here."""


def test_what_the_check_looks_at_can_be_given() -> None:
    """Each argument of the check comes from a param, and each param reaches it."""
    dag = parse(FOLDER / "mm2_readiness.py").dags["mm2_readiness"]
    fields = vars(dag.get_task("check"))
    names = set(inspect.signature(CheckFailoverOperator.__init__).parameters)
    assert not [
        name for name in names - OF_A_RUN - set(THRESHOLDS) if "params." not in str(fields[name])
    ]
    assert not [name for name in dag.params if f"params.{name}" not in str(fields)]


def test_a_drill_folder_is_looked_at(worker: Worker, job: Job) -> None:
    """One that holds what a drill would remove fails the check; one that is apart passes."""
    job.beat(1, bootstrap_servers=["source:9092"])
    params = {"mode": "drill", "source_folder": str(job.folder)}
    report = _run(worker, **params, drill_folder=str(job.folder.parent / "drill"))
    assert _status(report, "drill_folders") == "ok"
    with pytest.raises(NotReadyError, match="everything in a drill folder is removed"):
        _run(worker, **params, drill_folder=str(job.folder / "drill"))
    report = _run(worker, **params, target_folder=str(job.folder.parent / "target"))
    assert _status(report, "drill_folders") == "ok"


def test_saved_positions_are_looked_at(worker: Worker, job: Job, tmp_path: Path) -> None:
    """The checkpoint is lost, and those that stand in for it are of another one."""
    shutil.rmtree(job.checkpoint)
    params = {"mode": "disaster", "source_folder": str(job.folder)}
    with pytest.raises(NotReadyError, match="there are no saved positions of the checkpoint"):
        _run(worker, **params, saved_positions=str(tmp_path / "saved"))
    positions = '{"orders":{"0":4,"1":0,"2":0,"3":0}}'
    report = _run(worker, **params, positions=positions)
    assert _status(report, "checkpoint_readable") == "warning"


def test_a_failback_by_one_way_copying_is_looked_at_exchanged(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a reverse mirror its connection counts, and the sides are as it has them."""
    asked: list[tuple[str, object]] = []

    def pair(task: CheckFailoverOperator, **_: object) -> object:
        asked.append((task.mm2_conn_id, task.exchanged))
        raise ConfigurationError("no clusters here")

    monkeypatch.setattr("airflow_mm2_offsets.operators.check.pair_of", pair)
    for reverse in (None, "mm2_reverse"):
        with pytest.raises(NotReadyError):
            _run(
                worker,
                mode="failback",
                source_folder=str(job.folder),
                reverse_mm2_conn_id=reverse,
            )
    assert asked == [("mm2_default", "True"), ("mm2_reverse", "False")]


def _status(report: dict[str, Any], name: str) -> str:
    (check,) = [each for each in report["checks"] if each["name"] == name]
    return str(check["status"])
