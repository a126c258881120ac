"""The last look before a job is started on the target: what was read earlier must still hold."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.spark.originals import JobLocations, find_unproved
from airflow_mm2_offsets.storage import (
    list_directory,
    open_location,
    read_text,
    remove_file,
    write_text,
)

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


def read_claim(target_checkpoint: UPath) -> str | None:
    """Return the failover that has started, or is to start, a job at a checkpoint location.

    Raises:
        HandoverError: A claim can't be read.
    """
    return next(iter(_read_claims(target_checkpoint)), None)


def has_claimed(target_checkpoint: UPath, request_id: str) -> bool:
    """Tell whether a failover has claimed a checkpoint location.

    Raises:
        HandoverError: A claim can't be read.
    """
    return request_id in _read_claims(target_checkpoint)


def claim_target(target_checkpoint: UPath, request_id: str) -> None:
    """Note beside a target's checkpoint location which run starts a job there; at most one does.

    Each run writes a file of its own first and lists all of them afterwards. Of two runs, the one
    that lists last sees the other's file, on every storage whose listings show what was written
    before: local disks, HDFS, S3, GCS and Azure do. Two runs that write in the same moment may
    both give way; either can be cleared. What remains: folders that several machines mount and
    whose listings they cache (NFS), where two runs in the same seconds may both go on.

    Raises:
        HandoverError: Another run has claimed it, or the claim can't be written.
    """
    claims = _read_claims(target_checkpoint)
    own = _claims_folder(target_checkpoint) / _claim_name(request_id)
    is_new = not claims
    if is_new:
        write_text(own, json.dumps({"schema_version": 1, "request_id": request_id}), HandoverError)
        claims = _read_claims(target_checkpoint)
    others = {claimed: path for claimed, path in claims.items() if claimed != request_id}
    if not others:
        return
    if is_new:
        remove_file(own, HandoverError)
    claimed, path = next(iter(others.items()))
    raise HandoverError(
        f"{target_checkpoint} is the target of the run {claimed!r} already, and two jobs can't "
        f"share it: give another target folder; or delete {path}, if that run has started no "
        f"job there"
    )


def _read_claims(target_checkpoint: UPath) -> dict[str, UPath]:
    """Return the files of all claims by the runs that they are of."""
    folder = open_location(_claims_folder(target_checkpoint), HandoverError)
    names = (name for name in list_directory(folder, HandoverError) if name.endswith(".json"))
    paths = [folder / name for name in sorted(names)]
    texts = [(path, read_text(path, HandoverError)) for path in paths]
    return {_claimed_by(path, text): path for path, text in texts if text is not None}


def _claimed_by(path: UPath, text: str) -> str:
    try:
        return str(json.loads(text)["request_id"])
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(
            f"{path} holds {text[:100]!r}; delete it if no run starts a job there"
        ) from error


def _claims_folder(target_checkpoint: UPath) -> UPath:
    return target_checkpoint.with_name(f"{target_checkpoint.name}.claims")


def _claim_name(request_id: str) -> str:
    # A run's id holds characters that not every storage takes in a name.
    return f"{sha256(request_id.encode()).hexdigest()[:32]}.json"
