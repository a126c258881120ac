"""The lock of a job: at most one failover works on a checkpoint at a time, as source or as target.

A run holds it from its stop to its end, by one small file beside each checkpoint that it touches.
So two runs with different targets meet at the source, and a failback that comes too early meets the
unfinished failover at its target. Where the source's storage may be lost, a folder of locks that
outlives both (``LockPlaces.locks``) takes the place of the source's file.

A drill holds the lock of its throw-away folder alone: it never holds up a failover. It refuses to
begin while a failover works on its job (``check_unlocked``).

A lock that was left behind is never taken over by its age: the error names who holds it since when,
and the command that releases it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from upath import UPath

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import HandoverError, LockedError
from airflow_mm2_offsets.locations import beside, folder_id
from airflow_mm2_offsets.spark.claim import RunFile, hold_alone, run_file, run_files
from airflow_mm2_offsets.storage import remove_file


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLock:
    """Who works on a job, and since when."""

    request_id: str
    """The run: dag id, run id, and the group's id where there is one."""
    mode: str
    """The failover's: ``planned``, ``disaster``, ``drill`` or ``failback``."""
    at: str
    """ISO 8601, UTC."""
    moved_to: str | None = None
    """Where the run has moved a job that has no fence; its lock stays, as a fence does."""

    def __str__(self) -> str:
        """Return a sentence for messages."""
        if self.moved_to is not None:
            return f"the job was moved to {self.moved_to} by {self.request_id!r}, since {self.at}"
        return f"the run {self.request_id!r} ({self.mode}) works on it, since {self.at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockPlaces:
    """What one run locks."""

    source: UPath | None
    """The source job's checkpoint; None for a drill, which touches no job."""
    target: UPath | None
    """The target job's checkpoint."""
    locks: UPath | None = None
    """A folder that outlives the source's storage; the same for all failovers of a job."""

    def is_at_source(self, folder: UPath) -> bool:
        """Tell whether a lock's folder lies in the source's storage, which may be lost."""
        return self.source is not None and folder == lock_folder(self.source)

    def folders(self) -> Iterator[tuple[UPath, UPath]]:
        """Yield the folder of each lock, and what it locks."""
        if self.source is not None:
            yield lock_folder(self.source), self.source
            if self.locks is not None:
                yield _folder_in(self.locks, self.source), self.source
        if self.target is not None:
            yield lock_folder(self.target), self.target

    def target_folders(self) -> Iterator[UPath]:
        """Yield where a note may lie that a job was moved away from the target."""
        if self.target is not None:
            yield lock_folder(self.target)
            if self.locks is not None:
                yield _folder_in(self.locks, self.target)


def new_lock(request_id: str, mode: str) -> JobLock:
    """Return a lock as of now."""
    return JobLock(
        request_id=request_id, mode=mode, at=datetime.now(UTC).isoformat(timespec="seconds")
    )


def acquire_lock(
    places: LockPlaces, lock: JobLock, *, source_may_be_gone: bool = False
) -> list[str]:
    """Lock a job for a run, or raise and hold nothing that was not held before.

    A run that holds the lock keeps it, with its first time. A failback passes the note at its
    target that the job was moved away from there. Call it before the stop.

    Args:
        places: What to lock.
        lock: Who locks it.
        source_may_be_gone: Go on where the source's storage does not answer.

    Returns:
        What could not be locked and why, as sentences: only where ``source_may_be_gone``.

    Raises:
        LockedError: Another run holds the lock, or has moved the job.
        HandoverError: A storage does not answer.
    """
    acquired: list[UPath] = []
    unlocked: list[str] = []
    for folder, checkpoint in places.folders():
        try:
            is_home = lock.mode == FailoverMode.FAILBACK and checkpoint == places.target
            is_new = take_folder(folder, checkpoint, lock, is_home=is_home)
        except HandoverError as error:
            if source_may_be_gone and places.is_at_source(folder) and error.retryable:
                unlocked.append(f"{checkpoint} is not locked: {error}")
                continue
            for each in acquired:
                remove_file(run_file(each, lock.request_id), HandoverError)
            raise
        acquired += [folder] if is_new else []
    return unlocked


def confirm_lock(places: LockPlaces, request_id: str, *, source_may_be_gone: bool = False) -> None:
    """Raise unless a run still holds the lock; call it directly before the point of no return.

    Raises:
        LockedError: Somebody has released it.
        HandoverError: A storage does not answer.
    """
    for folder, checkpoint in places.folders():
        if source_may_be_gone and places.is_at_source(folder):
            continue
        files = run_files(folder)
        if request_id in files:
            continue
        holders = "; ".join(str(to_lock(file)) for file in files.values())
        raise LockedError(
            f"{checkpoint}: {request_id!r} does not hold the lock any more"
            f"{': ' + holders if holders else ''}; nothing was started on the target. Start a new "
            f"run of the failover"
        )


