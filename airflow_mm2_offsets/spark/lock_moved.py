"""The lock of a job that was moved and has no fence: it stays, and says where the job went.

A job without a control location has none. Neither has a job whose storage was lost when it was
handed over. The report writes the note, and the hand-over that brings a job there removes it.
"""

from dataclasses import replace

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.spark.claim import run_file, run_files, write_run_file
from airflow_mm2_offsets.spark.lock import (
    JobLock,
    LockPlaces,
    release_command,
    take_folder,
    to_lock,
    values_of,
)
from airflow_mm2_offsets.storage import remove_file


def mark_lock_moved(
    places: LockPlaces, lock: JobLock, moved_to: str, *, source_may_be_gone: bool = False
) -> list[str]:
    """Note beside the source's checkpoint that its job was moved; the target's lock is released.

    For a job without a fence that would tell the next failover. ``lift_moved_locks`` removes the
    note once the job has come home. A run that holds nothing any more notes nothing: an earlier
    call has noted it, and the job may have come home since.

    Returns:
        What could not be noted and why, as sentences: only where ``source_may_be_gone``.

    Raises:
        HandoverError: A storage does not answer.
    """
    if not _holds_any(places, lock.request_id, source_may_be_gone=source_may_be_gone):
        return []
    unmarked: list[str] = []
    moved = replace(lock, moved_to=without_login(moved_to))
    for folder, checkpoint in places.folders():
        try:
            if checkpoint == places.source:
                _note_moved(folder, checkpoint, moved)
            else:
                remove_file(run_file(folder, lock.request_id), HandoverError)
        except HandoverError as error:
            if not (source_may_be_gone and places.is_at_source(folder)):
                raise
            unmarked.append(
                f"the lock of {checkpoint} does not say that the job was moved: {error}. When its "
                f"storage is back, a lock of this run may stand there, and hold up the way home: "
                f"{release_command(checkpoint, lock)}"
            )
    return unmarked


def _holds_any(places: LockPlaces, request_id: str, *, source_may_be_gone: bool) -> bool:
    for folder, _ in places.folders():
        try:
            if request_id in run_files(folder):
                return True
        except HandoverError:
            if not (source_may_be_gone and places.is_at_source(folder)):
                raise
    return False


def _note_moved(folder: UPath, checkpoint: UPath, moved: JobLock) -> None:
    """Write a run's lock over, so that at no moment another run can take it."""
    file = run_files(folder).get(moved.request_id)
    if file is None:
        take_folder(folder, checkpoint, moved)
        return
    first = to_lock(file)
    values = values_of(replace(moved, mode=first.mode, at=first.at))
    write_run_file(folder, moved.request_id, values)


def lift_moved_locks(places: LockPlaces) -> None:
    """Remove the notes that a job was moved away from the target: a job is to live there now.

    The hand-over calls it directly before it starts that job; a second call changes nothing.

    Raises:
        HandoverError: A storage does not answer.
    """
    for folder in places.target_folders():
        for file in run_files(folder).values():
            if to_lock(file).moved_to is not None:
                remove_file(file.path, HandoverError)
