"""Checks that a run has stopped its job; the hand-over calls it where no fence can be looked at.

A job without a control location leaves no answer on storage. Neither does a job whose storage is
lost. There the result of the run's own stop is the proof. Airflow keeps none for a task that a user
has marked as success. For a task that was cleared and then marked it keeps the old one: so the
result says which files the checkpoint held.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Any

from upath import UPath

from airflow_mm2_offsets.spark.checkpoint import ListedFile, listing
from airflow_mm2_offsets.spark.control import StopProof

FILES = "checkpoint_files"
"""The field of a stop's result that ``digest_of`` makes, for a job without a control location."""


def digest_of(files: AbstractSet[ListedFile]) -> str:
    """Return a digest of a checkpoint's logs; it differs once a job has written to them."""
    names = (("/".join(file.path.split("/")[-2:]), file.size, file.mark) for file in files)
    return sha256(repr(sorted(names)).encode()).hexdigest()


def find_missing_proof(
    stopped: object, request_id: str, checkpoint: UPath, *, is_lost: bool
) -> str | None:
    """Return why a stop's result does not prove that the job has stopped; None if it does.

    Args:
        stopped: What ``StopSparkStreamingOperator`` returned; anything else is no proof.
        request_id: The run's stop.
        checkpoint: The job's checkpoint location.
        is_lost: Whether the job's folder can't be reached: a user's word counts only then.

    Raises:
        CheckpointError: The checkpoint can't be read.
    """
    result: Mapping[str, Any] = stopped if isinstance(stopped, Mapping) else {}
    if (proof := result.get("proof")) not in set(StopProof):
        return (
            f"there is no proof that {request_id!r} has stopped the job in {checkpoint}; a task "
            f"that was marked as success by hand proves nothing"
        )
    if (proved := result.get("request_id")) != request_id:
        return f"the proof of the stop is of {proved!r}, and not of {request_id!r}"
    if is_lost:
        return None
    if proof == StopProof.ASSERTED:
        return (
            f"your word (source_is_gone) was the proof, and the job's folder can be reached again: "
            f"{checkpoint}"
        )
    if (then := result.get(FILES)) is not None and then != digest_of(listing(checkpoint)):
        return f"{checkpoint} was written to since its stop was proved, so the job may run"
    return None
