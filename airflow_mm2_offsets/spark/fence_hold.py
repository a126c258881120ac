"""The hold on a fence: a run that marks its job as moved, or lifts its fence, writes its own file.

Storage has no compare-and-set, so a run that has read the fence may write over a newer one. Two
rules close that. A run that takes a fence over writes ``fence.json``, and then lists the holds. A
run that marks or lifts its fence writes its hold, and then reads ``fence.json``. So at least one
sees the other, and gives way. Of two runs that hold, at most one goes on: see ``claim.hold_alone``.

A hold has the fields of ``fence.json``. In state ``moved`` it says that its run has handed the job
over, whatever ``fence.json`` says. It stays until the fence is lifted. ``fence`` calls this.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.spark.claim import (
    RunFile,
    hold_alone,
    run_file,
    run_files,
    write_run_file,
)
from airflow_mm2_offsets.storage import open_location, remove_file

_FOLDER = "fence-holds"


def hold_fence(root: UPath, request_id: str, values: Mapping[str, Any]) -> None:
    """Hold a fence for a run; a hold that it has left behind is written over.

    Raises:
        StopError: Another run holds it, or the location can't be read or written.
    """
    with _stop_errors():
        is_new, other = hold_alone(root / _FOLDER, request_id, values)
        if other is None:
            if not is_new:
                write_run_file(root / _FOLDER, request_id, values)
            return
    # Two runs that were killed here must not wait for each other.
    if (own := find_hold(root, request_id)) is not None and not is_moved(own):
        drop_hold(root, request_id)
    raise held_error(root, other)


def write_hold(root: UPath, request_id: str, values: Mapping[str, Any]) -> None:
    """Write a run's hold over.

    Raises:
        StopError: The location can't be written.
    """
    with _stop_errors():
        write_run_file(root / _FOLDER, request_id, values)


def drop_hold(root: UPath, request_id: str) -> None:
    """Remove a run's hold, if it has one.

    Raises:
        StopError: The location can't be written.
    """
    remove_file(run_file(root / _FOLDER, request_id), StopError)


def find_hold(root: UPath, request_id: str) -> RunFile | None:
    """Return a run's hold; None if it has none.

    Raises:
        StopError: The location can't be read.
    """
    return _holds(root).get(request_id)


def other_holds(location: UPath | str, request_id: str | None = None) -> list[RunFile]:
    """Return the holds of all other runs than the given one.

    Raises:
        StopError: The location can't be read.
    """
    holds = _holds(open_location(location, StopError)).values()
    return [hold for hold in holds if hold.request_id != request_id]


def is_moved(hold: RunFile) -> bool:
    """Tell whether a hold says that its run has handed the job over."""
    return hold.values.get("state") == "moved"


def held_error(root: UPath, hold: RunFile) -> StopError:
    """Return the error of a run that finds another run's hold."""
    return StopError(f"{root}: {describe_hold(root, hold)}")


def describe_hold(root: UPath | str, hold: RunFile) -> str:
    """Return a sentence: who holds the fence, and what to do."""
    command = f"`airflow-mm2-offsets fence lift {root} --request-id '{hold.request_id}'`"
    if is_moved(hold):
        return (
            f"the run {hold.request_id!r} has moved the job to {hold.values.get('moved_to')}: stop "
            f"the job that it started first; then {command} lets a job run here again"
        )
    return (
        f"the run {hold.request_id!r} is marking the job as moved, or lifting its fence: wait for "
        f"that run and clear this task; if that run has ended, {command} removes what it has left"
    )


def _holds(root: UPath) -> dict[str, RunFile]:
    with _stop_errors():
        return run_files(root / _FOLDER)


@contextmanager
def _stop_errors() -> Iterator[None]:
    try:
        yield
    except HandoverError as cause:
        error = StopError(str(cause))
        error.fields, error.retryable = cause.fields, cause.retryable
        raise error from cause
