"""The fence: ``fence.json`` in a job's control location says that the job was moved away.

While it stands, no job runs with that control location: ``StopControl`` refuses to start, and stops
a job that runs. The stop raises the fence before it asks the job. So a driver that the cluster
manager restarts in between does not run either. The hand-over marks the fence as moved before it
starts the target job. The fence stays after the failover until a user lifts it. A stop without a
proof is withdrawn together with its fence (``stopping.withdraw_request``). ``fence_hold`` says how
a run that takes the fence over excludes one that marks or lifts it.
"""

from dataclasses import replace
from datetime import UTC, datetime

from upath import UPath

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.spark.control_files import write_object
from airflow_mm2_offsets.spark.fence_file import (
    FENCE_FILE,
    Fence,
    FenceState,
    fence_values,
    parse_fence,
    read_fence_file,
)
from airflow_mm2_offsets.spark.fence_hold import (
    drop_hold,
    find_hold,
    held_error,
    hold_fence,
    is_moved,
    other_holds,
    write_hold,
)
from airflow_mm2_offsets.spark.rollback_mark import mark_path, read_mark, rolled_back_error
from airflow_mm2_offsets.storage import open_location, remove_file

__all__ = (
    "FENCE_FILE",
    "Fence",
    "FenceState",
    "lift_fence",
    "mark_moved",
    "new_fence",
    "own_fence",
    "raise_fence",
    "read_fence",
    "take_over_fence",
)


def read_fence(location: UPath | str) -> Fence | None:
    """Return the fence of a control location; None if no fence stands.

    A run that has handed the job over has the fence, even if another run has just written over it.

    Raises:
        StopError: The location can't be read, or the file is damaged.
    """
    root = open_location(location, StopError)
    standing = read_fence_file(root)
    if standing is None or standing.state is FenceState.MOVED:
        return standing
    moved = next((hold for hold in other_holds(root) if is_moved(hold)), None)
    return standing if moved is None else parse_fence(moved.values, root)


def raise_fence(location: UPath | str, fence: Fence, *, instead_of: str | None = None) -> Fence:
    """Raise a fence, and return the one that stands; the same run's earlier fence is kept.

    Of two runs that raise a fence at the same moment, at most the later one continues: each reads
    the file again after it was written. ``instead_of`` is the stop whose fence this one may replace
    while the job is not moved.

    Raises:
        StopError: Another run's fence stands, or the location can't be written.
    """
    root = open_location(location, StopError)
    standing = read_fence(root)
    if standing is not None and standing.request_id == fence.request_id:
        _check_raised_here(root, standing)
        _check_not_held(root, fence.request_id)
        return standing
    if standing is not None:
        has_left = standing.state is FenceState.MOVED
        if has_left or standing.request_id != instead_of:
            raise StopError(f"{root}: {standing}; {_next_step(root, standing)}")
    # A fence that was deleted by hand has left its hold: a job that runs again must not meet it.
    _check_not_held(root, fence.request_id)
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
    moved_to = without_login(moved_to)
    if not is_first and standing.moved_to != moved_to:
        raise StopError(f"{root}: {standing}, and not to {moved_to}; a job is moved once")
    moved = standing
    if is_first:
        _hold_own(root, standing)
        moved = replace(standing, state=FenceState.MOVED, moved_to=moved_to, plan=plan)
        write_hold(root, request_id, fence_values(root, moved))
    # An earlier call may have been killed here.
    if read_fence_file(root) != moved:
        _write(root, moved)
    mark = read_mark(mark_path(root, root, request_id), request_id)
    # A roll-back that is not decided yet gives way to an earlier call.
    if mark is not None and (is_first or mark.is_decided):
        remove_file(root / FENCE_FILE, StopError)
        drop_hold(root, request_id)
        raise rolled_back_error(root, mark)
    return moved


def _hold_own(root: UPath, standing: Fence) -> None:
    """Hold a run's fence, and then see that it still stands."""
    request_id = standing.request_id
    hold_fence(root, request_id, fence_values(root, standing))
    now = read_fence_file(root)
    if now is None or now.request_id != request_id:
        drop_hold(root, request_id)
        raise _not_own_error(root, now, request_id)


def lift_fence(location: UPath | str, request_id: str) -> Fence:
    """Remove a run's fence, and return it: a job may run again with this control location.

    So is a hold that the run has left; then another run's fence may stand, and is kept.

    Raises:
        StopError: No fence stands, it is another run's, another run holds it, or the location can't
            be written.
    """
    root = open_location(location, StopError)
    left = find_hold(root, request_id)
    standing = own_fence(root, request_id) if left is None else parse_fence(left.values, root)
    # From now on the hold says "moved" no more: a call that is killed leaves no job as moved.
    held = replace(standing, state=FenceState.STOPPING)
    if left is None:
        _hold_own(root, held)
    else:
        hold_fence(root, request_id, fence_values(root, held))
    now = read_fence_file(root)
    if now is not None and now.request_id == request_id:
        remove_file(root / FENCE_FILE, StopError)
    # The hold last: whoever takes the fence over until now gives way.
    drop_hold(root, request_id)
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
    taken = replace(now, request_id=request_id)
    others = other_holds(root, request_id)
    for hold in others:
        if not is_moved(hold):
            raise held_error(root, hold)
    write_hold(root, request_id, fence_values(root, taken))
    for hold in others:
        drop_hold(root, hold.request_id)
    return _write(root, taken)


def own_fence(location: UPath | str, request_id: str) -> Fence:
    """Return the fence that a run has raised.

    Raises:
        StopError: No fence stands, it is another run's, or the location can't be read.
    """
    root = open_location(location, StopError)
    standing = read_fence(root)
    if standing is None or standing.request_id != request_id:
        raise _not_own_error(root, standing, request_id)
    return standing


def _not_own_error(root: UPath, standing: Fence | None, request_id: str) -> StopError:
    if standing is None:
        return StopError(f"{root}: no fence stands, so {request_id!r} has none here")
    return StopError(
        f"{root}: the fence is not of {request_id!r}: {standing}; {_next_step(root, standing)}"
    )


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


def _check_not_held(root: UPath, request_id: str) -> None:
    for hold in other_holds(root, request_id):
        raise held_error(root, hold)


def _write(root: UPath, fence: Fence) -> Fence:
    """Write a fence, and then look for a run that has marked or lifts the one before."""
    write_object(root / FENCE_FILE, fence_values(root, fence))
    for hold in other_holds(root, fence.request_id):
        if is_moved(hold):
            # Drivers read this file alone, and a retry of this run must not find its own fence.
            write_object(root / FENCE_FILE, fence_values(root, parse_fence(hold.values, root)))
            drop_hold(root, fence.request_id)
    _check_not_held(root, fence.request_id)
    standing = read_fence_file(root)
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
