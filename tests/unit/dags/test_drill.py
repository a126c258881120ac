"""A drill by mm2_failover, task by task, beside a job that runs."""

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException
from upath import UPath

from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import NotReadyError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.drill import mark_drill
from airflow_mm2_offsets.spark.fence import new_fence, raise_fence
from tests.unit.dags.drills import BEFORE, DrillRun
from tests.unit.dags.failovers import Failover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild


@pytest.fixture
def drill(worker: Worker, failover: DAG, source: Job) -> DrillRun:
    return DrillRun(worker, failover, source)


def _status(drill: DrillRun, name: CheckName) -> str:
    checks = drill.worker.xcoms["check", "return_value"]["checks"]
    (status,) = {each["status"] for each in checks if each["name"] == name.value}
    return str(status)


def test_a_drill_writes_nothing_beside_its_folder(drill: DrillRun) -> None:
    """From the check to the start of its job."""
    before = drill.files_beside()
    drill.run_all(*BEFORE, "start_drill")
    assert drill.files_beside() == before
    (conf,) = drill.worker.triggered.values()
    assert (conf["folder"], conf["drill"]) == (str(drill.folder), True)
    assert _status(drill, CheckName.DRILL_FOLDERS) == "ok"


@pytest.mark.parametrize(
    "folder", ["source/drill", "target/drill", "syncs", "positions", "reports"]
)
def test_the_check_knows_a_folder_that_no_drill_may_use(
    drill: DrillRun, tmp_path: Path, folder: str
) -> None:
    """What the start would refuse is named before, while nobody waits."""
    drill.give(
        drill_folder=str(tmp_path / folder),
        archive=str(tmp_path / "syncs"),
        saved_positions=str(tmp_path / "positions"),
        reports_folder=str(tmp_path / "reports"),
    )
    with pytest.raises(NotReadyError, match="everything in a drill folder is removed"):
        drill.run("check")
    assert _status(drill, CheckName.DRILL_FOLDERS) == "failed"


def test_the_check_knows_a_link_to_the_jobs_folder(drill: DrillRun, tmp_path: Path) -> None:
    """Another name of production's folder is that folder."""
    (tmp_path / "other-name").symlink_to(drill.source.folder)
    drill.give(drill_folder=str(tmp_path / "other-name"))
    with pytest.raises(NotReadyError, match="everything in a drill folder is removed"):
        drill.run("check")


def test_a_drill_writes_to_no_sink_of_the_running_job(drill: DrillRun, tmp_path: Path) -> None:
    """A job whose output lies outside its folder would write there twice."""
    drill.give(sink=str(tmp_path / "lake" / "orders"))
    with pytest.raises(NotReadyError, match="would write there, too"):
        drill.run("check")
    drill.run_all(*BEFORE[1:])
    with pytest.raises(NotReadyError, match="would write there, too"):
        drill.run("start_drill")
    assert not drill.worker.triggered


def test_a_drill_follows_one_that_was_not_torn_down(drill: DrillRun) -> None:
    """What an earlier drill has left, whose job has ended, is no reason to fail."""
    place = storage_path(str(drill.folder))
    mark_drill(place, "mm2_failover:earlier", dag_id="orders_stream", run_id="earlier")
    Job(drill.folder, 7, 0, 0, 0)
    raise_fence(place / "control", new_fence("mm2_failover:earlier", "nowhere"))
    drill.worker.run_states["orders_stream", "earlier"] = "failed"
    control = drill.folder / "control" / "driver.json"
    control.unlink()
    drill.run_all(*BEFORE, "start_drill")
    assert [run_id for _, run_id in drill.worker.triggered] == ["mm2_failover__manual__1"]


def test_a_check_that_is_cleared_knows_its_own_drill(drill: DrillRun) -> None:
    """Cleared while the drill's job runs, it finds nothing wrong."""
    drill.run_all(*BEFORE, "start_drill")
    Job(drill.folder, 9, 0, 0, 0)
    drill.run("check")
    assert _status(drill, CheckName.DRILL_FOLDERS) == "ok"


