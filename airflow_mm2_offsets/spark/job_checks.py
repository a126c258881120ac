"""Finds problems in a job's folders that would make a failover fail, before the job is stopped.

``CheckFailoverOperator`` calls it. Each problem is one sentence with its next step.
"""

import logging
from contextlib import suppress

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, DrillError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.spark.answers import check_ended
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.claim import read_claim
from airflow_mm2_offsets.spark.control import Driver, read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.drill import read_mark
from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.spark.originals import JobLocations, is_beating
from airflow_mm2_offsets.spark.stopping import read_requests
from airflow_mm2_offsets.storage import list_directory, open_location

log = logging.getLogger(__name__)


def find_fence_problems(control: UPath) -> list[str]:
    """Return which other run moves the job; an answered stop may be taken over.

    Raises:
        StopError: The control location can't be read.
    """
    fence = read_fence(control)
    if fence is None:
        return []
    if fence.state is FenceState.STOPPING and read_acknowledgement(control, fence.request_id):
        return []
    problem = (
        f"{control}: {fence}, and a job is moved once: see that run; `airflow-mm2-offsets fence "
        f"lift` lets the job run and be moved again"
    )
    return [problem]


def find_job_problems(locations: JobLocations, checkpoint: Checkpoint | None) -> list[str]:
    """Return why the stop could reach no job, another job, or a copy of the job's folders.

    Raises:
        StopError: The control location can't be read, or the checkpoint has gone on since the job
            ended.
    """
    control = locations.control
    driver = read_driver(control)
    if driver is None:
        problem = (
            f"no job has run with the control location {control}; give the one that the job hands "
            f"to StopControl"
        )
        return [problem]
    if not driver.lease:
        problem = (
            f"the job in {control} runs under a stop control that obeys no fence, so it could run "
            f"on beside the target job: start it with this release's files"
        )
        return [problem]
    queries = {driver.query_id, *driver.runs}
    if checkpoint is not None and checkpoint.query_id not in queries:
        problem = (
            f"{control} is of the query {' and '.join(sorted(queries))} and "
            f"{locations.checkpoint} of the query {checkpoint.query_id}, so another job would be "
            f"stopped; give both of one job"
        )
        return [problem]
    if checkpoint is not None:
        check_ended(driver, locations.checkpoint)
    return _copy_problems(locations, driver)


def _copy_problems(locations: JobLocations, driver: Driver) -> list[str]:
    if moved := locations.note_problem(driver):
        return [moved]
    problems = locations.problems(driver)
    # If the control location has the name that the job writes, so must the checkpoint.
    is_renamed = driver.control and locations.control_problem(driver) is not None
    if not problems or not is_renamed or not is_beating(locations.control, driver):
        return problems
    # Airflow may reach the folder by a mount. The job's answer to the stop then proves it.
    for problem in problems:
        log.warning("The job lives, but %s", problem)
    return []


def find_target_problems(
    target_checkpoint: UPath, target_control: UPath | None, request_id: str
) -> list[str]:
    """Return why a new job could not start in the target's locations.

    Raises:
        CheckpointError: The checkpoint location can't be read.
        StopError: The control location can't be read.
        HandoverError: The claim beside the checkpoint location can't be read.
    """
    problems = [] if target_control is None else _target_control_problems(target_control)
    place = open_location(target_checkpoint, CheckpointError)
    claimant = read_claim(place)
    if claimant not in {None, request_id}:
        problem = (
            f"{target_checkpoint} is the target of the run {claimant!r} already: give another "
            f"target checkpoint location"
        )
        return [*problems, problem]
    # Not only batches count: Spark also begins where a sources/0/0 says.
    if taken := sorted(list_directory(place, CheckpointError)):
        problems.append(
            f"{target_checkpoint} holds {', '.join(taken)} already, and Spark takes "
            f"startingOffsets with a new checkpoint only: give another target checkpoint location"
        )
    return problems


def find_drill_around(place: UPath) -> list[str]:
    """Return which drill's folder a location lies in: its tear-down removes all that it holds."""
    for folder in (place, *place.parents):
        mark = None
        # Who may write to a folder may not be allowed to read those above it.
        with suppress(DrillError):
            mark = read_mark(folder)
        if mark is not None and same_folder(folder, mark.folder):
            problem = (
                f"{place} lies in {folder}, the throw-away folder of the drill "
                f"{mark.request_id!r}, which is removed with all that it holds: give another "
                f"location, or clear that drill's tear-down"
            )
            return [problem]
    return []


def _target_control_problems(control: UPath) -> list[str]:
    """Return what would stop the target job as soon as it starts."""
    if (fence := read_fence(control)) is not None:
        problem = (
            f"{control}: a fence stands where the target job is to run, so it would end at once: "
            f"{fence}. See that the job does not run elsewhere; then `airflow-mm2-offsets fence "
            f"lift {control} --request-id '{fence.request_id}'`, or give another target folder"
        )
        return [problem]
    request_id, _ = read_requests(control)
    if request_id is not None and read_acknowledgement(control, request_id) is None:
        problem = (
            f"{control}: the stop {request_id!r} is open where the target job is to run, so it "
            f"would stop at once: delete {control / 'stop-request.json'} if no other run waits "
            f"for it, or give another target folder"
        )
        return [problem]
    return []
