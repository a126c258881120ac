"""Finds the move that a task is a step of, by its argument ``move`` and the job's journal."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import (
    AirflowSkipException,
    BaseOperator,
    Context,
)
from airflow.sdk.exceptions import AirflowRuntimeError

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import ConfigurationError, as_class
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.handover import handed_over_to
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.jobs_file import find_job
from airflow_mm2_offsets.moves.journal import Entry, Event, State
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.plan_settings import read_named_plan
from airflow_mm2_offsets.planning.lost_parts import quick
from airflow_mm2_offsets.positions.reading import PositionsReader
from airflow_mm2_offsets.spark.control import DRIVER, StopProof
from airflow_mm2_offsets.spark.job_positions import JobPositions
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.offsets import parse_offsets
from airflow_mm2_offsets.triggers.drill import ENDED, read_run_state

INTENT = "intent"
"""The XCom of what a task would have done in a dry run."""
MoveArgument = MoveRequest | Mapping[str, Any]
"""What operators take as ``move``: a value, or the same as JSON."""
JobArgument = SparkJob | Mapping[str, Any] | str
"""What operators take as ``job``: a value, the same as JSON, or its name in the file of jobs."""
AnyContext = Context | Mapping[str, Any]
"""Airflow's context, as it comes to ``execute`` and after a wait."""


def to_template(move: MoveArgument | None) -> Mapping[str, Any] | None:
    """Return the argument as Airflow renders it."""
    return move.to_json() if isinstance(move, MoveRequest) else move


def job_to_template(job: JobArgument | None) -> Mapping[str, Any] | str | None:
    """Return the argument as Airflow renders it."""
    return job.to_json() if isinstance(job, SparkJob) else job


def job_of_task(task: BaseOperator) -> SparkJob:
    """Return the job that a task's ``job`` is, or names.

    Raises:
        ConfigurationError: A field is unknown, misspelt or of another kind; or see ``job_of``.
    """
    try:
        return job_of(MoveRequest.from_json({"job": getattr(task, "job", None)}))
    except ConfigurationError as error:
        raise as_class(ConfigurationError, error, f"task {task.task_id}: {error}") from error


def request_of(task: BaseOperator) -> MoveRequest:
    """Return what a task's ``move`` asks for.

    Raises:
        ConfigurationError: A field is unknown, misspelt or of another kind.
    """
    try:
        return MoveRequest.from_json(getattr(task, "move", None))
    except ConfigurationError as error:
        raise as_class(ConfigurationError, error, f"task {task.task_id}: {error}") from error


def job_of(request: MoveRequest) -> SparkJob:
    """Return the job of a request; a name is looked up in ``[mm2_offsets] jobs_file``.

    Raises:
        ConfigurationError: There is no file of jobs, it is wrong, or it has no such job.
    """
    if isinstance(request.job, SparkJob):
        return request.job
    jobs, file = jobs_of_file()
    return find_job(jobs, request.job, file=file)


def run_name(context: AnyContext) -> str:
    """Return what the journal calls a run of Airflow: DAG id and run id."""
    instance: Any = context["ti"]
    return f"{instance.dag_id}:{instance.run_id}"


def mover_of(task: BaseOperator, context: AnyContext) -> Mover:
    """Return what carries the steps of a task's move out.

    Raises:
        ConfigurationError: See ``request_of`` and ``job_of``.
    """
    return mover_for(request_of(task), context)


def mover_for(request: MoveRequest, context: AnyContext) -> Mover:
    """Return what carries the steps of a requested move out.

    Raises:
        ConfigurationError: See ``job_of``.
    """
    return Mover(
        job=job_of(request),
        run=run_name(context),
        policy=request.how,
        open_path=storage_path,
        to=request.cluster,
    )


def ask(mover: Mover) -> Move:
    """Begin a run's move, or go on with it; take the job over from a run that has ended.

    Raises:
        Mm2OffsetsError: See ``Mover.ask``.
    """
    return mover.ask(takes_over=ended_run(mover.find_to_ask().last))


def ended_run(last: Entry | None) -> str | None:
    """Return the run that the job may be taken over from: it moves it, and has ended.

    A run of another Airflow, or a person's, can't be looked up, and is not taken over.
    """
    if last is None or last.state is State.HOME:
        return None
    dag_id, _, run_id = last.run.partition(":")
    try:
        return last.run if read_run_state(dag_id, run_id) in ENDED else None
    except AirflowRuntimeError:
        return None


def note_wait(
    mover: Mover, waits_for: str, deadline: float, *, ends_with: Event | None = None
) -> None:
    """Note in a move's journal what a task is about to wait for; whatever comes next ends it.

    Args:
        mover: The run's.
        waits_for: What is missing.
        deadline: When the task gives up, in seconds since 1970.
        ends_with: What the task records at the end of the wait. A move that has it already notes no
            wait: the same once more is no new entry, and would end none.
    """
    move = mover.find()
    if move.number and (ends_with is None or move.entry(ends_with) is None):
        until = datetime.fromtimestamp(deadline, UTC).isoformat(timespec="seconds")
        mover.record(move, Event.NOTE, waits_for=without_login(waits_for), until=until)


