"""The last look before a job is started on the target: what was read earlier must still hold."""

import json
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
from airflow_mm2_offsets.storage import read_text, write_text

_STEP = (
    "the job has run since its positions were read, so nothing was started: stop it with a new run "
    "of the failover; where it runs no more and its fence stands, clear the task that reads the "
    "positions, with all after it"
)


def check_unmoved(found: Checkpoint, positions: Positions, pending: Positions | None) -> None:
    """Raise unless a checkpoint still stands where it was read.

    Args:
        found: The checkpoint now.
        positions: Where it stood.
        pending: Where the batch ended that was begun and not committed then, if any.

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
                f"was read; {_STEP}"
            )


def _text(positions: Positions | None) -> str:
    return format_offsets(positions) if positions else "none"


def confirm_handover(
    *, control: UPath | None, checkpoint: UPath, request_id: str, read: Mapping[str, Any]
) -> Checkpoint:
    """Raise unless the source job is where it was read to be, and is kept there.

    Call it directly before the target job is started.

    Args:
        control: The job's control location; None for a job without stop control, which could
            be running again: only its checkpoint can be compared.
        checkpoint: The job's checkpoint location.
        request_id: The stop whose fence must stand.
        read: What ``ReadSparkCheckpointOperator`` returned.

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
        _check_fence(control, request_id)
        _check_driver(control, read)
        _check_originals(control, checkpoint, request_id)
    found = read_checkpoint(checkpoint)
    for field in ("query_id", "committed_batch", "pending_batch"):
        if (now := getattr(found, field)) != read[field]:
            raise HandoverError(
                f"{found.location}: its {field} is {now} now, and was {read[field]} when it was "
                f"read; {_STEP}"
            )
    pending = parse_offsets(read["pending"]) if read["pending"] else None
    check_unmoved(found, parse_offsets(read["positions"]), pending)
    return found


def _check_fence(control: UPath, request_id: str) -> None:
    fence = read_fence(control)
    if fence is None:
        raise HandoverError(
            f"{control}: the fence of {request_id!r} does not stand any more, so the job may run "
            f"again; nothing was started. Stop it with a new run of the failover"
        )
    if fence.request_id != request_id:
        raise HandoverError(
            f"{control}: the fence is not of {request_id!r}: {fence}; nothing was started, for a "
            f"job is moved once: let that run finish, or go back from where it moved the job to"
        )


def _check_driver(control: UPath, read: Mapping[str, Any]) -> None:
    driver = read_driver(control)
    now = (driver.run_id, driver.heartbeat) if driver else (None, None)
    then = (read["driver_run_id"], read["heartbeat"])
    if now != then:
        raise HandoverError(
            f"{control}: run {now[0]} of the query is at heartbeat {now[1]} now, and run {then[0]} "
            f"was at {then[1]} when the positions were read; {_STEP}"
        )


def _check_originals(control: UPath, checkpoint: UPath, request_id: str) -> None:
    """Raise where a location is not the one for which the stop was proved."""
    driver = read_driver(control)
    if driver is None:
        return
    locations = JobLocations(control=control, checkpoint=checkpoint)
    answer = read_acknowledgement(control, request_id)
    if problems := find_unproved(locations, driver, answer):
        raise HandoverError(f"nothing was started: {'; '.join(problems)}")


def read_claim(target_checkpoint: UPath) -> str | None:
    """Return the run that has started, or is to start, a job with a checkpoint location.

    Raises:
        HandoverError: The claim can't be read.
    """
    path = _claim(target_checkpoint)
    text = read_text(path, HandoverError)
    if not text:
        return None
    try:
        return str(json.loads(text)["request_id"])
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(
            f"{path} holds {text[:100]!r}; delete it if no run starts a job there"
        ) from error


def claim_target(target_checkpoint: UPath, request_id: str) -> None:
    """Note beside a target's checkpoint location which run starts a job there.

    Raises:
        HandoverError: Another run has claimed it, or the claim can't be written.
    """
    path = _claim(target_checkpoint)
    claimed = read_claim(target_checkpoint)
    if claimed is None:
        write_text(path, json.dumps({"schema_version": 1, "request_id": request_id}), HandoverError)
        claimed = read_claim(target_checkpoint)
    if claimed != request_id:
        raise HandoverError(
            f"{target_checkpoint} is the target of the run {claimed!r} already, and two jobs can't "
            f"share it: give another target folder; or delete {path}, if that run has started none"
        )


def _claim(target_checkpoint: UPath) -> UPath:
    return target_checkpoint.with_name(f"{target_checkpoint.name}.claim.json")