def check_unlocked(checkpoint: UPath, request_id: str = "") -> None:
    """Raise if another run works on a job; a drill calls it with the job's checkpoint.

    Raises:
        LockedError: Another run holds the lock, or has moved the job.
        HandoverError: The storage does not answer.
    """
    for file in run_files(lock_folder(checkpoint)).values():
        if file.request_id != request_id:
            raise _locked_by(checkpoint, file)


def release_lock(places: LockPlaces, request_id: str, *, source_may_be_gone: bool = False) -> bool:
    """Release what a run holds; True if it held a lock. A lock that says "moved" stays.

    Raises:
        HandoverError: A storage does not answer.
    """
    has_held = False
    for folder, _ in places.folders():
        try:
            file = run_files(folder).get(request_id)
            if file is not None and to_lock(file).moved_to is None:
                remove_file(file.path, HandoverError)
                has_held = True
        except HandoverError:
            if not (source_may_be_gone and places.is_at_source(folder)):
                raise
    return has_held


def read_lock(checkpoint: UPath) -> JobLock | None:
    """Return who holds the lock of a checkpoint; None if it is free.

    Raises:
        HandoverError: The storage does not answer, or the file is damaged.
    """
    files = run_files(lock_folder(checkpoint)).values()
    return next((to_lock(file) for file in files), None)


def break_lock(checkpoint: UPath, request_id: str) -> JobLock:
    """Release a lock that a run has left behind, for a user who has seen that the run has ended.

    Raises:
        LockedError: It is another run's, or there is none.
        HandoverError: The storage does not answer.
    """
    file = run_files(lock_folder(checkpoint)).get(request_id)
    if file is None:
        standing = read_lock(checkpoint)
        found = f"the lock is not of {request_id!r}: {standing}" if standing else "no run holds it"
        raise LockedError(f"{checkpoint}: {found}")
    remove_file(file.path, HandoverError)
    return to_lock(file)


def lock_folder(checkpoint: UPath) -> UPath:
    """Return the folder of a checkpoint's lock, beside it."""
    return beside(checkpoint, "locks")


def _folder_in(locks: UPath, checkpoint: UPath) -> UPath:
    return locks / sha256(folder_id(checkpoint).encode()).hexdigest()[:32]


def take_folder(folder: UPath, checkpoint: UPath, lock: JobLock, *, is_home: bool = False) -> bool:
    """Write one file of a lock; True if it is new.

    Raises:
        LockedError: Another run holds the lock, or has moved the job.
        HandoverError: The storage does not answer.
    """
    is_new, other = hold_alone(
        folder,
        lock.request_id,
        values_of(lock),
        is_passed=lambda file: is_home and to_lock(file).moved_to is not None,
    )
    if other is not None:
        raise _locked_by(checkpoint, other)
    return is_new


def values_of(lock: JobLock) -> dict[str, str | None]:
    """Return what a lock's file holds beside the run."""
    return {"mode": lock.mode, "at": lock.at, "moved_to": lock.moved_to}


def release_command(checkpoint: UPath, lock: JobLock) -> str:
    """Return the command that releases a lock, for messages."""
    return f"`airflow-mm2-offsets lock release {checkpoint} --request-id '{lock.request_id}'`"


def _locked_by(checkpoint: UPath, file: RunFile) -> LockedError:
    lock = to_lock(file)
    if file.path.parent != lock_folder(checkpoint):
        release = f"deleting {file.path}"
    else:
        release = release_command(checkpoint, lock)
    if lock.moved_to is not None:
        return LockedError(
            f"{checkpoint}: {lock}; stop the job that it started first; then {release} lets "
            f"another run move it"
        )
    return LockedError(
        f"{checkpoint}: {lock}, and two failovers of one job may start it twice: wait for that "
        f"run; if it has ended and will not be cleared, {release} releases the lock"
    )


def to_lock(file: RunFile) -> JobLock:
    """Return the lock that a file is of."""
    values = file.values
    moved_to = values.get("moved_to")
    return JobLock(
        request_id=file.request_id,
        mode=str(values.get("mode")),
        at=str(values.get("at")),
        moved_to=None if moved_to is None else str(moved_to),
    )