def find_users_word(request: MoveRequest, move: Move) -> str | None:
    """Return that no driver runs, where a home can't be reached and the user says so.

    Args:
        request: What the user says.
        move: The move; its job is at the home.
    """
    if not request.is_source_gone:
        return None
    if move.job.is_controlled:
        lost = why_lost(storage_path(move.here.control), DRIVER)
    else:
        lost = why_lost(storage_path(move.here.checkpoint))
    return f"by your word (source_is_gone) no driver runs: {lost}" if lost else None


def mirror_of(move: Move) -> str:
    """Return the ``mm2`` connection that a move goes by.

    Raises:
        ConfigurationError: A connection is wrong, or is of other clusters.
    """
    here, there = move.here.cluster, move.there.cluster if move.there else ""
    conn_id = move.job.mm2_conn_id
    aliases = _aliases(conn_id)
    if aliases == (there, here) and move.job.mm2_back_conn_id:
        conn_id = move.job.mm2_back_conn_id
        aliases = _aliases(conn_id)
    if {*aliases} != {here, there}:
        raise ConfigurationError(
            f"job {move.job.name} goes from {here!r} to {there!r}, and the connection {conn_id} "
            f"has the aliases {' and '.join(map(repr, aliases))}: name the job's homes as "
            f"MirrorMaker 2 names its clusters",
            setting="mm2_conn_id",
        )
    return conn_id


def archive_of(move: Move) -> str | None:
    """Return where the offset syncs are archived of the mirror that a move goes by.

    Raises:
        ConfigurationError: See ``mirror_of``.
    """
    return move.job.archive_of(mirror_of(move)) if move.there else None


def pair_of_move(move: Move, *, timeout: float | None = None) -> ClusterPair:
    """Return the clusters as a move goes: from where the job is to where it goes.

    In a disaster a source or Connect that does not answer is given up early: it is expected, and
    each step waits for it again.

    Args:
        move: The move.
        timeout: Seconds until a broker or a Connect worker must have answered; None: 30, and less
            in a disaster.

    Raises:
        ConfigurationError: See ``mirror_of``.
    """
    seconds = 30.0 if timeout is None else timeout
    to = move.there.cluster if move.there else None
    pair = Mm2OffsetHook(mirror_of(move), to=to, timeout=seconds).get_conn()
    return quick(pair) if move.policy.source_may_be_lost and timeout is None else pair


def _aliases(conn_id: str) -> tuple[str, str]:
    naming = Mm2OffsetHook(conn_id).get_conn().naming
    return naming.source_alias, naming.target_alias


def plan_of_last_move(move: Move) -> FailoverPlan | None:
    """Return the plan that the job came here by, as its journal has it; the way home needs it.

    Raises:
        PlanError: Its file is gone, or damaged.
    """
    handed = handed_over_to(move)
    return read_named_plan(str(handed["plan"])) if handed else None


def skip_if_handed_over(move: Move) -> None:
    """Skip a step that comes before the hand-over, where that has been: it was cleared.

    Raises:
        AirflowSkipException: The job is handed over.
    """
    if move.is_handed_over:
        raise AirflowSkipException(
            f"this run has handed job {move.job.name} over to {move.there}: there is nothing to do"
        )


def skip_in_dry_run(task: BaseOperator, context: AnyContext, intent: str) -> None:
    """Skip a task that changes something, where the move only says what it would do.

    Args:
        task: The task; its ``move`` says whether it is a dry run.
        context: Airflow's.
        intent: What it would do, as the end of a sentence.

    Raises:
        AirflowSkipException: It is a dry run. The XCom ``intent`` says what would be done.
    """
    if request_of(task).is_dry_run:
        intent = without_login(intent)
        context["ti"].xcom_push(key=INTENT, value=intent)
        raise AirflowSkipException(f"dry run: it would {intent}")


def record_proof(
    mover: Mover,
    move: Move,
    proof: Mapping[str, Any],
    *,
    positions: JobPositions | None = None,
) -> dict[str, Any]:
    """Read where a job has stopped, record it with the proof of the stop, and return both.

    Args:
        mover: The run's.
        move: Its move, as it was when the proof was looked for.
        proof: What ``StopWatch`` or a platform's silence has shown.
        positions: In a disaster: where the user says that the job stands.

    Raises:
        Mm2OffsetsError: See ``PositionsReader.read`` and ``Mover.record``.
    """
    start = None
    if proof["proof"] == StopProof.NOT_BEGUN and (handed := handed_over_to(move)):
        start = parse_offsets(handed["starting_offsets"])
    read = PositionsReader(
        checkpoint=move.here.checkpoint,
        open_path=mover.open_path,
        control=move.here.control if move.job.is_controlled else None,
        pair=pair_of_move(move) if move.there else None,
        request_id=move.run,
        may_be_lost=move.policy.source_may_be_lost,
        saved_positions=move.job.saved_positions,
        positions=positions,
        start=start,
    ).read()
    facts = {**proof, "request_id": move.request_id, **read}
    mover.record(move, Event.PROVE, **facts)
    return facts