def test_other_modes_ask_nothing_of_a_drill(drill: DrillRun) -> None:
    """A planned failover begins, whatever the drill's folder holds."""
    Job(drill.folder, 7, 0, 0, 0)
    drill.give(mode="planned")
    drill.run("check")
    assert _status(drill, CheckName.DRILL_FOLDERS) == "not_asked"


def _tear_down(drill: DrillRun, job: Job | None) -> None:
    """Run the task to its end: the drill's job answers, and its DAG run ends."""
    task = drill.task("tear_down")
    vars(task).update(poll_interval=0.02, quiet_period=0.05)
    ended = drill.worker.run(task)
    while ended.type == "DeferTask":
        if job is not None and ended.next_method != "remove_after_run":
            job.acknowledge()
        for run in drill.worker.triggered:
            drill.worker.run_states[run] = "failed"
        (event,) = events(rebuild(ended))
        ended = drill.worker.run(task, after=ended, event=event)


@pytest.mark.parametrize("last", [*BEFORE, "start_drill"])
@pytest.mark.parametrize("has_begun", [True, False], ids=["begun", "queued"])
def test_a_drill_that_ends_after_any_task_leaves_nothing(
    drill: DrillRun, last: str, *, has_begun: bool
) -> None:
    """Killed there, it is torn down and reported; the next drill begins as if it had not been."""
    before = drill.files_beside()
    steps = (*BEFORE, "start_drill")
    drill.run_all(*steps[: steps.index(last) + 1])
    is_started = last == "start_drill" and has_begun
    _tear_down(drill, Job(drill.folder, 9, 0, 0, 0) if is_started else None)
    drill.worker.states = {last: "failed"}
    with pytest.raises(AirflowFailException, match="failed_drill"):
        drill.run("report")
    beside = {name: each for name, each in drill.files_beside().items() if "reports" not in name}
    assert beside == before
    assert not drill.folder.exists()
    drill.worker.run_id = "manual__2"
    drill.run_all(*BEFORE, "start_drill")


def test_a_tear_down_that_is_cleared_alone(drill: DrillRun) -> None:
    """Twice, and after another drill has taken the folder over: that one is left alone."""
    drill.run_all(*BEFORE, "start_drill")
    for _ in range(2):
        _tear_down(drill, None)
    drill.worker.run_id = "manual__2"
    drill.run_all(*BEFORE, "start_drill")
    drill.worker.run_id = "manual__1"
    _tear_down(drill, None)
    assert drill.folder.joinpath("drill.json").exists()


def test_a_drill_does_not_begin_while_a_failover_runs(drill: DrillRun) -> None:
    """The check finds the fence of the run that moves the job."""
    raise_fence(str(drill.source.control), new_fence("mm2_failover:other", "the target"))
    with pytest.raises(NotReadyError, match="mm2_failover:other"):
        drill.run("check")


def test_a_failover_begins_while_a_drill_runs(drill: DrillRun) -> None:
    """The drill's folder is not in its way, and its job is not the failover's."""
    drill.run_all(*BEFORE, "start_drill")
    job = Job(drill.folder, 9, 0, 0, 0)
    drill.give(mode="planned")
    drill.worker.run_id = "manual__2"
    drill.run_all("check", "stop_source")
    assert drill.source.requested_stop() == "mm2_failover:manual__2"
    assert job.requested_stop() is None


@pytest.mark.parametrize(
    "params", [{"sink": "target-drill/output"}, {"target_folder": "target-drill"}]
)
def test_a_failover_moves_no_job_into_the_folder_of_a_drill(
    run: Failover, params: dict[str, str]
) -> None:
    """The drill's tear-down would remove the moved job's checkpoint or its output."""
    root = run.source.folder.parent
    mark_drill(UPath(root / "target-drill"), "mm2_drill:scheduled__1")
    given = {name: str(root / value) for name, value in params.items()}
    run.worker.conf = {**run.worker.conf, **given}
    with pytest.raises(NotReadyError, match=r"throw-away folder of the drill 'mm2_drill:sched"):
        run.run("check")
    assert run.source.requested_stop() is None
