"""The lock of a failover: the stop takes it, the hand-over looks for it, the report releases it."""

from typing import Protocol

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, confirm_lock, new_lock
from airflow_mm2_offsets.spark.lock_moved import lift_moved_locks
from airflow_mm2_offsets.spark.rollback_mark import forget_mark, mark_path


class LockSettings(Protocol):
    """The fields of an operator that say what to lock."""

    checkpoint: str
    control: str | None
    locks: str | None
    request_id: str
    mode: str

    @property
    def target_checkpoint(self) -> str | None:
        """The target job's checkpoint location."""


def forget_roll_back(target_checkpoint: str | None, request_id: str) -> None:
    """Let a run that was rolled back, and stops the job anew, hand it over again.

    ``begin_stop`` does so in a control location; here it is the mark of a roll-back that found
    none.

    Raises:
        StopError: The mark can't be read or removed.
    """
    if target_checkpoint:
        forget_mark(mark_path(None, storage_path(target_checkpoint), request_id), request_id)


def places_of(*, checkpoint: str, target_checkpoint: str | None, locks: str | None) -> LockPlaces:
    """Return what a run locks, by locations that templates may have rendered."""
    target, folder = given(target_checkpoint), given(locks)
    return LockPlaces(
        source=storage_path(checkpoint),
        target=storage_path(target) if target else None,
        locks=storage_path(folder) if folder else None,
    )


def take_lock(task: LockSettings, *, source_may_be_gone: bool) -> list[str]:
    """Lock the job for the run; return what could not be locked, as sentences.

    The fence keeps other runs from a job with a control location. A job without one is locked, and
    one whose failovers have a folder of locks. A stop that is no part of a failover (it has no
    target) locks nothing, because nobody would release it.

    Raises:
        LockedError: Another run holds the lock, or has moved the job.
        HandoverError: A storage does not answer.
    """
    if not task.target_checkpoint or not _is_locked(task):
        return []
    lock = new_lock(task.request_id, task.mode)
    may_be_gone = source_may_be_gone or _is_locked_elsewhere(task)
    return acquire_lock(_places(task), lock, source_may_be_gone=may_be_gone)


def confirm_own_lock(task: LockSettings, *, source_may_be_gone: bool) -> None:
    """Raise unless the run still holds the lock, where it takes one; see ``confirm_lock``."""
    if _is_locked(task):
        may_be_gone = source_may_be_gone or _is_locked_elsewhere(task)
        confirm_lock(_places(task), task.request_id, source_may_be_gone=may_be_gone)


def lift_locks_at_target(task: LockSettings) -> None:
    """Remove the notes that a job was moved away from the target; see ``lift_moved_locks``."""
    lift_moved_locks(_places(task))


def is_locked(control: str | None, locks: str | None) -> bool:
    """Tell whether a failover locks its job; else the fence alone keeps other runs away."""
    return given(control) is None or given(locks) is not None


def _is_locked(task: LockSettings) -> bool:
    return is_locked(task.control, task.locks)


def _is_locked_elsewhere(task: LockSettings) -> bool:
    """Tell whether the lock holds without the source's storage, which a disaster may have taken.

    The checkpoint may be lost by itself, and then no word of the user is needed.
    """
    return task.mode == FailoverMode.DISASTER and given(task.locks) is not None


def _places(task: LockSettings) -> LockPlaces:
    return places_of(
        checkpoint=task.checkpoint, target_checkpoint=task.target_checkpoint, locks=task.locks
    )
