"""The fence: ``fence.json`` in a job's control location says that the job was moved away.

While it stands, no job runs with that control location: ``StopControl`` refuses to start, and stops
a job that runs. The stop raises the fence before it asks the job. So a driver that the cluster
manager restarts in between does not run either. The hand-over marks the fence as moved before it
starts the target job. The fence stays after the failover until a user lifts it. A stop without a
proof is withdrawn together with its fence (``stopping.withdraw_request``).
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from upath import UPath

from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.locations import folder_id, same_folder
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.spark.control_files import field_of, read_object, write_object
from airflow_mm2_offsets.spark.rollback_mark import mark_path, read_mark, rolled_back_error
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
    """The control location that it was raised in, by ``folder_id``; a copy's differs."""
    plan: str | None = field(default=None, compare=False)
    """The file of the plan that the job was moved by: the way home begins with it."""

    def __str__(self) -> str:
        """Return a sentence for messages."""
        verb = "was moved" if self.state is FenceState.MOVED else "is being moved"
        destination = f" to {self.moved_to}" if self.moved_to else ""
        return f"the job {verb}{destination} by {self.request_id!r}, since {self.at.isoformat()}"


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
        plan=field_of(values, "plan", str | None, root),
    )


def raise_fence(location: UPath | str, fence: Fence, *, instead_of: str | None = None) -> Fence:
    """Raise a fence, and return the one that stands; the same run's earlier fence is kept.

    Storage has no locks. So the file is read again after it was written: of two runs that raise
    a fence at the same moment, at most the later one continues. ``instead_of`` is the stop whose
    fence this one may replace while the job is not moved.

    Raises:
        StopError: Another run's fence stands, or the location can't be written.
    """
    root = open_location(location, StopError)
    standing = read_fence(root)
    if standing is not None and standing.request_id == fence.request_id:
        _check_raised_here(root, standing)
        return standing
    if standing is not None:
        is_moved = standing.state is FenceState.MOVED
        if is_moved or standing.request_id != instead_of:
            raise StopError(f"{root}: {standing}; {_next_step(root, standing)}")
    return _write(root, fence)


def mark_moved(
    location: UPath | str, request_id: str, moved_to: str, *, plan: str | None = None
) -> Fence:
    """Mark the job as handed over; from now on no other run takes over the fence.

    Call it before the target job is started. A second call by the same run changes nothing. A
    roll-back of the run that has begun wins, and the fence is lifted; see ``rollback_mark``.
    ``plan`` is the file of the plan that the target job is started by.

    Raises:
        StopError: The run's fence was lifted or replaced, the run has moved the job elsewhere
            before, or the location can't be written.
        HandoverError: The run was rolled back.
    """
    root = open_location(location, StopError)
    standing = own_fence(root, request_id)
    is_first = standing.state is FenceState.STOPPING
    moved = _mark_moved(root, standing, without_login(moved_to), plan)
    mark = read_mark(mark_path(root, root, request_id), request_id)
    # A roll-back that is not decided yet gives way to an earlier call.
    if mark is not None and (is_first or mark.is_decided):
        remove_file(root / FENCE_FILE, StopError)
        raise rolled_back_error(root, mark)
    return moved


def _mark_moved(root: UPath, standing: Fence, moved_to: str, plan: str | None) -> Fence:
    if standing.state is FenceState.MOVED:
        if standing.moved_to != moved_to:
            raise StopError(f"{root}: {standing}, and not to {moved_to}; a job is moved once")
        return standing
    return _write(root, replace(standing, state=FenceState.MOVED, moved_to=moved_to, plan=plan))


def lift_fence(location: UPath | str, request_id: str) -> Fence:
    """Remove a run's fence, and return it: a job may run again with this control location.

    Raises:
        StopError: No fence stands, it is another run's, or the location can't be written.
    """
    root = open_location(location, StopError)
    standing = own_fence(root, request_id)
    remove_file(root / FENCE_FILE, StopError)
    return standing


def take_over_fence(location: UPath | str, standing: Fence, request_id: str) -> Fence:
    """Put a run's fence in place of that of a job which it brings home; it says the same.

    No fence is absent in between. A second call by the same run changes nothing.

    Raises:
        StopError: The fence is not ``standing`` any more, or the location can't be written.
    """
    root = open_location(location, StopError)
    now = read_fence(root)
    if now is None or now != standing:
        raise StopError(f"{root}: the fence has changed since it was read: {now or 'none stands'}")
    if now.request_id == request_id:
        return now
    return _write(root, replace(now, request_id=request_id))


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
        request_id=request_id,
        moved_to=without_login(moved_to),
        at=datetime.now(UTC).replace(microsecond=0),
    )


def _check_raised_here(root: UPath, standing: Fence) -> None:
    if standing.control is not None and not same_folder(root, standing.control):
        raise StopError(
            f"{root}: {standing}, but that fence was raised in {standing.control}, so {root} is a "
            f"copy: give the control location that the job writes"
        )


def _write(root: UPath, fence: Fence) -> Fence:
    values = {
        "request_id": fence.request_id,
        "moved_to": fence.moved_to,
        "at": fence.at.isoformat(),
        "state": fence.state,
        "control": folder_id(root),
        **({"plan": fence.plan} if fence.plan else {}),
    }
    write_object(root / FENCE_FILE, values)
    standing = read_fence(root)
    if standing != fence:
        raise StopError(f"{root}: another run has just raised its fence here: {standing}")
    return fence


def _next_step(root: UPath, standing: Fence) -> str:
    if standing.state is FenceState.STOPPING:
        return (
            f"wait for that run, or end it; `airflow-mm2-offsets fence lift {root} --request-id "
            f"'{standing.request_id}'` removes fence and request"
        )
    return (
        f"stop the job that it started first; then `airflow-mm2-offsets fence lift {root} "
        f"--request-id '{standing.request_id}'` lets a job run here again"
    )
