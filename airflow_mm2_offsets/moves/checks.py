"""Finds problems in a job's folders that would make a failover fail, before the job is stopped.

``CheckFailoverOperator`` calls it. Each problem is one sentence with its next step.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress

from upath import UPath

from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    DrillError,
    HandoverError,
    StopError,
)
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.folders import JobFolders, is_beating
from airflow_mm2_offsets.moves.jobs import Home, settle_job_command
from airflow_mm2_offsets.moves.journal import State
from airflow_mm2_offsets.moves.move import Mover, is_same_journal, read_claim
from airflow_mm2_offsets.moves.settle import find_unknown_stays
from airflow_mm2_offsets.spark.answers import check_ended
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.drill import read_mark
from airflow_mm2_offsets.storage import check_exclusive, list_directory, open_location

log = logging.getLogger(__name__)


def find_move_problems(mover: Mover, takes_over: str | None) -> list[str]:
    """Return why a run could not move its job now, by the job's journal.

    Args:
        mover: The run's.
        takes_over: The run that has ended, and that the job may be taken over from.

    Raises:
        HandoverError: The journal can't be read, or is damaged.
    """
    move = mover.find()
    check_exclusive(mover.open_path(mover.job.journal), HandoverError)
    problems = []
    last = move.last
    if last is not None and last.state is not State.HOME and last.run != move.run:
        is_anybodys = last.state is State.STOPPED and last.target is None
        if last.run != takes_over and not is_anybodys:
            problems.append(
                f"job {mover.job.name}: {last}: wait for that run. Once it has ended, the next run "
                f"takes the job over"
            )
    if mover.to == move.here.cluster:
        problems.append(f"job {mover.job.name} is already at {move.here}: there is nothing to move")
    problems += _fence_problems(mover)
    for home in filter(None, (move.here, move.there)):
        claim = _claim_of(mover, home)
        if claim is not None and not is_same_journal(mover.job.journal, claim["journal"]):
            problems.append(
                f"{home} belongs to job {claim['job']}, whose journal is {claim['journal']}, and "
                f"not {mover.job.journal}: give the same records, or another folder"
            )
    return problems


def _claim_of(mover: Mover, home: Home) -> Mapping[str, str] | None:
    try:
        return read_claim(mover.open_path(home.control))
    except (HandoverError, ConfigurationError):  # ``job_folders`` reports it
        return None


def _fence_problems(mover: Mover) -> list[str]:
    """Return the homes whose drivers would not obey the journal: their fence is another."""
    fences = mover.fences()
    problems = find_unknown_stays(mover.job, fences, mover.open_path) if fences else []
    for folder, fence in fences.items():
        home = mover.job.past_home_of(folder)
        is_own = mover.job.stay_in(folder) is not None
        claim = None if is_own else _claim_of(mover, home)
        if not is_own and not (claim and is_same_journal(mover.job.journal, claim["journal"])):
            continue  # a former home, which may be gone, or another job's
        try:
            latest = read_fence(mover.open_path(home.control))
        except (StopError, ConfigurationError):  # a lost storage; ``job_folders`` reports it
            continue
        if latest is not None and latest.number > fence.number:
            problems.append(
                f"{home}: it has the fence {latest.number}, and the journal has come to "
                f"{fence.number} there: {mover.job.journal} has lost entries; restore it, or say "
                f"where the job runs: {settle_job_command(mover.job.name)}"
            )
        elif latest is None or latest.number < fence.number:
            found = f"it has {latest}" if latest else "it has no fence"
            problems.append(
                f"{home}: the journal says that {fence}, and {found}, so a driver may start there: "
                f"`airflow-mm2-offsets jobs fence --journal {mover.job.journal}` writes it"
            )
    return problems


def find_job_problems(folders: JobFolders, checkpoint: Checkpoint | None) -> list[str]:
    """Return why the stop could reach no job, another job, or a copy of the job's folders.

    Raises:
        StopError: The control location can't be read, or the checkpoint has gone on since the job
            ended.
    """
    control = folders.control
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
            f"{folders.checkpoint} of the query {checkpoint.query_id}, so another job would be "
            f"stopped; give both of one job"
        )
        return [problem]
    if checkpoint is not None:
        check_ended(driver, folders.checkpoint)
    return _copy_problems(folders, driver)


def _copy_problems(folders: JobFolders, driver: Driver) -> list[str]:
    if moved := folders.note_problem(driver):
        return [moved]
    problems = folders.problems(driver)
    # If the control location has the name that the job writes, so must the checkpoint.
    is_renamed = driver.control and folders.control_problem(driver) is not None
    if not problems or not is_renamed or not is_beating(folders.control, driver):
        return problems
    # Airflow may reach the folder by a mount. The job's answer to the stop then proves it.
    for problem in problems:
        log.warning("The job lives, but %s", problem)
    return []


def find_target_problems(target_checkpoint: UPath) -> list[str]:
    """Return why a new job could not start with the target's checkpoint location.

    Raises:
        CheckpointError: The location can't be read.
    """
    place = open_location(target_checkpoint, CheckpointError)
    # Not only batches count: Spark also begins where a sources/0/0 says.
    names = sorted(list_directory(place, CheckpointError))
    if not names:
        return []
    problem = (
        f"{target_checkpoint} holds {', '.join(names)} already, and Spark takes startingOffsets "
        f"with a new checkpoint only: give another folder"
    )
    return [problem]


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
