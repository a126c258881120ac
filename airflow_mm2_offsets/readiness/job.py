"""The job: its checkpoint, its folders, its fence, and where it is to go.

These checks read storage. They run in the caller's thread: Airflow's connections need it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Positions
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.locations import is_within
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.plan_file import check_plan, read_plan
from airflow_mm2_offsets.readiness.answers import (
    GIVE_POSITIONS,
    NO_POSITIONS,
    asked,
    blocked,
    failed,
    not_asked,
    ok,
    unknown,
    warning,
)
from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.spark.homecoming import check_home
from airflow_mm2_offsets.spark.job_checks import (
    find_drill_around,
    find_fence_problems,
    find_job_problems,
    find_target_problems,
)
from airflow_mm2_offsets.spark.lock import check_unlocked
from airflow_mm2_offsets.spark.lost_checkpoint import LostCheckpoint
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.originals import JobLocations
from airflow_mm2_offsets.spark.position_ids import check_ids, note_ids
from airflow_mm2_offsets.spark.saved_positions import is_lost
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the job's storage says of it."""

    checkpoint: Checkpoint | None
    """None if none is given or it can't be read."""
    driver: Driver | None
    substitute: Positions | None
    """The positions that stand in for a checkpoint: in a disaster, or where none is given."""
    checks: tuple[ReadinessCheck, ...]
    """What the reads themselves found."""
    is_lost: bool
    """Whether the job's storage may be gone, as in a disaster: that is no problem then."""


def read_job(request: ReadinessRequest) -> Job:
    """Read the job's checkpoint and its driver."""
    is_disaster = request.mode is FailoverMode.DISASTER
    checkpoint, driver = None, _driver(request)
    substitute = request.positions if request.checkpoint is None else None
    checks: list[ReadinessCheck] = []
    if request.checkpoint is None:
        value = "no checkpoint is given" if substitute is None else "the positions are given"
        checks.append(not_asked(CheckName.CHECKPOINT_READABLE, value))
    else:
        try:
            checkpoint = read_checkpoint(request.open(request.checkpoint))
            value = f"query {checkpoint.query_id} in {request.checkpoint}"
            checks.append(ok(CheckName.CHECKPOINT_READABLE, value))
        except Mm2OffsetsError as error:
            check = failed(CheckName.CHECKPOINT_READABLE, str(error))
            if is_disaster:
                substitute, check = _stand_in(request, error, driver)
            checks.append(check)
    return Job(
        checkpoint=checkpoint,
        driver=driver,
        substitute=substitute,
        checks=tuple(checks),
        is_lost=is_disaster,
    )


def _stand_in(
    request: ReadinessRequest, error: Mm2OffsetsError, driver: Driver | None
) -> tuple[Positions | None, ReadinessCheck]:
    """Return the positions that a disaster takes in place of a lost checkpoint."""
    name = CheckName.CHECKPOINT_READABLE
    try:
        location = _opened(request.open, request.checkpoint)
    except Mm2OffsetsError:
        location = None
    if is_lost(error, location) and not request.saved_positions and request.positions is None:
        return None, unknown(name, str(error), "give saved_positions, or the positions themselves")
    try:
        substitute = LostCheckpoint(
            error=error,
            location=location,
            saved_positions=_opened(request.open, request.saved_positions),
            positions=request.positions,
            driver=driver,
        ).find_substitute()
    except Mm2OffsetsError as unusable:
        return None, failed(name, str(unusable))
    since = f" of {substitute.as_of}" if substitute.as_of else ""
    value = f"{error}; the {substitute.origin} positions{since} stand in for it"
    step = "what the job has processed since is read again"
    return substitute.positions, warning(name, value, step)


def is_under_way(request: ReadinessRequest) -> bool:
    """Tell whether the run that asks has begun: its fence stands, or its plan is kept."""
    try:
        if not request.control:
            return _kept_plan(request) is not None
        fence = read_fence(request.open(request.control))
    except Mm2OffsetsError:  # a check reports it
        return False
    return fence is not None and fence.request_id == request.request_id


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
        if _is_of_drill(request, output):
            return []  # its start removes what an earlier drill has left there
        return [*find_drill_around(output), *find_sink_problems(output, writer)]

    yield from asked(CheckName.SINK, find, otherwise=f"{sink} drops no batch of a fresh checkpoint")


