"""The locks of a disaster whose source storage is lost: during the run, after it, and back home."""

import shutil
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, LockedError
from airflow_mm2_offsets.spark.lock import (
    LockPlaces,
    acquire_lock,
    check_unlocked,
    new_lock,
    release_lock,
)
from tests.unit.dags.dags_folder import FOLDER, STEPS, parse
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.dags.ways_home import JobOnTarget, way_home
from tests.unit.operators.clusters import RECORDS, Clusters
from tests.unit.operators.worker import Worker

DISASTER = tuple(step for step in STEPS if step not in {"wait_replicated", "verify", "report"})


@pytest.fixture
def locks(tmp_path: Path) -> UPath:
    """A folder that outlives the source's storage."""
    return UPath(tmp_path / "locks")


@pytest.fixture
def lost(run: Failover, locks: UPath) -> Failover:
    """A disaster by the user's word, from given positions."""
    _lock(run, locks)
    vars(run.task("read_positions")).update(positions='{"orders":{"0":4,"1":0,"2":0,"3":0}}')
    conf = {"mode": "disaster", "source_is_gone": True, "approve": "never"}
    run.worker.conf = {**run.worker.conf, **conf}
    return run


def _lock(run: Failover, locks: UPath) -> None:
    for task in run.dag.tasks:
        if "locks" in vars(task):
            vars(task)["locks"] = str(locks)


def _places(run: Failover, locks: UPath, target: str = "elsewhere") -> LockPlaces:
    return LockPlaces(
        source=UPath(run.source.checkpoint),
        target=UPath(run.target.parent / target / "checkpoint"),
        locks=locks,
    )


def _acquire(places: LockPlaces, run_id: str = "2") -> None:
    lock = new_lock(f"mm2_failover:manual__{run_id}", "disaster")
    acquire_lock(places, lock, source_may_be_gone=True)


def _move(run: Failover) -> None:
    for each in DISASTER:
        run.run(each)
    _report(run)


def _report(run: Failover) -> None:
    run.worker.states = dict.fromkeys(DISASTER, "success")
    run.run("report")


def test_a_job_that_was_moved_by_word_is_not_moved_again(lost: Failover, locks: UPath) -> None:
    """No fence could be raised, so the lock says that the job was moved."""
    shutil.rmtree(lost.source.folder)
    _move(lost)
    with pytest.raises(LockedError, match=f"was moved to {lost.target} by"):
        _acquire(_places(lost, locks))
    check_unlocked(UPath(lost.target) / "checkpoint")


def test_a_job_whose_fence_is_lost_after_the_stop_is_not_moved_again(
    lost: Failover, locks: UPath
) -> None:
    """It was stopped with proof, and the hand-over could not mark the fence."""
    for each in DISASTER[: DISASTER.index("submit_target")]:
        lost.run(each)
    away = lost.source.folder.rename(lost.source.folder.parent / "lost")
    for each in DISASTER[DISASTER.index("submit_target") :]:
        lost.run(each)
    shutil.rmtree(lost.source.folder, ignore_errors=True)
    away.rename(lost.source.folder)
    with pytest.raises(HandoverError, match="nothing was rolled back"):
        lost.run("roll_back")
    _report(lost)
    with pytest.raises(LockedError, match=f"was moved to {lost.target} by"):
        _acquire(_places(lost, locks))


def test_a_fenced_job_leaves_no_lock(run: Failover, locks: UPath) -> None:
    """The fence says that the job was moved."""
    _lock(run, locks)
    for each in STEPS[:-2]:
        run.run(each)
    _report(run)
    places = _places(run, locks)
    _acquire(places)
    release_lock(places, "mm2_failover:manual__2")


def test_a_job_that_has_come_home_may_leave_again(
    lost: Failover, locks: UPath, worker: Worker, clusters: Clusters
) -> None:
    """The storage was made again, empty; the failback removes the note of the first failover."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    shutil.rmtree(lost.source.folder)
    _move(lost)
    shutil.rmtree(lost.source.folder, ignore_errors=True)
    worker.run_id = "manual__2"
    worker.xcoms.clear()
    worker.triggered.clear()
    job = JobOnTarget(lost)
    back = Failover(worker, parse(FOLDER / "mm2_failover.py").dags["mm2_failover"], job, "source")
    plan = str(lost.target / "plans" / "manual__1.json")
    worker.conf = {**worker.conf, "mode": "failback", "approve": "never", "first_plan": plan}
    _lock(back, locks)
    for each in STEPS[: STEPS.index("wait_started")]:
        back.run(each)
    assert len(worker.triggered) == 1
    back.worker.states = dict.fromkeys(DISASTER, "success")
    back.run("report")
    _acquire(_places(lost, locks), "3")


def test_a_report_that_is_cleared_after_the_way_home_notes_nothing(
    run: Failover, locks: UPath, clusters: Clusters
) -> None:
    """The job is at home again: a note that it was moved away would hold up the next failover."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    _lock(run, locks)
    for each in STEPS[:-2]:
        run.run(each)
    _report(run)
    conf = run.worker.conf
    back = way_home(run.worker, run, "manual__2")
    _lock(back, locks)
    for each in STEPS[: STEPS.index("wait_started")]:
        back.run(each)
    _report(back)
    run.worker.run_id, run.worker.conf = "manual__1", conf
    _report(run)
    _acquire(_places(run, locks), "3")


def test_a_lost_checkpoint_alone_is_locked_elsewhere(lost: Failover, locks: UPath) -> None:
    """The control location proves the stop; its checkpoint's storage does not answer."""
    lost.worker.conf = {**lost.worker.conf, "source_is_gone": False}
    shutil.rmtree(lost.source.checkpoint)
    beside = lost.source.checkpoint.parent / "checkpoint.locks"
    beside.write_text("no folder can be made or listed here")
    for each in DISASTER[:-1]:
        lost.run(each)
    (conf,) = lost.worker.triggered.values()
    assert conf["starting_offsets"] == STARTING
    with pytest.raises(LockedError, match="works on it"):
        _acquire(_places(lost, locks))
