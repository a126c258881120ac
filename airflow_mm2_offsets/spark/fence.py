"""The fence: ``fence.json`` in a job's control location says that the job was moved away.

While it stands, no job runs with that control location: ``StopControl`` refuses to start, and
stops a job that runs. The stop raises it before it asks. So a driver that the cluster manager
restarts in between does not run either. The hand-over marks it as moved before it starts the target
job. It stays after the failover until somebody lifts it. A stop without a proof is withdrawn
together with its fence (``stopping.withdraw_request``).
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from upath import UPath

from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.locations import folder_id, same_folder
from airflow_mm2_offsets.spark.control_files import field_of, read_object, write_object
from airflow_mm2_offsets.storage import open_location, remove_file

FENCE_FILE = "fence.json"


class FenceState(StrEnum):
    """How far the run that raised a fence has come."""

    STOPPING = "stopping"
    """It is stopping the job, or has stopped it. It has not started the target job."""
    MOVED = "moved"
    """It has handed the job over: a job runs on the target, or is about to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Who moves a job away, where to and since when."""

    request_id: str
    """The stop that raised it: DAG id and run id."""
    moved_to: str
    """Where the job goes, in words: the target's folder or cluster."""
    at: datetime
    """When the stop was asked, with its zone."""
    state: FenceState = FenceState.STOPPING
    control: str | None = field(default=None, compare=False)
    """The control location that it was raised in, by ``folder_id``: a copy names another one."""

    def __str__(self) -> str:
        """Say it in words for a message."""
        deed = "was moved" if self.state is FenceState.MOVED else "is being moved"
        where = f" to {self.moved_to}" if self.moved_to else ""
        return f"the job {deed}{where} by {self.request_id!r}, since {self.at.isoformat()}"


def read_fence(location: UPath | str) -> Fence | None:
    """Return the fence of a control location; None if no fence stands.

    Raises:
        StopError: The location can't be read, or the file is damaged.
    """
    root = open_location(location, StopError)
    values = read_object(root / FENCE_FILE)
    if values is None:
        return None
    at = parse_zoned(text := field_of(values, "at", str, root))
    state = field_of(values, "state", str, root)
    if at is None or state not in set(FenceState):
        raise StopError(f"{root / FENCE_FILE}: at is {text!r} and state {state!r}; is it damaged?")
    return Fence(
        request_id=field_of(values, "request_id", str, root),
        moved_to=field_of(values, "moved_to", str, root),
        at=at,
        state=FenceState(state),
        control=field_of(values, "control", str | None, root),
    )


def raise_fence(location: UPath | str, fence: Fence, *, instead_of: str | None = None) -> Fence:
    """Raise a fence; the one that the same run has raised before stays as it is.

    Storage has no locks. So the file is read again after it was written: of two runs that raise
    a fence at the same moment, at most the later one goes on.

    Args:
        location: The control location that the job was given.
        fence: What to raise.
        instead_of: The run whose fence this one may replace: its stop was answered, and the job
            not moved.

    Returns:
        The fence that stands.

    Raises:
        StopError: Another run's fence stands, or the location can't be written.
    """
    root = open_location(location, StopError)
    standing = read_fence(root)
    if standing is not None and standing.request_id == fence.request_id:
        _check_raised_here(root, standing)
        return standing
    if standing is not None and not _may_replace(standing, instead_of):
        raise StopError(f"{root}: {standing}; {_next_step(root, standing)}")
    _write(root, fence)
    return fence


def mark_moved(location: UPath | str, request_id: str, moved_to: str) -> Fence:
    """Note that the job is handed over; from here on no other run takes the fence over.

    Call it before the target job is started. Called again by the same run, it changes nothing.

    Raises:
        StopError: The run's fence does not stand any more, it has moved the job elsewhere before,
            or the location can't be written.
    """
    root = open_location(location, StopError)
    standing = own_fence(root, request_id)
    if standing.state is FenceState.MOVED:
        if standing.moved_to != moved_to:
            raise StopError(f"{root}: {standing}, and not to {moved_to}; a job is moved once")
        return standing
    moved = replace(standing, state=FenceState.MOVED, moved_to=moved_to)
    _write(root, moved)
    return moved


def lift_fence(location: UPath | str, request_id: str) -> Fence:
    """Take a run's fence away: a job may run again with this control location.

    Returns:
        The fence that stood.

    Raises:
        StopError: No fence stands, it is another run's, or the location can't be written.
    """
    root = open_location(location, StopError)
    standing = own_fence(root, request_id)
    remove_file(root / FENCE_FILE, StopError)
    return standing


def own_fence(location: UPath | str, request_id: str) -> Fence:
    """Return the fence that a run has raised.

    Raises:
        StopError: No fence stands, it is another run's, or the location can't be read.
    """
    root = open_location(location, StopError)
    standing = read_fence(root)
    if standing is None:
        raise StopError(f"{root}: no fence stands, so {request_id!r} has none here")
    if standing.request_id != request_id:
        raise StopError(
            f"{root}: the fence is not of {request_id!r}: {standing}; {_next_step(root, standing)}"
        )
    return standing


def new_fence(request_id: str, moved_to: str) -> Fence:
    """Return a fence as of now."""
    return Fence(
        request_id=request_id, moved_to=moved_to, at=datetime.now(UTC).replace(microsecond=0)
    )


def _may_replace(standing: Fence, instead_of: str | None) -> bool:
    return standing.state is FenceState.STOPPING and standing.request_id == instead_of


def _check_raised_here(root: UPath, standing: Fence) -> None:
    if standing.control is not None and not same_folder(root, standing.control):
        raise StopError(
            f"{root}: {standing}, but that fence was raised in {standing.control}, so {root} is a "
            f"copy: give the control location that the job writes"
        )


def _write(root: UPath, fence: Fence) -> None:
    values = {
        "request_id": fence.request_id,
        "moved_to": fence.moved_to,
        "at": fence.at.isoformat(),
        "state": fence.state,
        "control": folder_id(root),
    }
    write_object(root / FENCE_FILE, values)
    found = read_fence(root)
    if found != fence:
        raise StopError(f"{root}: another run has just raised its fence here: {found}")


def _next_step(root: UPath, standing: Fence) -> str:
    if standing.state is FenceState.STOPPING:
        return (
            f"wait for that run, or end it; `airflow-mm2-offsets fence lift {root} --request-id "
            f"'{standing.request_id}'` forgets its stop"
        )
    return (
        f"stop the job that it started first; then `airflow-mm2-offsets fence lift {root} "
        f"--request-id '{standing.request_id}'` lets a job run here again"
    )