def _is_of_drill(request: ReadinessRequest, output: UPath) -> bool:
    """Tell whether an output lies in the folder of the drill that asks."""
    if CheckName.DRILL_FOLDERS not in request.more or not request.target_checkpoint:
        return False
    return is_within(output, request.open(request.target_checkpoint).parent)


def check_kept_ids(
    request: ReadinessRequest, job: Job, pair: ClusterPair, *, ask_source: bool
) -> Iterator[ReadinessCheck]:
    """Yield whether a kept plan is of these clusters, topics and positions, and the note too."""
    checkpoint = job.checkpoint
    if request.checkpoint is None:
        yield not_asked(CheckName.KEPT_PLAN, "no checkpoint is given")
        yield not_asked(CheckName.IDS_UNCHANGED, "no checkpoint is given")
        return
    if checkpoint is None:
        yield unknown(CheckName.KEPT_PLAN, NO_POSITIONS, GIVE_POSITIONS)
        yield unknown(CheckName.IDS_UNCHANGED, NO_POSITIONS, GIVE_POSITIONS)
        return
    try:
        ids = read_known_ids(pair, checkpoint.positions, ask_source=ask_source)
    except Mm2OffsetsError as error:
        yield blocked(CheckName.KEPT_PLAN, str(error))
        yield blocked(CheckName.IDS_UNCHANGED, str(error))
        return

    def find_plan_problems() -> Iterable[str]:
        plan = _kept_plan(request)
        if plan is not None and request.plan_path:
            path = request.open(request.plan_path)
            check_plan(plan, path, checkpoint.positions, checkpoint.pending, ids)
        return []

    def find_id_problems() -> Iterable[str]:
        location, run = request.open(str(request.checkpoint)), request.request_id
        check_ids(note_ids(location, checkpoint, run, ids, is_kept=request.note_ids), ids)
        return []

    fine = "no plan is kept, or it is of these positions, clusters and topics"
    yield from asked(CheckName.KEPT_PLAN, find_plan_problems, otherwise=fine)
    fine = "clusters and topics are those that the positions were first read of"
    yield from asked(CheckName.IDS_UNCHANGED, find_id_problems, otherwise=fine)


def check_kept_plan_alone(request: ReadinessRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the kept plan can be read, where the clusters can't be asked."""
    try:
        plan = _kept_plan(request)
    except Mm2OffsetsError as error:
        yield failed(CheckName.KEPT_PLAN, str(error))
    else:
        what = "no plan is kept" if plan is None else "its clusters and topics can't be compared"
        make = not_asked if plan is None else unknown
        yield make(CheckName.KEPT_PLAN, what)
    yield blocked(CheckName.IDS_UNCHANGED, "the target does not answer")


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
        check_unlocked(request.open(checkpoint), request.request_id)
        return find_fence_problems(request.open(control)) if control else []

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
        lambda: find_job_problems(_locations(request, control, checkpoint), job.checkpoint),
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
    if CheckName.DRILL_FOLDERS in request.more:
        yield not_asked(CheckName.TARGET_FOLDERS, "drill_folders looks at a drill's folder")
        return
    place = request.target_checkpoint

    def find() -> list[str]:
        target, control = request.open(place), _opened(request.open, request.target_control)
        run = request.request_id
        if problems := find_drill_around(target):
            return problems
        if request.mode is FailoverMode.FAILBACK and control and request.from_folder:
            check_home(target, control, request_id=run, from_folder=request.from_folder)
            return []
        return find_target_problems(target, control, run)

    yield from asked(CheckName.TARGET_FOLDERS, find, otherwise=f"{place} is free")


def _locations(request: ReadinessRequest, control: str, checkpoint: str) -> JobLocations:
    return JobLocations(
        control=request.open(control),
        checkpoint=request.open(checkpoint),
        spark_control=request.spark_control,
        spark_checkpoint=request.spark_checkpoint,
    )


def _opened(open_path: Callable[[str], UPath], location: str | None) -> UPath | None:
    return open_path(location) if location else None


def _kept_plan(request: ReadinessRequest) -> FailoverPlan | None:
    return read_plan(request.open(request.plan_path)) if request.plan_path else None


def _driver(request: ReadinessRequest) -> Driver | None:
    try:
        return read_driver(request.open(request.control)) if request.control else None
    except Mm2OffsetsError:  # ``job_folders`` reports it
        return None
