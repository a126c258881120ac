"""The handshake of a stop: what the run writes for the driver, and what it reads of it.

The fence asks (``fences``). While a run waits for the answer it writes its sign of life, without
which the job runs on. A driver that is gone answers nothing: the run writes the answer in its
place. docs/stop-protocol.md describes the files.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.errors import LockedError, StopError
from airflow_mm2_offsets.locations import folder_id
from airflow_mm2_offsets.moves.fences import SCHEMA_VERSION, read_fence
from airflow_mm2_offsets.moves.journal import Event, FenceState, State
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.spark.control import (
    Driver,
    StopProof,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.control_files import read_object, write_object
from airflow_mm2_offsets.storage import open_location

ANSWER: Final = "stopped.json"
SIGN: Final = "stop-heartbeat.json"


class Withdrawal(StrEnum):
    """The result of withdrawing a stop."""

    WITHDRAWN = "withdrawn"
    """The fence is open again: the job runs on."""
    STOPPED = "stopped"
    """Too late: the job has stopped, or is stopping. It is still fenced."""


def keep_asking(control: UPath, request_id: str, interval: float) -> None:
    """Write that the run still waits for the answer: without this sign the job runs on.

    The next call comes after ``interval`` seconds.

    Raises:
        StopError: The location can't be written.
    """
    sign = {"request_id": request_id, "at": datetime.now(UTC).isoformat(), "interval": interval}
    _write(control / SIGN, sign)


def check_asked(control: UPath, request_id: str) -> None:
    """Raise unless the job is still asked to stop by this stop.

    Raises:
        StopError: The stop was withdrawn or taken over, or the location can't be read.
    """
    fence = read_fence(control)
    if fence is None or fence.state is FenceState.OPEN:
        raise StopError(
            f"the stop {request_id!r} was withdrawn, so the job runs on; clear the task to ask "
            f"again",
            file=str(control),
        )
    if fence.request_id != request_id:
        raise StopError(f"{fence}, and not by {request_id!r}", file=str(control))


def has_stopped(control: UPath, request_id: str) -> bool:
    """Tell whether the job carries out a stop, has answered it, or has stopped before.

    Raises:
        StopError: The location can't be read.
    """
    # The driver first: it announces a stop before the answer is written.
    driver, last = read_driver(control), read_last_acknowledgement(control)
    if driver is not None and driver.stopping == request_id:
        return True
    return last is not None and last.answers(request_id, driver)


def withdraw(mover: Mover, request_id: str) -> Withdrawal:
    """Take a stop back that has no proof: the job runs on.

    A job announces that it stops, then looks at the fence once more, and only then ends a query.
    This opens the fence, and then looks for the announcement. So one sees the other: the job runs
    on, or this finds it stopping, and asks again. A withdrawal that was cut off looks once more.

    Raises:
        LockedError: The run has begun a later move, or another run has the job.
        HandoverError: The journal can't be read or written.
        StopError: The control location can't be read or written.
    """
    move = mover.find()
    if move.request_id != request_id:
        raise LockedError(f"{request_id!r} is over: {move.request_id!r} stops the job now")
    last = move.last
    if last is None or last.move != move.number:
        is_home = last is None or last.state is State.HOME
        return Withdrawal.WITHDRAWN if is_home else Withdrawal.STOPPED
    if last.state is not State.STOPPING and last.event is not Event.WITHDRAW:
        return Withdrawal.WITHDRAWN if last.state is State.HOME else Withdrawal.STOPPED
    control = open_location(mover.open_path(move.here.control), StopError)
    if last.event is Event.WITHDRAW or not has_stopped(control, move.request_id):
        mover.record(move, Event.WITHDRAW)
        if not has_stopped(control, move.request_id):
            return Withdrawal.WITHDRAWN
        mover.ask()
    return Withdrawal.STOPPED


def answer_for(
    control: UPath, move: Move, proof: StopProof, *, checkpoint: UPath
) -> Mapping[str, Any]:
    """Write the answer to a stop in the place of a driver that is gone, or keep the driver's.

    A driver that was only paused finds it when it wakes, and runs no further batch. The answer
    names the folders that were proved to be the job's: the hand-over accepts no others.

    Raises:
        StopError: The stop was withdrawn, another driver has begun since the answer, no job has
            ever run with the location, or it can't be written.
    """
    check_asked(control, move.request_id)
    driver = read_driver(control)
    if driver is None:
        raise StopError("no job has ever run here; is it the job's folder?", file=str(control))
    last = read_last_acknowledgement(control)
    if last is not None and last.answers(move.request_id, driver):
        answer = read_object(control / ANSWER) or {}
    elif proof is StopProof.ACKNOWLEDGED:
        raise StopError(
            f"the driver {driver.application_id} has begun since {move.request_id!r} was answered; "
            f"clear the task to ask again",
            file=str(control),
        )
    else:
        answer = _answer_in_place(driver, proof)
    answer |= {
        "request_id": move.request_id,
        "proved_control": folder_id(control),
        "proved_checkpoint": folder_id(checkpoint),
    }
    _write(control / ANSWER, answer)
    return answer


def _answer_in_place(driver: Driver, proof: StopProof) -> dict[str, Any]:
    nothing = {"batch_id": None, "offsets": None, "clean": False, "error": None}
    queries = [{"query_id": query, "run_id": run} for query, run in driver.runs.items()]
    return {
        "application_id": driver.application_id,
        **nothing,
        "queries": [{**query, **nothing} for query in queries],
        "proof": proof,
        "heartbeat": driver.heartbeat,
    }


def _write(path: UPath, values: Mapping[str, Any]) -> None:
    write_object(path, {**values, "schema_version": SCHEMA_VERSION})
