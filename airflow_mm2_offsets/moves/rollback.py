"""Takes a move back before its job is handed over: the job may run where it was.

Each step may be repeated: a roll-back that was cut off goes on where it was. The journal decides
between a roll-back and a hand-over at the same moment: one of them is first.
"""

from dataclasses import dataclass
from enum import StrEnum

from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.moves.journal import Event, State
from airflow_mm2_offsets.moves.move import Move, Mover
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


def roll_back(mover: Mover) -> Undone:
    """Withdraw a stop that has no proof, or let a job that has stopped run where it was.

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
            f"must not, stop it there, and say where it runs: `airflow-mm2-offsets jobs settle "
            f"{move.job.name} --at {move.here.cluster}`"
        )
    if last.state is State.STOPPING:
        if withdraw(mover) is Withdrawal.WITHDRAWN:
            return _withdrawn(mover.find())
        move = _prove_announced(mover)
    if move.last is not None and move.last.state is State.STOPPED:
        move = mover.record(Event.RETURN)
    if move.entry(Event.RETURN) is None:
        return _withdrawn(move)
    move = mover.record(Event.ARRIVE)
    if _was_started_since(mover, move):
        return _undone(move, JobNow.RUNS, f"The job was started at {move.here} since.")
    return _undone(
        move,
        JobNow.STOPPED,
        f"The job has stopped, and may run at {move.here} again; it continues where it stopped.",
    )


def _withdrawn(move: Move) -> Undone:
    return _undone(move, JobNow.RUNS, "The stop was withdrawn before the job had stopped.")


def _undone(move: Move, job: JobNow, sentence: str) -> Undone:
    return Undone(move=move, job=job, sentence=sentence)


def _prove_announced(mover: Mover) -> Move:
    """Record that a job which announced its stop has answered.

    Raises:
        StopError: It has not answered yet: a later try finds the answer.
    """
    move = mover.find()
    control = mover.open_path(move.here.control)
    driver = read_driver(control)
    if driver is not None and not driver.ended:
        raise StopError(
            f"job {move.job.name} is stopping at this moment: clear this task once it has stopped",
            file=str(control),
        )
    run_id = driver and driver.run_id
    return mover.record(Event.PROVE, proof="ended", driver_run_id=run_id)


def _was_started_since(mover: Mover, move: Move) -> bool:
    """Tell whether a driver has begun since the job had stopped."""
    proof = move.facts(Event.PROVE)
    if not move.job.is_controlled or "driver_run_id" not in proof:
        return False
    driver = read_driver(mover.open_path(move.here.control))
    return driver is not None and driver.run_id != proof["driver_run_id"]
