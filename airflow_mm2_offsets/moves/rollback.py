"""Takes a move back before its job is handed over: the job may run where it was.

Each step may be repeated: a roll-back that was cut off goes on where it was. The journal decides
between a roll-back and a hand-over at the same moment: one of them is first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, StopError
from airflow_mm2_offsets.moves.folders import is_beating
from airflow_mm2_offsets.moves.jobs import settle_command
from airflow_mm2_offsets.moves.journal import Event, State
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.moves.status import status_of
from airflow_mm2_offsets.moves.stopping import Withdrawal, withdraw
from airflow_mm2_offsets.spark.control import read_driver


class JobNow(StrEnum):
    """What has become of the job."""

    UNTOUCHED = "untouched"
    """This move has not stopped it."""
    RUNS = "runs"
    """Its stop was withdrawn in time, or somebody has started it since."""
    STOPPED = "stopped"
    """It has stopped, and may run where it was."""
    UNKNOWN = "unknown"
    """This move has begun to end it by force, and has not seen its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What a roll-back has done; a repeated one says the same."""

    move: Move
    job: JobNow
    sentence: str

    @property
    def has_undone(self) -> bool:
        """Whether there was anything to take back."""
        return self.job is not JobNow.UNTOUCHED


def roll_back(mover: Mover, restart: Callable[[Move], object] | None = None) -> Undone:
    """Withdraw a stop that has no proof, or let a job that has stopped run where it was.

    Args:
        mover: The run's.
        restart: Starts a job that has stopped; again after a kill. The job is this run's until it
            has returned, so that no other run moves the job meanwhile.

    Raises:
        HandoverError: The job is handed over; or the journal can't be read or written.
        StopError: The job is stopping at this moment, or a control location can't be used.
    """
    move = mover.find()
    last = move.last
    if last is None or not move.number or last.move != move.number:
        other = f" {last}." if last is not None and move.number else ""
        return _undone(move, JobNow.UNTOUCHED, f"There was nothing to undo.{other}")
    if move.entry(Event.HAND_OVER) is not None:
        raise HandoverError(
            f"nothing was rolled back: job {move.job.name} was handed over to {move.there}. See "
            f"whether it runs there. If it does, let this run finish (clear wait_started). If it "
            f"must not, stop it there, and say where it runs: "
            f"{settle_command(move.job.journal, move.here.folder)}"
        )
    # Also after a withdrawal that was cut off: the job may have stopped beside it.
    if last.state is State.STOPPING or last.event is Event.WITHDRAW:
        if withdraw(mover, move.request_id) is Withdrawal.WITHDRAWN:
            return _undone(mover.find())
        move = _prove_announced(mover, mover.find())
    if move.last is not None and move.last.state is State.STOPPED:
        move = mover.record(move, Event.RETURN)
    if _was_started_since(mover, move):
        move = mover.record(move, Event.ARRIVE)
        return _undone(move, JobNow.RUNS, f"The job was started at {move.here} since.")
    if restart is not None and move.last is not None and move.last.state is State.STARTING:
        restart(move)
    return _undone(mover.record(move, Event.ARRIVE))


_JOBS: Final = {
    "withdrawn": JobNow.RUNS,
    "unclear": JobNow.UNKNOWN,
    "given up": JobNow.STOPPED,
}
"""What a move's state says of its job."""


def _undone(move: Move, job: JobNow | None = None, sentence: str | None = None) -> Undone:
    status = status_of(move)
    return Undone(move=move, job=job or _JOBS[status.state], sentence=sentence or status.next)


def _prove_announced(mover: Mover, move: Move) -> Move:
    """Record that a job which announced its stop has answered.

    Raises:
        StopError: It has not answered yet: a later try finds the answer.
    """
    control = mover.open_path(move.here.control)
    driver = read_driver(control)
    if driver is not None and not driver.ended and is_beating(control, driver):
        raise StopError(
            f"job {move.job.name} is stopping at this moment: clear this task once it has stopped",
            file=str(control),
        )
    run_id = driver and driver.run_id
    return mover.record(move, Event.PROVE, proof="ended", driver_run_id=run_id)


def _was_started_since(mover: Mover, move: Move) -> bool:
    """Tell whether a driver has begun since the job had stopped; none where its storage is lost."""
    proof = move.facts(Event.PROVE)
    if not move.job.is_controlled or "driver_run_id" not in proof:
        return False
    try:
        driver = read_driver(mover.open_path(move.here.control))
    except (ConfigurationError, StopError):
        if not mover.policy.source_may_be_lost:
            raise
        return False
    return driver is not None and driver.run_id != proof["driver_run_id"]
