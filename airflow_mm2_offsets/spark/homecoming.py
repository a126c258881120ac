"""Brings a job home to the folder that it was moved away from; the hand-over calls it.

In this order, each step safe to repeat: the fence in the folder that the job leaves is raised and
the job stopped; the plan is kept; ``prepare_home``; the claim; ``mark_moved`` in the folder that
the job leaves; ``lift_for_home``; the job's DAG is triggered.

The home folder still has the fence of the run that moved the job away. It stands until
``lift_for_home``, in the name of this run from ``prepare_home`` on, so no driver starts from the
old checkpoint while that is set aside. Afterwards an old driver that its cluster manager brings
back finds no fence, and it names the same checkpoint location as the new job, with other
``startingOffsets``. So the new start is written into the checkpoint location first, where Spark
looks before it looks at ``startingOffsets`` (``sources/N/0``): whichever driver comes first begins
at the translated offsets, and ``StopControl`` lets only one of them run. A driver that was only
silent may still hold the old query in memory: then a new folder is needed.
"""

from dataclasses import dataclass
from hashlib import sha256

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import CheckpointError, HandoverError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.spark.control import StopProof, read_last_acknowledgement
from airflow_mm2_offsets.spark.fence import (
    Fence,
    FenceState,
    lift_fence,
    read_fence,
    take_over_fence,
)
from airflow_mm2_offsets.spark.planted_start import plan_start, write_start
from airflow_mm2_offsets.spark.set_aside import SetAside
from airflow_mm2_offsets.storage import list_directory, list_files, open_location

_NEW_FOLDER = "give a new, empty home folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Homecoming:
    """A home folder that is ready for the job."""

    set_aside: str | None
    """Where the old checkpoint lies now; None if the folder was new."""

    @property
    def is_new(self) -> bool:
        """Whether the folder never held the job: the fence in the old folder stays."""
        return self.set_aside is None


def prepare_home(
    home_checkpoint: UPath,
    home_control: UPath,
    *,
    request_id: str,
    from_folder: str,
    positions: Positions,
) -> Homecoming:
    """Take over the home folder's fence, and set the old checkpoint and its notes aside.

    A second call by the same run goes on where the first one ended, and changes nothing after
    ``lift_for_home``. What an earlier run has set aside, and did not come home, is put back first.

    Args:
        home_checkpoint: The checkpoint location that the job returns to.
        home_control: Its control location.
        request_id: This run: DAG id and run id.
        from_folder: The folder that the job comes from, as the first run's ``moved_to`` names it.
        positions: The plan's target positions.

    Raises:
        HandoverError: The folder is of another job or run, the job was only silent when it was
            moved, or the positions don't fit the sources of the old checkpoint.
        StopError: The control location can't be read or written.
        CheckpointError: The checkpoint can't be moved.
    """
    aside = SetAside.of(home_checkpoint, run_hash(request_id))
    fence = read_fence(home_control)
    if aside.is_lifted() or (fence is None and aside.is_lifting()):
        return Homecoming(set_aside=str(aside.folder))
    if fence is None:
        _check_new(home_checkpoint, aside)
        return Homecoming(set_aside=None)
    _check_fence(home_control, fence, request_id, from_folder)
    _check_proof(home_control)
    if fence.request_id != request_id:
        SetAside.of(home_checkpoint, run_hash(fence.request_id)).restore()
    # ``lift_for_home`` would find what doesn't fit only when the job is handed over.
    if not aside.exists():
        plan_start(home_checkpoint, positions)
    take_over_fence(home_control, fence, request_id)
    aside.move()
    plan_start(aside.folder, positions)
    return Homecoming(set_aside=str(aside.folder))


def check_home(
    home_checkpoint: UPath, home_control: UPath, *, request_id: str, from_folder: str
) -> None:
    """Raise where ``prepare_home`` would refuse, and change nothing.

    Raises:
        HandoverError: See ``prepare_home``.
        StopError: The control location can't be read.
        CheckpointError: The checkpoint location can't be read.
    """
    aside = SetAside.of(home_checkpoint, run_hash(request_id))
    fence = read_fence(home_control)
    if fence is not None:
        _check_fence(home_control, fence, request_id, from_folder)
        _check_proof(home_control)
    elif not aside.is_lifted() and not aside.is_lifting():
        _check_new(home_checkpoint, aside)


