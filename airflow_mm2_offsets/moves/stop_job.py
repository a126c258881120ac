"""Stops a job with proof, without Airflow: the command line and the demo call it."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.moves.folders import JobFolders, check_before_stop
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Mover, job_here
from airflow_mm2_offsets.moves.stop_watch import StopRules, StopWatch
from airflow_mm2_offsets.moves.stopping import Withdrawal, answer_for, withdraw
from airflow_mm2_offsets.spark.control import StopProof

LOOK_SECONDS = 2.0


def stop_job(
    job: SparkJob,
    *,
    by: str,
    open_path: Callable[[str], UPath],
    rules: StopRules | None = None,
    timeout: float = 600.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Mapping[str, Any]:
    """Ask a job to stop where it is, wait for the proof, and return it with the ``home``.

    From then on no driver starts there, until the job is moved or somebody says where it runs. A
    stop without a proof is withdrawn.

    Args:
        job: The job; see ``job_at`` for one that only has a folder.
        by: Who stops it, for the journal; each stop has another name.
        open_path: Makes a path of a location.
        rules: What proves the stop; by default the job's ``heartbeat_timeout`` counts.
        timeout: Seconds to wait at most.
        progress: Told what is waited for.

    Raises:
        LockedError: A run moves the job.
        HandoverError: The journal can't be used.
        StopError: The job runs under no ``StopControl``, the proof did not come in time, or it
            contradicts the checkpoint.
        CheckpointError: The checkpoint can't be read.
    """
    if not job.is_controlled:
        raise StopError(f"job {job.name} runs under no StopControl: stop it on its platform")
    mover = Mover(job_here(job, open_path), by, PLANNED, open_path)
    (here,) = mover.job.homes
    check_before_stop(JobFolders.of(here, open_path), mover.find_to_ask().request_id)
    move = mover.ask()
    watch = StopWatch(
        home=here,
        request_id=move.request_id,
        rules=rules or StopRules(heartbeat_timeout=job.heartbeat_timeout),
        open_path=open_path,
        interval=LOOK_SECONDS,
    )
    try:
        found = _wait(watch, timeout, progress)
    except BaseException:
        if withdraw(mover, move.request_id) is Withdrawal.STOPPED:
            progress("the job has stopped, or is about to: it can't be withdrawn")
        raise
    checkpoint, control = open_path(here.checkpoint), open_path(here.control)
    answer_for(control, move, StopProof(found["proof"]), checkpoint=checkpoint)
    mover.record(move, Event.PROVE, **found)
    return {**found, "home": here.folder}


def _wait(watch: StopWatch, timeout: float, progress: Callable[[str], None]) -> Mapping[str, Any]:
    deadline = time.monotonic() + timeout
    while isinstance(found := watch.look(), str):
        if time.monotonic() > deadline:
            raise StopError(f"waited {timeout:.0f} s for the proof of the stop: {found}")
        progress(found)
        time.sleep(LOOK_SECONDS)
    return found
