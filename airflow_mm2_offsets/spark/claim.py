"""The claim on a target's checkpoint location: at most one run starts a job there.

The check reads it, and the hand-over writes it.
"""

import json
from hashlib import sha256

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.locations import beside
from airflow_mm2_offsets.storage import (
    list_directory,
    open_location,
    read_text,
    remove_file,
    write_text,
)


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
    """Claim a target's checkpoint location for a run, by a file beside it.

    Each run first writes its file, then lists all files. Of two runs, the one that lists last sees
    the other's file, if the storage lists all files that were written before: local disks, HDFS,
    S3, GCS and Azure do. Two runs that write at the same moment may both fail; either task can be
    cleared. NFS may cache listings: there two runs within seconds may both continue.

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
    """Return the file of each claim, by its run."""
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
    return beside(target_checkpoint, "claims")


def _claim_name(request_id: str) -> str:
    # Not every storage accepts all characters of a run's id in a file name.
    return f"{sha256(request_id.encode()).hexdigest()[:32]}.json"
