"""A dry run of mm2_failover: it says what each step would do, and changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import NotReadyError
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from tests.unit.dags.dags_folder import OTHERS, STEPS
from tests.unit.dags.failovers import MOVING, Failover
from tests.unit.dags.ways_home import way_home
from tests.unit.operators.clusters import RECORDS, Clusters
from tests.unit.operators.worker import events, rebuild
from tests.unit.spark import checkpoints


def _files(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Return all folders and files, with their content and the time of the last change."""
    return {
        str(each): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else None)
        for each in folder.rglob("*")
    }


def _run(failover: Failover, task_id: str) -> str:
    """Run a task to its end, and return its state."""
    task = failover.task(task_id)
    ended = failover.worker.run(task)
    if ended.type == "DeferTask":
        (event,) = events(rebuild(ended))
        ended = failover.worker.run(task, after=ended, event=event)
    return str(getattr(getattr(ended, "state", None), "value", "success"))


@pytest.fixture
def failover_in(run: Failover, clusters: Clusters, tmp_path: Path) -> Callable[[str], Failover]:
    """Return a dry run in a mode, beside a job for which that mode is ready."""

    def prepare(mode: str) -> Failover:
        ready = _way_home(run, clusters) if mode == "failback" else run
        run.source.beat(1, bootstrap_servers=["source:9092"])
        ready.worker.conf = {
            **ready.worker.conf,
            "mode": mode,
            "dry_run": True,
            "drill_folder": str(tmp_path / "drill"),
            "reports_folder": str(tmp_path / "reports"),
            "saved_positions": str(tmp_path / "saved"),
        }
        return ready

    return prepare


def _way_home(run: Failover, clusters: Clusters) -> Failover:
    """Move the job away, and return the run that is to bring it home."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for each in MOVING:
        run.run(each)
    run.worker.triggered.clear()
    return way_home(run.worker, run, "manual__2")


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("mode", list(FailoverMode))
def test_a_dry_run_changes_nothing(
    failover_in: Callable[[str], Failover],
    tmp_path: Path,
    mode: str,
    verify: bool,  # noqa: FBT001
) -> None:
    """No task fails, no file is written or touched, nothing is triggered; the intents are told.

    Neither fence, lock, note, plan, forecast nor report is in a file afterwards. The comparison
    reads what the job on the target has committed, and a dry run starts no job.
    """
    run = failover_in(mode)
    run.worker.conf = {**run.worker.conf, "verify": verify}
    before = _files(tmp_path)
    for task_id in (*STEPS[:-1], *OTHERS):
        run.worker.states[task_id] = _run(run, task_id)
        assert _files(tmp_path) == before, task_id
    assert isinstance(run.task("report"), ReportFailoverOperator)
    assert _run(run, "report") == "success"
    assert _files(tmp_path) == before
    assert not run.worker.triggered
    assert not run.worker.questions
    _check_report(run)
    skipped = {key[0] for key in run.worker.xcoms if key[1] == "intent"}
    intents = run.worker.xcoms["report", "return_value"]["intents"]
    assert len(intents) == len(skipped) >= 3
    assert ("verify" in skipped) is ((verify and mode != "disaster") or mode == "drill")


def _check_report(run: Failover) -> None:
    report = run.worker.xcoms["report", "return_value"]
    assert report["outcome"] == "dry_run"
    assert report["next"] == ["This was a dry run: nothing was changed."]
    assert report["files"] == []
    (remark,) = report["remarks"]
    assert remark == "This report was not written to a file: it is only here, in XCom."
    assert remark in run.worker.xcoms["report", "summary"]


def test_a_dry_run_that_fails_writes_nothing_either(
    failover_in: Callable[[str], Failover], tmp_path: Path
) -> None:
    """Its report is in XCom, with what to mend."""
    run = failover_in("planned")
    checkpoints.simple(run.target / "checkpoint")
    before = _files(tmp_path)
    with pytest.raises(NotReadyError):
        _run(run, "check")
    run.worker.states = {"check": "failed"}
    assert _run(run, "roll_back") == "skipped"
    with pytest.raises(AirflowFailException, match="failed in check"):
        _run(run, "report")
    assert _files(tmp_path) == before
    assert run.worker.xcoms["report", "return_value"]["failed"] == ["check"]
