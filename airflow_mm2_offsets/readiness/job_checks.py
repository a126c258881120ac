"""The job's folders, its fence, and where it is to go: can it be stopped, and started there?

These checks read storage in the caller's thread: Airflow's connections need it.
"""

from collections.abc import Iterator

from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.moves.checks import (
    find_drill_around,
    find_job_problems,
    find_move_problems,
    find_target_problems,
)
from airflow_mm2_offsets.moves.folders import JobFolders
from airflow_mm2_offsets.readiness.answers import asked, failed, not_asked, unknown
from airflow_mm2_offsets.readiness.job import Job
from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems


def check_job(request: ReadinessRequest, job: Job) -> Iterator[ReadinessCheck]:
    """Yield whether the job can be stopped, and another one started instead."""
    yield from _check_control(request, job)
    yield from _check_target(request)
    if not request.sink:
        yield not_asked(CheckName.SINK, "no sink is given")
        return
    sink = request.sink
    replaced = job.checkpoint.query_id if job.checkpoint else None
    writer = SinkWriter(replaced_query_id=replaced, txn_app_id=request.txn_app_id)

    def find() -> list[str]:
        output = request.open(sink)
        return [*find_drill_around(output), *find_sink_problems(output, writer)]

    yield from asked(CheckName.SINK, find, otherwise=f"{sink} drops no batch of a fresh checkpoint")


def _check_control(request: ReadinessRequest, job: Job) -> Iterator[ReadinessCheck]:
    if not request.checkpoint:
        for name in (CheckName.FENCE, CheckName.JOB_FOLDERS):
            yield not_asked(name, "no checkpoint is given")
        return
    control, checkpoint = request.control, request.checkpoint
    if control and job.is_lost and (lost := _why_lost(request, control)):
        yield from _of_lost_control(lost, has_word=request.source_is_gone)
        return

    def find_other_runs() -> list[str]:
        if request.mover is None:
            return []
        return find_move_problems(request.mover, request.takes_over)

    yield from asked(
        CheckName.FENCE,
        find_other_runs,
        otherwise="no other run moves the job or has moved it",
        may_be_lost=job.is_lost,
    )
    if not control:
        yield not_asked(CheckName.JOB_FOLDERS, "no control location is given")
        return
    yield from asked(
        CheckName.JOB_FOLDERS,
        lambda: find_job_problems(_folders(request, control, checkpoint), job.checkpoint),
        otherwise="the folders are the job's own, and no copies",
        may_be_lost=job.is_lost,
    )


def _why_lost(request: ReadinessRequest, location: str) -> str | None:
    try:
        return why_lost(request.open(location))
    except Mm2OffsetsError as error:
        return str(error)


def _of_lost_control(lost: str, *, has_word: bool) -> Iterator[ReadinessCheck]:
    """Yield what a disaster is told where the control location can't be reached."""
    value = f"{lost}: no fence can be read or raised"
    yield unknown(CheckName.FENCE, value)
    if has_word:
        by_word = f"{value}, and by your word (source_is_gone) no driver runs"
        yield unknown(CheckName.JOB_FOLDERS, by_word)
        return
    remedy = (
        "if its storage is lost, and you are sure that no driver of the job runs or will be "
        "started, give source_is_gone; else give the folders that the job itself writes"
    )
    yield failed(CheckName.JOB_FOLDERS, value, remedy)


def _check_target(request: ReadinessRequest) -> Iterator[ReadinessCheck]:
    if not request.target_checkpoint:
        yield not_asked(CheckName.TARGET_FOLDERS, "no target checkpoint is given")
        return
    place = request.target_checkpoint

    def find() -> list[str]:
        target = request.open(place)
        return find_drill_around(target) or find_target_problems(target)

    yield from asked(CheckName.TARGET_FOLDERS, find, otherwise=f"{place} is free")


def _folders(request: ReadinessRequest, control: str, checkpoint: str) -> JobFolders:
    return JobFolders(
        control=request.open(control),
        checkpoint=request.open(checkpoint),
        spark_control=request.spark_control,
        spark_checkpoint=request.spark_checkpoint,
    )
