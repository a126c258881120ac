"""The lock of a job: two failovers of one job at once, in each way that they can meet."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets import storage
from airflow_mm2_offsets.errors import HandoverError, LockedError, Mm2OffsetsError
from airflow_mm2_offsets.spark import lock_moved
from airflow_mm2_offsets.spark.claim import run_file
from airflow_mm2_offsets.spark.lock import (
    JobLock,
    LockPlaces,
    acquire_lock,
    break_lock,
    check_unlocked,
    confirm_lock,
    lock_folder,
    read_lock,
    release_lock,
)
from airflow_mm2_offsets.spark.lock_moved import lift_moved_locks, mark_lock_moved

FIRST = JobLock(request_id="failover:manual__1", mode="planned", at="2026-11-22T03:15:00+00:00")
SECOND = JobLock(request_id="failover:manual__2", mode="planned", at="2026-11-22T03:16:00+00:00")
SECOND_TIME = JobLock(request_id=FIRST.request_id, mode="planned", at="2026-11-22T04:00:00+00:00")


@pytest.fixture
def base(tmp_path: Path) -> UPath:
    return UPath(f"memory:/{tmp_path}")


def _places(base: UPath, source: str = "eu", target: str = "us", **more: UPath) -> LockPlaces:
    return LockPlaces(source=base / source / "ck", target=base / target / "ck", **more)


def test_a_lock_stays_with_its_run(base: UPath) -> None:
    """Its tries go on, with the first time; another run is told who, since when, and what to do."""
    places = _places(base)
    acquire_lock(places, FIRST)
    acquire_lock(places, JobLock(request_id=FIRST.request_id, mode="planned", at="later"))
    assert read_lock(base / "eu" / "ck") == FIRST
    confirm_lock(places, FIRST.request_id)
    with pytest.raises(LockedError) as caught:
        acquire_lock(places, SECOND)
    text = str(caught.value)
    assert "the run 'failover:manual__1' (planned) works on it, since 2026-11-22T03:15:00" in text
    assert (
        f"`airflow-mm2-offsets lock release {base / 'eu' / 'ck'} --request-id "
        f"'failover:manual__1'` releases the lock"
    ) in text
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("source", "target"),
    [("eu", "asia"), ("us", "eu2"), ("asia", "us")],
    ids=["two targets of one job", "failback before the end", "two jobs into one folder"],
)
def test_two_runs_meet(base: UPath, source: str, target: str) -> None:
    """Wherever their checkpoints overlap; the second run leaves nothing that holds up others."""
    acquire_lock(_places(base), FIRST)
    with pytest.raises(LockedError):
        acquire_lock(_places(base, source, target), SECOND)
    assert release_lock(_places(base), FIRST.request_id)
    assert not release_lock(_places(base), FIRST.request_id)
    acquire_lock(_places(base, source, target), SECOND)


def test_a_drill_holds_up_no_failover(base: UPath) -> None:
    """It locks its own folder alone, and refuses to begin beside a failover."""
    drill = LockPlaces(source=None, target=base / "drill" / "ck")
    check_unlocked(base / "eu" / "ck")
    acquire_lock(drill, SECOND)
    acquire_lock(_places(base), FIRST)
    with pytest.raises(LockedError, match="works on it"):
        check_unlocked(base / "eu" / "ck", SECOND.request_id)
    check_unlocked(base / "eu" / "ck", FIRST.request_id)


def test_a_lost_source_is_locked_elsewhere(base: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of locks outlives it; without one the run says what it could not lock."""
    _fail_below(monkeypatch, str(base / "eu"))
    places = _places(base, locks=base / "locks")
    with pytest.raises(HandoverError, match="out of reach"):
        acquire_lock(places, FIRST)
    (unlocked,) = acquire_lock(places, FIRST, source_may_be_gone=True)
    assert "is not locked" in unlocked
    confirm_lock(places, FIRST.request_id, source_may_be_gone=True)
    other = _places(base, target="asia", locks=base / "locks")
    with pytest.raises(LockedError, match=r"deleting memory:.*\.json"):
        acquire_lock(other, SECOND, source_may_be_gone=True)
    release_lock(places, FIRST.request_id, source_may_be_gone=True)
    acquire_lock(other, SECOND, source_may_be_gone=True)