def lift_for_home(
    home_checkpoint: UPath, home_control: UPath, *, request_id: str, positions: Positions
) -> None:
    """Write where the job starts into its checkpoint location, and lift the fence.

    Call it after ``mark_moved`` in the folder that the job leaves, directly before the job is
    started. A second call changes nothing; neither does a call for a new folder.

    Args:
        home_checkpoint: As for ``prepare_home``.
        home_control: As for ``prepare_home``.
        request_id: As for ``prepare_home``.
        positions: The plan's target positions.

    Raises:
        HandoverError: Another run has taken over the fence, somebody has lifted it, or the
            positions don't fit the sources of the old checkpoint.
        StopError: The control location can't be read or written.
        CheckpointError: The checkpoint can't be read or written.
    """
    aside = SetAside.of(home_checkpoint, run_hash(request_id))
    fence = read_fence(home_control)
    if aside.is_lifted() or (fence is None and not aside.exists()):
        return
    if fence is None:
        if aside.is_lifting():  # The run was killed directly after it lifted the fence.
            aside.note_lifted()
            return
        raise HandoverError(
            f"{home_control}: the fence was lifted by somebody else, so an old driver may run: "
            f"nothing was started. See that none runs, and come home with a new run to a new folder"
        )
    _check_prepared(home_checkpoint, home_control, fence, request_id)
    write_start(home_checkpoint, plan_start(aside.folder, positions))
    aside.note_lifting()
    lift_fence(home_control, request_id)
    aside.note_lifted()


def has_begun(home_checkpoint: UPath) -> bool:
    """Tell whether a job has begun at a checkpoint location; a written start does not count.

    Raises:
        CheckpointError: The storage can't be read.
    """
    root = open_location(home_checkpoint, CheckpointError)
    files = list_files(root, CheckpointError)
    return any(not name.startswith("sources/") for name in files)


def files_at_target(target_checkpoint: UPath, *, is_home: bool) -> list[str]:
    """Return the names in a target's checkpoint location; none means that no job has begun there.

    The way home writes the start before the job begins.

    Raises:
        CheckpointError: The storage can't be read.
    """
    root = open_location(target_checkpoint, CheckpointError)
    names = sorted(list_directory(root, CheckpointError))
    return [] if is_home and not has_begun(root) else names


def run_hash(request_id: str) -> str:
    """Return what names a run in the name of the old checkpoint."""
    return sha256(request_id.encode()).hexdigest()[:8]


def _check_prepared(checkpoint: UPath, control: UPath, fence: Fence, request_id: str) -> None:
    if fence.request_id != request_id:
        raise HandoverError(
            f"{control}: the fence is not of {request_id!r}: {fence}; nothing was started here"
        )
    if not SetAside.of(checkpoint, run_hash(request_id)).is_done():
        raise HandoverError(
            f"{checkpoint}: the old checkpoint is not set aside; clear the task that prepares "
            f"the home folder"
        )


def _check_new(home_checkpoint: UPath, aside: SetAside) -> None:
    if aside.exists():
        raise HandoverError(
            f"{home_checkpoint}: its fence was lifted while the old checkpoint was set aside: see "
            f"that no driver runs there, and {_NEW_FOLDER}"
        )
    root = open_location(home_checkpoint, CheckpointError)
    if names := sorted(list_files(root, CheckpointError)):
        raise HandoverError(
            f"{home_checkpoint} holds {', '.join(names[:3])}, and no fence says that the job was "
            f"moved away from there: another job may run there. Stop it by a failover, or "
            f"{_NEW_FOLDER}"
        )


def _check_fence(control: UPath, fence: Fence, request_id: str, from_folder: str) -> None:
    if fence.state is not FenceState.MOVED:
        raise HandoverError(
            f"{control}: {fence}; that run has not ended: finish it or lift its fence first"
        )
    if fence.control is not None and not same_folder(control, fence.control):
        raise HandoverError(
            f"{control}: its fence was raised in {fence.control}, so it is a copy: give the "
            f"folder that the job was moved away from"
        )
    if fence.request_id == request_id:
        return
    if fence.moved_to != without_login(from_folder) and not same_folder(
        UPath(from_folder), fence.moved_to
    ):
        raise HandoverError(
            f"{control}: {fence}, and the job that comes home runs in {from_folder}: it is another "
            f"job, or another run. Give the folder that this job was moved away from, or "
            f"{_NEW_FOLDER}"
        )


def _check_proof(control: UPath) -> None:
    answer = read_last_acknowledgement(control)
    proof = answer.proof if answer else None
    if proof is None or proof is StopProof.SILENT:
        how = "was only silent" if proof else "has never answered a stop"
        raise HandoverError(
            f"{control}: the driver that ran here {how} when the job was moved away. If it was "
            f"paused or cut off, it would go on with the old query in memory: {_NEW_FOLDER}"
        )
