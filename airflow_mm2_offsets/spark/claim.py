"""The claim on a target's checkpoint location: at most one run starts a job there.

The check reads it, and the hand-over writes it. ``lock`` keeps its files in the same way.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.locations import beside
from airflow_mm2_offsets.spark.rollback_mark import mark_path, read_mark, rolled_back_error
from airflow_mm2_offsets.storage import (
    list_directory,
    open_location,
    read_text,
    remove_file,
    write_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """The file by which a run holds something."""

    path: UPath
    request_id: str
    values: Mapping[str, Any]


def read_claim(target_checkpoint: UPath) -> str | None:
    """Return the failover that has started, or is to start, a job at a checkpoint location.

    Raises:
        HandoverError: A claim can't be read.
    """
    return next(iter(run_files(_claims_folder(target_checkpoint))), None)


def read_cluster_claims(target_checkpoint: UPath) -> dict[str, str]:
    """Return the id of the cluster that a job at a checkpoint location reads, by each claim's file.

    A claim of an earlier release names no cluster, and is left out.

    Raises:
        HandoverError: A claim can't be read.
    """
    claims = run_files(_claims_folder(target_checkpoint)).values()
    named = {str(claim.path): claim.values.get("cluster_id") for claim in claims}
    return {file: str(cluster_id) for file, cluster_id in named.items() if cluster_id}


def has_claimed(target_checkpoint: UPath, request_id: str, *, without_fence: bool = False) -> bool:
    """Tell whether a failover has claimed a checkpoint location.

    ``without_fence`` asks for a claim that hands the job over by itself; see ``claim_target``.

    Raises:
        HandoverError: A claim can't be read.
    """
    claim = run_files(_claims_folder(target_checkpoint)).get(request_id)
    return claim is not None and (not without_fence or claim.values.get("has_fence") is False)


def claim_file(target_checkpoint: UPath, request_id: str) -> UPath:
    """Return the file of a run's claim, for messages."""
    return run_file(_claims_folder(target_checkpoint), request_id)


def claim_target(
    target_checkpoint: UPath,
    request_id: str,
    *,
    has_fence: bool = True,
    cluster_id: str | None = None,
) -> None:
    """Claim a target's checkpoint location for a run, by a file beside it.

    A roll-back of the run that has begun wins, and the claim is dropped; see ``rollback_mark``.
    Without ``has_fence`` no fence can be marked as moved, so the claim says that it is the point of
    no return: a fence that comes back with its storage does not know. ``cluster_id`` is the cluster
    that the job reads there: whoever reads that checkpoint later compares it.

    Raises:
        HandoverError: Another run has claimed it, the run was rolled back, or the claim can't be
            written.
    """
    folder = _claims_folder(target_checkpoint)
    values = {"has_fence": has_fence, "cluster_id": cluster_id}
    is_new, other = hold_alone(folder, request_id, values)
    if other is not None:
        raise HandoverError(
            f"{target_checkpoint} is the target of the run {other.request_id!r} already, and two "
            f"jobs can't share it: give another target folder; or delete {other.path}, if that run "
            f"has started no job there"
        )
    if not is_new and not has_fence:
        write_run_file(folder, request_id, values)
    mark = read_mark(mark_path(None, target_checkpoint, request_id), request_id)
    # A roll-back that is not decided yet gives way to an earlier call.
    if mark is not None and (is_new or mark.is_decided):
        drop_claim(target_checkpoint, request_id)
        raise rolled_back_error(target_checkpoint, mark)


def drop_claim(target_checkpoint: UPath, request_id: str) -> None:
    """Remove a run's claim, if it has one: it starts no job there.

    Raises:
        HandoverError: It can't be removed.
    """
    remove_file(claim_file(target_checkpoint, request_id), HandoverError)


def hold_alone(
    folder: UPath,
    request_id: str,
    values: Mapping[str, Any],
    *,
    is_passed: Callable[[RunFile], bool] = lambda _: False,
) -> tuple[bool, RunFile | None]:
    """Write a run's file into a folder, unless another run's is there that is not passed.

    Each run first writes its file, then lists all files. Of two runs, the one that lists last sees
    the other's file, if the storage lists all files that were written before: local disks, HDFS,
    S3, GCS and Azure do. Two runs that write at the same moment may both fail; either task can be
    cleared. NFS may cache listings: there two runs within seconds may both continue.

    Returns:
        Whether the file is new, and the other run's file: with one, this run has no new file.

    Raises:
        HandoverError: A file can't be read or written.
    """
    files = _files_in_the_way(folder, is_passed)
    is_new = not files
    if is_new:
        write_run_file(folder, request_id, values)
        files = _files_in_the_way(folder, is_passed)
    others = [file for file in files if file.request_id != request_id]
    if others and is_new:
        remove_file(run_file(folder, request_id), HandoverError)
    return is_new and not others, next(iter(others), None)


def _files_in_the_way(folder: UPath, is_passed: Callable[[RunFile], bool]) -> list[RunFile]:
    return [file for file in run_files(folder).values() if not is_passed(file)]


def write_run_file(folder: UPath, request_id: str, values: Mapping[str, Any]) -> None:
    """Write a run's file, or write it over.

    Raises:
        HandoverError: It can't be written.
    """
    content = {"schema_version": 1, "request_id": request_id, **values}
    write_text(run_file(folder, request_id), json.dumps(content), HandoverError)


def run_files(folder: UPath) -> dict[str, RunFile]:
    """Return the files of a folder by their runs.

    Raises:
        HandoverError: A file can't be read.
    """
    folder = open_location(folder, HandoverError)
    names = (name for name in list_directory(folder, HandoverError) if name.endswith(".json"))
    paths = [folder / name for name in sorted(names)]
    texts = [(path, read_text(path, HandoverError)) for path in paths]
    files = [_parse(path, text) for path, text in texts if text is not None]
    return {file.request_id: file for file in files}


def run_file(folder: UPath, request_id: str) -> UPath:
    """Return where a run's file lies in a folder."""
    # Not every storage accepts all characters of a run's id in a file name.
    return folder / f"{sha256(request_id.encode()).hexdigest()[:32]}.json"


def _parse(path: UPath, text: str) -> RunFile:
    try:
        values = json.loads(text)
        return RunFile(path=path, request_id=str(values["request_id"]), values=values)
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(
            f"{path} holds {text[:100]!r}; delete it if no run starts a job there"
        ) from error


def _claims_folder(target_checkpoint: UPath) -> UPath:
    return beside(target_checkpoint, "claims")
