"""Whether a job may be moved now, by where the jobs are that its order depends on.

``order`` gives the order of a manifest; jobs may also be moved singly, come home, or be added to
the manifest later. So the fences are asked: in ``turn``, and before each step of the failover.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.progress import moved_before
from airflow_mm2_offsets.spark.fence import Fence, FenceState, read_fence

AFTER, WRITERS = "after_jobs", "writer_jobs"
"""The settings of the jobs that a job is moved after, and of those that write what it reads."""


def check_order_now(
    job: Mapping[str, Any], open_place: Callable[[str], UPath], *, mode: str = ""
) -> None:
    """Raise unless a job may be moved now; one that is handed over already may.

    Args:
        job: One of the dicts that ``FleetWaveOperator`` returned.
        open_place: Returns a location as a path.
        mode: The mode of the failover; see ``moved_before``.

    Raises:
        HandoverError: A job that it is after is not on the target; or one that writes what it
            reads has left the source, or leaves it now.
        StopError: A control location can't be read.
        CheckpointError: A target's checkpoint can't be read.
    """
    if _is_handed_over(FleetJob.from_json(job), open_place, mode):
        return
    _check_moved(_jobs(job, AFTER), open_place, mode)
    _check_not_moved(_jobs(job, WRITERS), open_place, mode)


def _jobs(job: Mapping[str, Any], name: str) -> Sequence[FleetJob]:
    # A run that began before an upgrade has no writers in its XComs.
    return [FleetJob.from_json(each) for each in job.get(name) or ()]


def _is_handed_over(job: FleetJob, open_place: Callable[[str], UPath], mode: str) -> bool:
    """Tell whether the job starts from a plan that was made before: its order is decided."""
    fence = _fence_of(job, open_place, mode)
    if fence is not None and fence.state is FenceState.MOVED:
        return True
    return moved_before(job, open_place, mode=mode) is not None


def _fence_of(job: FleetJob, open_place: Callable[[str], UPath], mode: str) -> Fence | None:
    try:
        return read_fence(open_place(job.control))
    except StopError:
        if mode != FailoverMode.DISASTER:
            raise
        return None


def _check_moved(jobs: Sequence[FleetJob], open_place: Callable[[str], UPath], mode: str) -> None:
    left = [job.name for job in jobs if moved_before(job, open_place, mode=mode) is None]
    if left:
        raise HandoverError(
            f"it is to be moved after {', '.join(left)}, which was not moved: a task that was "
            f"skipped or marked as success by hand moves nothing, and a job may have come home "
            f"since. Move it first; this try did nothing to this job"
        )


def _check_not_moved(
    writers: Sequence[FleetJob], open_place: Callable[[str], UPath], mode: str
) -> None:
    """Raise where a writer's new records may lie behind the copies: the plan would skip them."""
    for job in writers:
        fence = _fence_of(job, open_place, mode)
        left = str(fence) if fence is not None else moved_before(job, open_place, mode=mode)
        if left is not None:
            raise HandoverError(
                f"job {job.name} writes a topic that this job reads, and is not on the source: "
                f"{left}. A reader that is moved after its writer would skip what the writer has "
                f"written on the target. Bring {job.name} home first (or withdraw its move, if it "
                f"was not handed over), then clear this task; or take this job out of the manifest "
                f"and start it on the target by hand, with positions that you choose. This try did "
                f"nothing to this job"
            )
