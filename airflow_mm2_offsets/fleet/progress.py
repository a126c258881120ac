"""What is known of a fleet's jobs from before.

Whether one is moved already, so that another run moves only what is left; and which job has begun
at which place of a wave.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.spark.claim import has_claimed, read_claim
from airflow_mm2_offsets.spark.fence import Fence, FenceState, read_fence
from airflow_mm2_offsets.spark.homecoming import has_begun

OTHER_MANIFEST = (
    "The manifest was changed since this run expanded its waves: start a new run of it."
)
_SAME = ("name", "source_folder", "target_folder")
"""What tells a job, and where the files of its failover are."""


def check_kept_places(jobs: Sequence[FleetJob], begun: Iterable[Mapping[str, Any]]) -> None:
    """Raise where a place in a wave would go to another job than the one that has begun there.

    Airflow keeps what each task of the mapped group has returned by its place. Behind a cleared
    task it would give the new job what is known of the other one.

    Args:
        jobs: Those of the wave now, in their order.
        begun: The settings of those that have begun in this run, each with its ``number``.

    Raises:
        HandoverError: Such a place.
    """
    told = [job.to_json() for job in jobs]
    for before in begun:
        number = int(before["number"])
        now = told[number] if number < len(told) else None
        if now is not None and all(now[name] == before[name] for name in _SAME):
            continue
        raise HandoverError(
            f"place {number} of wave {before['wave']} was that of job {_place(before)} in this "
            f"run, and is now that of {_place(now) if now else 'no job'}. {OTHER_MANIFEST} What "
            f"this run has stopped is taken over by the new one once this one has ended"
        )


def _place(job: Mapping[str, Any]) -> str:
    source, target = (without_login(job[f"{side}_folder"]) for side in ("source", "target"))
    return f"{job['name']} (from {source} to {target})"


def moved_before(
    job: FleetJob, open_place: Callable[[str], UPath], *, own: str = "", mode: str = ""
) -> str | None:
    """Return the sentence that a job was moved by an earlier run; None if it is to be moved.

    The fence says so, and the checkpoint on the target: a job runs there, or has run.

    Args:
        job: Of the manifest.
        open_place: Returns a location as a path.
        own: This run, ``dag_id:run_id``: a job that it has moved is its own business.
        mode: In a ``disaster`` the fence may be lost with its storage; then the claim says so. Of a
            job that was moved without a fence it says so in every mode.

    Raises:
        HandoverError: It was moved elsewhere, or has left its target since, or leaves it now; or
            it was handed over, and no job has begun.
        StopError: A control location can't be read.
        CheckpointError: The target's checkpoint can't be read.
    """
    try:
        fence = read_fence(open_place(job.control))
    except StopError:
        if mode != FailoverMode.DISASTER:
            raise
        return _moved_by_claim(job, open_place, own)
    if fence is None or fence.state is not FenceState.MOVED:
        return _moved_by_claim(job, open_place, own, without_fence=True)
    if is_of_run(fence.request_id, own):
        return None
    _check_here(job, fence, open_place)
    if (left := _departure_from_target(job, open_place)) is not None:
        raise _has_left(job, left)
    if not has_begun(open_place(job.target_checkpoint)):
        raise HandoverError(
            f"{fence}, but no job has begun in {job.target_checkpoint}: finish that run first: "
            f"clear its task submit_target; or, if its DAG run does not exist, lift the fence "
            f"(airflow-mm2-offsets fence lift {job.control} --request-id '{fence.request_id}')"
        )
    return str(fence)


def _moved_by_claim(
    job: FleetJob, open_place: Callable[[str], UPath], own: str, *, without_fence: bool = False
) -> str | None:
    target = open_place(job.target_checkpoint)
    claim = read_claim(target)
    if claim is None or is_of_run(claim, own):
        return None
    if without_fence and not has_claimed(target, claim, without_fence=True):
        return None
    left = _departure_from_target(job, open_place)
    if left is None:
        return f"the job was moved by {claim!r}" if has_begun(target) else None
    if _leads_to(left, job.source_folder, open_place):
        return None
    raise _has_left(job, left)


def _departure_from_target(job: FleetJob, open_place: Callable[[str], UPath]) -> Fence | None:
    """Return the fence of the job's target folder: the job was moved away from there."""
    fence = read_fence(open_place(f"{job.target_folder}/control"))
    if fence is not None and fence.state is FenceState.STOPPING:
        raise HandoverError(
            f"job {job.name} in {without_login(job.target_folder)}: {fence}, and that run has not "
            f"ended: wait for it, or end it and lift its fence; then clear this task"
        )
    return fence


def _has_left(job: FleetJob, fence: Fence) -> HandoverError:
    return HandoverError(
        f"job {job.name} was moved to {without_login(job.target_folder)}, and has left it since: "
        f"{fence}. Correct source_folder and target_folder of the job in the manifest, or take the "
        f"job out of it"
    )


def is_of_run(request_id: str, run: str) -> bool:
    """Tell whether a run of a fleet, ``dag_id:run_id``, has asked for a stop of a job."""
    # Behind the run's id, which may hold colons, stand the group and the job.
    return request_id.rsplit(":", 2)[0] == run


def _check_here(job: FleetJob, fence: Fence, open_place: Callable[[str], UPath]) -> None:
    if not _leads_to(fence, job.target_folder, open_place):
        raise HandoverError(
            f"{fence}, and the manifest moves it to {job.target_folder}: correct target_folder of "
            f"job {job.name}, or take the job out of the manifest"
        )


def _leads_to(fence: Fence, folder: str, open_place: Callable[[str], UPath]) -> bool:
    is_named = without_login(folder) == fence.moved_to.rstrip("/")
    return is_named or same_folder(open_place(folder), fence.moved_to)
