"""Checks, directly before a job is started on the target, that the source job has not moved.

The hand-over and translate operators call it.
"""

from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.claim import has_claimed
from airflow_mm2_offsets.spark.control import Driver, read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.spark.originals import JobLocations, find_unproved
from airflow_mm2_offsets.spark.rollback_mark import STOP_TASK
from airflow_mm2_offsets.spark.stop_proof import find_missing_proof

_NEW_RUN = "nothing was started on the target. Stop the job with a new run of the failover"


def next_step(earlier_run: str | None) -> str:
    """Return what was started on the target and what to do, for the error that the job has moved.

    Args:
        earlier_run: The DAG run that an earlier try of the hand-over may have triggered, if any.
    """
    if earlier_run is None:
        return _NEW_RUN
    return (
        f"{describe_start(earlier_run)}. See whether that run exists: if so, let only one of the "
        f"two jobs run; if not, lift the fence (`airflow-mm2-offsets fence lift`) and start a new "
        f"run of the failover with another target folder"
    )


def describe_start(earlier_run: str | None) -> str:
    """Return what may have been started on the target, for the error of a try that fails."""
    if earlier_run is None:
        return "nothing was started on the target"
    return f"an earlier try handed the job over and may have triggered {earlier_run}"


def may_have_started(control: UPath | None, target_checkpoint: UPath, request_id: str) -> bool:
    """Tell whether an earlier try of a run's hand-over may have started the job on the target.

    The claim comes before the mark in the fence, and the mark before the start.

    Raises:
        HandoverError: A claim can't be read.
        StopError: The fence can't be read.
    """
    fence = read_fence(control) if control else None
    if fence is None or fence.request_id != request_id:
        return has_claimed(target_checkpoint, request_id)
    is_moved = fence.state is FenceState.MOVED
    return is_moved or has_claimed(target_checkpoint, request_id, without_fence=True)


def check_unmoved(
    checkpoint: Checkpoint,
    positions: Positions,
    pending: Positions | None,
    *,
    earlier_run: str | None = None,
) -> None:
    """Raise if a batch was begun or committed since a checkpoint was read with these positions.

    Raises:
        HandoverError: It has changed; both values are named.
    """
    for name, now, then in (
        ("positions", checkpoint.positions, positions),
        ("pending batch", checkpoint.pending, pending),
    ):
        if now != then:
            raise HandoverError(
                f"{checkpoint.location}: its {name} is {_text(now)} now, and was {_text(then)} "
                f"when it was read: the job has run since; {next_step(earlier_run)}"
            )


def _text(positions: Positions | None) -> str:
    return format_offsets(positions) if positions else "none"


def confirm_handover(
    *,
    control: UPath | None,
    checkpoint: UPath,
    request_id: str,
    read: Mapping[str, Any],
    earlier_run: str | None = None,
    checkpoint_is_lost: bool = False,
    stopped: object = None,
    is_lost: bool = False,
) -> Checkpoint | None:
    """Raise unless the source job is stopped and fenced, at the positions that were read.

    Call it directly before the target job is started. It returns the checkpoint; None if that
    ``checkpoint_is_lost``.

    Args:
        control: The job's control location; None: the job has no stop control.
        checkpoint: The job's checkpoint location.
        request_id: The stop whose fence must stand.
        read: What ``ReadSparkCheckpointOperator`` returned.
        earlier_run: See ``next_step``.
        checkpoint_is_lost: Compare the control location alone.
        stopped: What ``StopSparkStreamingOperator`` returned: the proof where ``control`` is None.
        is_lost: Whether the job's folder can't be reached; see ``find_missing_proof``.

    Raises:
        HandoverError: The fence is gone or another run's, no stop of this run is proved, a driver
            has run, a batch was begun or committed, or a location is not the one that the stop was
            proved for.
        StopError: The control location can't be read.
        CheckpointError: The checkpoint can't be read.
    """
    if not isinstance(read, Mapping):
        raise HandoverError(
            f"{checkpoint}: what read_positions returned is {read!r}, so nothing can be compared "
            f"with it: {describe_start(earlier_run)}. Clear read_positions with all after it"
        )
    if control is not None:
        locations = JobLocations(
            control=control, checkpoint=checkpoint, checkpoint_is_lost=checkpoint_is_lost
        )
        _check_fence(control, request_id, earlier_run)
        _check_control(locations, request_id, read, earlier_run)
    elif problem := find_missing_proof(
        stopped, request_id, checkpoint, is_lost=is_lost or checkpoint_is_lost
    ):
        raise HandoverError(_unproved(problem, earlier_run))
    if checkpoint_is_lost:
        return None
    current = read_checkpoint(checkpoint)
    _check_checkpoint(current, read, earlier_run)
    return current


def _check_control(
    locations: JobLocations, request_id: str, read: Mapping[str, Any], earlier_run: str | None
) -> None:
    control, driver = locations.control, read_driver(locations.control)
    _check_driver(control, driver, read, earlier_run)
    answer = read_acknowledgement(control, request_id)
    if answer is None:
        # The stop step writes an answer in place of a driver that is gone.
        problem = f"{control} holds no proof that the stop {request_id!r} was answered"
        raise HandoverError(_unproved(problem, earlier_run))
    if driver is not None and (problems := find_unproved(locations, driver, answer)):
        raise HandoverError(f"nothing was started on the target: {'; '.join(problems)}")


def _unproved(problem: str, earlier_run: str | None) -> str:
    return (
        f"{problem}: {describe_start(earlier_run)}. Clear {STOP_TASK} with all after it, and let "
        f"it end by itself; or start a new run of the failover"
    )


def _check_checkpoint(now: Checkpoint, read: Mapping[str, Any], earlier_run: str | None) -> None:
    for field in ("query_id", "committed_batch", "pending_batch"):
        if (value := getattr(now, field)) != read[field]:
            raise HandoverError(
                f"{now.location}: its {field} is {value} now, and was {read[field]} when it was "
                f"read: the job has run since; {next_step(earlier_run)}"
            )
    pending = parse_offsets(read["pending"]) if read["pending"] else None
    check_unmoved(now, parse_offsets(read["positions"]), pending, earlier_run=earlier_run)


def _check_fence(control: UPath, request_id: str, earlier_run: str | None) -> None:
    fence = read_fence(control)
    if fence is None:
        raise HandoverError(
            f"{control}: the fence of {request_id!r} was lifted, so the job may run again; "
            f"{next_step(earlier_run)}"
        )
    if fence.request_id != request_id:
        raise HandoverError(
            f"{control}: the fence is not of {request_id!r}: {fence}, and a job is moved once; "
            f"{describe_start(earlier_run)}. Let that run finish, or fail back from where it "
            f"moved the job to"
        )


def _check_driver(
    control: UPath, driver: Driver | None, read: Mapping[str, Any], earlier_run: str | None
) -> None:
    now = (driver.run_id, driver.heartbeat) if driver else (None, None)
    then = (read["driver_run_id"], read["heartbeat"])
    if now != then:
        raise HandoverError(
            f"{control}: run {now[0]} of the query is at heartbeat {now[1]} now, and run {then[0]} "
            f"was at {then[1]} when the positions were read: the job has run since; "
            f"{next_step(earlier_run)}"
        )
