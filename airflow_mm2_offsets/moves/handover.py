"""Checks, directly before a job is started elsewhere, that it has not run since it was stopped.

Hours may pass between the stop and the hand-over, and somebody may have started the job again.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import CheckpointError, HandoverError
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.folders import JobFolders, find_unproved
from airflow_mm2_offsets.moves.journal import Event, FenceState
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import DRIVER, StopProof, read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.job_positions import JobPositions, parse_job_positions
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.spark.stop_proof import find_missing_proof
from airflow_mm2_offsets.storage import list_files

log = logging.getLogger(__name__)

STOP_AGAIN = "Clear the task that stops the job, with all after it; or start a new run"


def stopped_positions(move: Move) -> JobPositions:
    """Return where the job has stopped.

    Raises:
        HandoverError: The move has no proof that the job has stopped.
    """
    facts = move.facts(Event.PROVE)
    if not facts:
        raise HandoverError(
            f"job {move.job.name}: its journal holds no proof that {move.run!r} has stopped it; a "
            f"task that was marked as success by hand proves nothing. {STOP_AGAIN}"
        )
    return parse_job_positions(facts)


def handed_over_to(move: Move) -> Mapping[str, Any] | None:
    """Return what the hand-over says that has brought the job to where it is; None without one."""
    handed = [
        each
        for each in move.entries
        if each.event is Event.HAND_OVER and each.home == move.here.folder
    ]
    return handed[-1].facts if handed else None


def has_not_begun(move: Move, open_path: Callable[[str], UPath]) -> bool:
    """Tell whether no driver has begun where the job was handed over to.

    A driver writes its file before it looks at the fence a last time. So under a fence that says
    ``stopping`` this stays true.

    Raises:
        StopError: The control location can't be read.
        CheckpointError: The checkpoint can't be listed.
    """
    if not move.job.is_controlled or handed_over_to(move) is None:
        return False
    if read_driver(open_path(move.here.control)) is not None:
        return False
    return not list_files(open_path(move.here.checkpoint), CheckpointError)


def confirm_stopped(move: Move, open_path: Callable[[str], UPath]) -> None:
    """Raise unless the job is as its move has stopped it, at the positions that were read.

    Args:
        move: The move, with its proof in the journal.
        open_path: Makes a path of a location.

    Raises:
        HandoverError: The fence was opened, a driver has run, a batch was begun or committed, or a
            folder is not the one that the stop was proved for.
        StopError: The control location can't be read.
        CheckpointError: The checkpoint can't be read.
    """
    stopped_positions(move)
    facts = move.facts(Event.PROVE)
    home = move.here
    if facts["proof"] == StopProof.NOT_BEGUN:
        if not has_not_begun(move, open_path):
            raise HandoverError(f"{home}: the job has begun since. {_started(move)}. {STOP_AGAIN}")
        return
    lost = why_lost(open_path(home.checkpoint)) if move.policy.source_may_be_lost else None
    if move.job.is_controlled:
        is_asserted = facts["proof"] == StopProof.ASSERTED
        if is_asserted and (control_lost := why_lost(open_path(home.control), DRIVER)):
            log.warning("Not compared, by your word that no driver runs: %s", control_lost)
            return
        _check_control(move, open_path, facts)
    else:
        problem = find_missing_proof(
            facts, move.request_id, open_path(home.checkpoint), is_lost=lost is not None
        )
        if problem:
            raise HandoverError(f"{problem}. {_started(move)}. {STOP_AGAIN}")
    if lost:
        log.warning("The positions are not compared with the checkpoint: %s", lost)
        return
    _check_checkpoint(move, read_checkpoint(open_path(home.checkpoint)), facts)


def _check_control(move: Move, open_path: Callable[[str], UPath], facts: Mapping[str, Any]) -> None:
    may_be_lost = move.policy.source_may_be_lost
    folders = JobFolders.of(move.here, open_path, may_be_lost=may_be_lost)
    fence, driver = read_fence(folders.control), read_driver(folders.control)
    if fence is None or fence.state is FenceState.OPEN:
        raise HandoverError(
            f"{move.here}: the fence of {move.request_id!r} was opened, so the job may run again. "
            f"{_started(move)}. {STOP_AGAIN}"
        )
    now = (driver.run_id, driver.heartbeat) if driver else (None, None)
    then = facts["driver_run_id"], facts["heartbeat"]
    if now != then:
        raise HandoverError(
            f"{move.here}: run {now[0]} of the query is at heartbeat {now[1]} now, and run "
            f"{then[0]} was at {then[1]} when the job had stopped, so it has run since. "
            f"{_started(move)}. {STOP_AGAIN}"
        )
    answer = read_acknowledgement(folders.control, move.request_id)
    if answer is None:
        raise HandoverError(
            f"{move.here} holds no answer to the stop {move.request_id!r}. {_started(move)}. "
            f"{STOP_AGAIN}"
        )
    if driver is not None and (problems := find_unproved(folders, driver, answer)):
        raise HandoverError(f"{'; '.join(problems)}. {_started(move)}")


def _check_checkpoint(move: Move, now: Checkpoint, facts: Mapping[str, Any]) -> None:
    for field in ("query_id", "committed_batch", "pending_batch"):
        if (value := getattr(now, field)) != facts[field]:
            raise HandoverError(f"{_has_run(now, field, value, facts[field])}. {_started(move)}")
    try:
        check_unmoved(now, stopped_positions(move))
    except HandoverError as error:
        raise HandoverError(f"{error}. {_started(move)}. {STOP_AGAIN}") from error


def check_unmoved(now: Checkpoint, read: JobPositions) -> None:
    """Raise if a batch was begun or committed since a checkpoint was read.

    Raises:
        HandoverError: It has changed; both values are named.
    """
    for name, value, then in (
        ("positions", now.positions, read.positions),
        ("pending batch", now.pending, read.pending),
    ):
        if value != then:
            raise HandoverError(_has_run(now, name, _text(value), _text(then)))


def _has_run(checkpoint: Checkpoint, name: str, now: object, then: object) -> str:
    return (
        f"{checkpoint.location}: its {name} is {now} now, and was {then} when it was read: the job "
        f"has run since"
    )


def _started(move: Move) -> str:
    """Return what the move may have started, as a sentence without its full stop."""
    if move.entry(Event.HAND_OVER) is None:
        return "Nothing was started elsewhere"
    return f"The job was handed over to {move.there}, and may run there"


def _text(positions: Positions | None) -> str:
    return format_offsets(positions) if positions else "none"
