"""A move that is under way: its journal says so, and its plan and its note of ids are kept.

These checks read storage in the caller's thread: Airflow's connections need it.
"""

from collections.abc import Iterable, Iterator

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.moves.journal import State
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.plan_file import check_plan, read_plan
from airflow_mm2_offsets.positions.checkpoint import check_cluster
from airflow_mm2_offsets.readiness.answers import (
    GIVE_POSITIONS,
    NO_POSITIONS,
    asked,
    blocked,
    failed,
    not_asked,
    unknown,
)
from airflow_mm2_offsets.readiness.job import Job
from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.spark.position_ids import check_ids, note_ids


def is_under_way(request: ReadinessRequest) -> bool:
    """Tell whether the run that asks has begun to move the job."""
    if request.mover is None:
        return False
    try:
        move = request.mover.find()
    except Mm2OffsetsError:  # a check reports it
        return False
    last = move.last
    return last is not None and last.move == move.number and last.state is not State.HOME


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
        check_cluster(pair, job.notes.without_topics(), ask_source=ask_source)
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


def _kept_plan(request: ReadinessRequest) -> FailoverPlan | None:
    return read_plan(request.open(request.plan_path)) if request.plan_path else None
