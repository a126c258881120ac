"""The last look before a job is started on the target: what was read earlier must still hold."""

from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.spark.originals import JobLocations, find_unproved

_NEW_RUN = "nothing was started on the target. Stop the job with a new run of the failover"


def next_step(earlier_run: str | None) -> str:
    """Return what was started on the target, and what to do, where the job has left its place.

    Args:
        earlier_run: The DAG run that an earlier try of the hand-over may have triggered; None where
            there was no such try.
    """
    if earlier_run is None:
        return _NEW_RUN
    return (
        f"{describe_start(earlier_run)}. See whether that run exists: if so, let only one of the "
        f"two jobs run; if not, lift the fence (`airflow-mm2-offsets fence lift`) and start a new "
        f"run of the failover with another target folder"
    )


def describe_start(earlier_run: str | None) -> str:
    """Return what may have been started on the target, for a message of a try that fails."""
    if earlier_run is None:
        return "nothing was started on the target"
    return f"an earlier try handed the job over and may have triggered {earlier_run}"


def check_unmoved(
    found: Checkpoint,
    positions: Positions,
    pending: Positions | None,
    *,
    earlier_run: str | None = None,
) -> None:
    """Raise unless a checkpoint still stands where it was read.

    Args:
        found: The checkpoint now.
        positions: Where it stood.
        pending: Where the batch ended that was begun and not committed then, if any.
        earlier_run: See ``next_step``.

    Raises:
        HandoverError: A batch was begun or committed since; both values are named.
    """
    for what, now, then in (
        ("positions", found.positions, positions),
        ("pending batch", found.pending, pending),
    ):
        if now != then:
            raise HandoverError(
                f"{found.location}: its {what} is {_text(now)} now, and was {_text(then)} when it "
                f"was read: the job has run since; {next_step(earlier_run)}"
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
) -> Checkpoint:
    """Raise unless the source job is where it was read to be, and is kept there.

    Call it directly before the target job is started.

    Args:
        control: The job's control location; None for a job without stop control, which could
            be running again: only its checkpoint can be compared.
        checkpoint: The job's checkpoint location.
        request_id: The stop whose fence must stand.
        read: What ``ReadSparkCheckpointOperator`` returned.
        earlier_run: See ``next_step``.

    Returns:
        The checkpoint now.

    Raises:
        HandoverError: The fence is gone or another run's, a driver has run, or a batch was begun or
            committed, or a location is another than the stop was proved for; place and both values
            are named.
        StopError: The control location can't be read.
        CheckpointError: The checkpoint can't be read.
    """
    if control is not None:
        _check_fence(control, request_id, earlier_run)
        _check_driver(control, read, earlier_run)
        _check_originals(control, checkpoint, request_id)
    found = read_checkpoint(checkpoint)
    _check_checkpoint(found, read, earlier_run)
    return found


def _check_checkpoint(found: Checkpoint, read: Mapping[str, Any], earlier_run: str | None) -> None:
    for field in ("query_id", "committed_batch", "pending_batch"):
        if (now := getattr(found, field)) != read[field]:
            raise HandoverError(
                f"{found.location}: its {field} is {now} now, and was {read[field]} when it was "
                f"read: the job has run since; {next_step(earlier_run)}"
            )
    pending = parse_offsets(read["pending"]) if read["pending"] else None
    check_unmoved(found, parse_offsets(read["positions"]), pending, earlier_run=earlier_run)


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


def _check_driver(control: UPath, read: Mapping[str, Any], earlier_run: str | None) -> None:
    driver = read_driver(control)
    now = (driver.run_id, driver.heartbeat) if driver else (None, None)
    then = (read["driver_run_id"], read["heartbeat"])
    if now != then:
        raise HandoverError(
            f"{control}: run {now[0]} of the query is at heartbeat {now[1]} now, and run {then[0]} "
            f"was at {then[1]} when the positions were read: the job has run since; "
            f"{next_step(earlier_run)}"
        )


def _check_originals(control: UPath, checkpoint: UPath, request_id: str) -> None:
    """Raise where a location is not the one for which the stop was proved."""
    driver = read_driver(control)
    if driver is None:
        return
    locations = JobLocations(control=control, checkpoint=checkpoint)
    answer = read_acknowledgement(control, request_id)
    if problems := find_unproved(locations, driver, answer):
        raise HandoverError(f"nothing was started on the target: {'; '.join(problems)}")