def test_a_lock_that_was_released_by_hand_ends_the_run(base: UPath) -> None:
    """Before the point of no return it finds that it holds nothing, and who does."""
    acquire_lock(_places(base), FIRST)
    assert break_lock(base / "eu" / "ck", FIRST.request_id) == FIRST
    break_lock(base / "us" / "ck", FIRST.request_id)
    acquire_lock(_places(base), SECOND)
    with pytest.raises(LockedError, match=r"does not hold the lock any more: the run 'fail"):
        confirm_lock(_places(base), FIRST.request_id)
    with pytest.raises(LockedError, match="the lock is not of 'failover:manual__1': the run 'fail"):
        break_lock(base / "eu" / "ck", FIRST.request_id)
    with pytest.raises(LockedError, match="no run holds it"):
        break_lock(base / "nowhere", FIRST.request_id)


def test_a_job_without_a_fence_is_moved_once(base: UPath) -> None:
    """Its lock stays at the source and says where the job went; the target's is released."""
    acquire_lock(_places(base), FIRST)
    mark_lock_moved(_places(base), FIRST, "s3://us/orders")
    assert not release_lock(_places(base), FIRST.request_id)
    assert read_lock(base / "us" / "ck") is None
    with pytest.raises(LockedError, match=r"was moved to s3://us/orders by .*stop the job that it"):
        acquire_lock(_places(base, target="asia"), SECOND)


def test_a_move_is_noted_elsewhere_where_the_source_is_lost(
    base: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target's lock is released, and what could not be noted is said."""
    places = _places(base, locks=base / "locks")
    acquire_lock(places, FIRST)
    with monkeypatch.context() as patch:
        _fail_below(patch, str(base / "eu"))
        with pytest.raises(HandoverError, match="out of reach"):
            mark_lock_moved(places, FIRST, "us")
        (unmarked,) = mark_lock_moved(places, FIRST, "us", source_may_be_gone=True)
        assert f"lock release {base / 'eu' / 'ck'}" in unmarked
        other = _places(base, target="asia", locks=base / "locks")
        with pytest.raises(LockedError, match="was moved to us by"):
            acquire_lock(other, SECOND, source_may_be_gone=True)
    assert read_lock(base / "us" / "ck") is None


def test_a_move_is_noted_without_a_moment_that_is_free(
    base: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is written over, and keeps its first time."""
    places = _places(base)
    acquire_lock(places, FIRST)
    source = run_file(lock_folder(base / "eu" / "ck"), FIRST.request_id)
    removed: list[UPath] = []
    monkeypatch.setattr(lock_moved, "remove_file", lambda path, _: removed.append(path))
    mark_lock_moved(places, SECOND_TIME, "us")
    assert source not in removed
    lock = read_lock(base / "eu" / "ck")
    assert lock is not None
    assert (lock.at, lock.moved_to) == (FIRST.at, "us")


def test_a_job_that_has_come_home_may_leave_again(base: UPath) -> None:
    """A failback passes the note that the job was moved away; its hand-over removes it."""
    locks = base / "locks"
    acquire_lock(_places(base, locks=locks), FIRST)
    mark_lock_moved(_places(base, locks=locks), FIRST, "us")
    home = _places(base, "us", "eu", locks=locks)
    with pytest.raises(LockedError, match="was moved to us by"):
        acquire_lock(home, SECOND)
    back = JobLock(request_id="back:1", mode="failback", at=SECOND.at)
    acquire_lock(home, back)
    confirm_lock(home, back.request_id)
    with pytest.raises(LockedError):
        acquire_lock(_places(base, "eu", "asia"), SECOND)
    lift_moved_locks(home)
    confirm_lock(home, back.request_id)
    release_lock(home, back.request_id)
    acquire_lock(_places(base, "eu", "asia", locks=locks), SECOND)


def test_a_failback_does_not_pass_a_run_that_works(base: UPath) -> None:
    """Only a finished move lies behind it."""
    acquire_lock(LockPlaces(source=base / "eu" / "ck", target=None), FIRST)
    back = JobLock(request_id="back:1", mode="failback", at=SECOND.at)
    with pytest.raises(LockedError, match="works on it"):
        acquire_lock(_places(base, "us", "eu"), back)
    lift_moved_locks(_places(base, "us", "eu"))
    assert read_lock(base / "eu" / "ck") == FIRST


def test_a_damaged_lock_is_not_taken_for_none(base: UPath) -> None:
    """Not even where the source may be lost."""
    (lock_folder(base / "eu" / "ck") / "x.json").write_text("{")
    with pytest.raises(HandoverError, match=r"holds '\{'"):
        acquire_lock(_places(base), FIRST, source_may_be_gone=True)


def _fail_below(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    real = storage.storage_errors

    @contextmanager
    def fail(location: UPath | str, error: type[Mm2OffsetsError]) -> Iterator[None]:
        with real(location, error):
            if str(location).startswith(folder):
                raise OSError("gone")
            yield

    monkeypatch.setattr(storage, "storage_errors", fail)
