"""The steps of a fleet beside the moves of its jobs: preview, approval, and the order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context
from airflow.providers.standard.operators.hitl import HITLOperator

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.core import Direction
from airflow_mm2_offsets.core.approval import Measure, measures_of, subject
from airflow_mm2_offsets.core.plan import digest_of
from airflow_mm2_offsets.core.summary import fold
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.fleet.order import (
    check_order_now,
    find_wrong_reads,
    has_home,
    is_at,
    order_jobs,
    select_jobs,
)
from airflow_mm2_offsets.fleet.preview import NUMBERS, Cost, Stand, find_costs, preview_to_json
from airflow_mm2_offsets.fleet.texts import summarize_preview
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.moves.overview import JobOverview, overview_of
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.approve import APPROVE, REJECT, AskOperator, Question
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    MoveArgument,
    archive_of,
    mirror_of,
    mover_for,
    pair_of_move,
    plan_of_last_move,
    request_of,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.plan_settings import parse_trial_settings
from airflow_mm2_offsets.operators.run_conf import check_run_conf
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.positions.reading import PositionsReader
from airflow_mm2_offsets.spark.job_positions import parse_job_positions

APPROVED = "approved"
"""The XCom of what a person has approved for each job."""
ASK = "ask"
"""The XCom of when each job asks; there is none where a person was asked for the fleet."""


class PreviewFleetOperator(BaseOperator):
    """Says which jobs a fleet moves, where each is now, and what that costs; changes nothing.

    The jobs are those of ``[mm2_offsets] jobs_file``. A job that is at the cluster already stays
    there. A job that can't be planned has no numbers, and the reason.

    Args:
        move: How each job is moved. ``job`` has the names of the jobs, separated by commas; empty:
            all. ``to`` is needed.
        out_of: Only jobs that have their other home at this cluster. Empty: at any.
        waves: How many waves the DAG has.
        options: How the positions are to be translated, as ``TranslateOffsetsOperator`` has it.

    Returns:
        ``totals``, ``jobs`` (in their order: ``name``, ``wave``, ``where``, ``is_there`` and
        numbers), ``to``, ``allowed`` (the sum of what the jobs allow without approval) and
        ``digest``. Beside it the XComs ``summary`` and ``table``.

    Raises:
        ConfigurationError: There is no file of jobs, or it is wrong; a job is not in it, goes
            elsewhere, or can't be moved by a fleet; jobs wait for each other, or for one that is
            not moved; the ``reads`` of a job are not what its checkpoint reads; or the conf of the
            run has a key that no param of the DAG has.
        HandoverError: The journal of a job can't be read.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move", "out_of", "options")

    def __init__(
        self,
        *,
        move: MoveArgument,
        waves: int,
        out_of: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.waves = waves
        self.out_of = out_of
        self.options = options

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Select the jobs, ask their journals, and plan those that are to move."""
        check_run_conf(context)
        request = fleet_request_of(self)
        to = str(request.cluster)
        every, jobs, file = self._select(request, to)
        overviews = [overview_of(job, storage_path) for job in jobs]
        _check_complete(overviews, every, to, file)
        costs = self._find_costs(context, request, overviews, every, to)
        preview = preview_to_json(overviews, costs, to)
        preview["to"] = to
        preview["allowed"] = {
            name: sum(getattr(job, name) for job in jobs)
            for name in ("max_refused", "max_read_again", "max_at_risk")
        }
        preview["digest"] = digest_of(preview)
        preview["summary"] = summarize_preview(preview)
        push = context["ti"].xcom_push
        push(key="summary", value=fold(preview["summary"]))
        push(key="table", value=preview["summary"].splitlines())
        self.log.info("%s", preview["summary"])
        return preview

    def _select(
        self, request: MoveRequest, to: str
    ) -> tuple[tuple[SparkJob, ...], tuple[SparkJob, ...], str]:
        """Return all jobs, those that are asked for, and what messages call the file."""
        found, file = jobs_of_file()
        every = order_jobs(found, file)
        names = [each.strip() for each in (given(request.job) or "").split(",") if each.strip()]
        jobs = select_jobs(every, to=to, out_of=given(self.out_of), names=names, file=file)
        if late := [f"{job.name} ({job.wave})" for job in jobs if job.wave > self.waves]:
            raise ConfigurationError(
                f"the DAG has {self.waves} waves, and these jobs are in later ones: "
                f"{', '.join(late)}; give fleet_tasks more waves, or name earlier ones",
                file=file,
            )
        return every, jobs, file

    def _find_costs(
        self,
        context: Context,
        request: MoveRequest,
        overviews: Sequence[JobOverview],
        every: Sequence[SparkJob],
        to: str,
    ) -> dict[str, Cost]:
        costs: dict[str, Cost] = {}
        stands: list[Stand] = []
        problems = Problems()
        written = {topic for job in every for topic in job.writes}
        reader = _StandReader(self, context, request)
        for each in overviews:
            if each.home.cluster == to:
                continue
            try:
                stand = reader.read(each.job)
            except ConfigurationError:
                raise
            except Mm2OffsetsError as error:
                costs[each.job.name] = Cost(problem=str(error))
                continue
            stands.append(stand)
            if each.home.cluster == each.job.homes[0].cluster:  # ``reads`` has the names there
                topics = {*stand.positions, *(stand.pending or {})}
                problems.add(*find_wrong_reads(each.job, topics, written))
        problems.raise_all(setting="reads")
        return costs | find_costs(stands, request.how)


class _StandReader:
    """Reads where jobs stand; those that move alike get the same clusters and options."""

    def __init__(self, task: PreviewFleetOperator, context: Context, request: MoveRequest) -> None:
        self._task, self._context, self._request = task, context, request
        self._pairs: dict[str, ClusterPair] = {}
        self._options: dict[tuple[str | None, bool], PlanOptions] = {}

    def read(self, job: SparkJob) -> Stand:
        move = mover_for(replace(self._request, job=job), self._context).find()
        mirror = mirror_of(move)
        if mirror not in self._pairs:
            self._pairs[mirror] = pair_of_move(move)
        pair, may_be_lost = self._pairs[mirror], move.policy.source_may_be_lost
        read = PositionsReader(
            checkpoint=move.here.checkpoint,
            open_path=storage_path,
            control=move.here.control,
            # A lost source would cost each job a timeout.
            pair=None if may_be_lost else pair,
            notes_ids=False,
            may_be_lost=may_be_lost,
            saved_positions=job.saved_positions,
        ).read()
        where = parse_job_positions(read)
        return Stand(
            name=job.name,
            pair=pair,
            positions=where.positions,
            pending=where.pending,
            options=self._options_of(move, pair),
        )

    def _options_of(self, move: Move, pair: ClusterPair) -> PlanOptions:
        job = move.job
        key = archive_of(move), job.changed_records
        if key not in self._options:
            trial = parse_trial_settings(self._task, changed_records=job.changed_records)
            archive = None
            if key[0]:
                archive = SyncArchive(storage_path(key[0]), skip_damaged=trial.skip_damaged)
            self._options[key] = replace(trial.options, archive=archive)
        if pair.direction is Direction.EXCHANGED:
            return replace(self._options[key], first_plan=plan_of_last_move(move))
        return self._options[key]


class ApproveFleetOperator(AskOperator):
    """Asks a person once for a whole fleet, where its numbers are above the sum of what is allowed.

    Each job is planned again when it has stopped. Then it may cost what this preview said of it, or
    what its own thresholds allow; above both it asks again.

    Args:
        move: See ``PreviewFleetOperator``.
        preview: What ``PreviewFleetOperator`` returned.
        kwargs: See ``AskOperator``.

    Returns:
        What ``ApproveFailoverOperator`` returns. Beside it the XCom ``approved``: the numbers of
        each job, which a person has seen and approved; of none where nobody was asked.

    Raises:
        ApprovalError: Somebody rejected it, or nobody answered in time.
        ConfigurationError: An argument is not one of its words, or no number.
    """

    operator_extra_links = page_links("run", beside=HITLOperator)
    template_fields: Sequence[str] = (*AskOperator.template_fields, "move", "preview")

    def __init__(self, *, move: MoveArgument, preview: Mapping[str, Any], **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.preview = preview

    def find_question(self, context: AnyContext, deadline: datetime | None) -> Question:  # noqa: ARG002 - the page names it
        """Return the question over all jobs."""
        skip_in_dry_run(self, context, "ask a person where a total is above its threshold")
        policy, totals = request_of(self).how, self.preview["totals"]
        measures: tuple[Measure, ...] = measures_of(totals, **self.preview["allowed"])
        count = totals["jobs"] - totals["there_already"]
        return Question(
            subject=subject(f"{count} jobs", policy.name, measures),
            measures=measures,
            consequence=f"**{APPROVE}** moves {count} jobs to {self.preview['to']}, wave by wave; "
            f"a job that costs more than is said here asks again. **{REJECT}** moves none: they "
            f"run on.",
            summaries={"Preview": self.preview["summary"]},
            digest=self.preview["digest"],
        )

    def note_question(self, context: AnyContext, question: Question) -> None:  # noqa: ARG002 - of all questions
        """Keep the numbers that the person sees: another preview may be made meanwhile."""
        numbers = {
            job["name"]: {name: job[name] for name in NUMBERS} for job in self.preview["jobs"]
        }
        context["ti"].xcom_push(key=APPROVED, value=numbers)

    def note_answer(self, context: AnyContext, answer: Mapping[str, Any]) -> None:
        """Without a question nobody has approved more than each job allows itself."""
        if not answer["asked"]:
            context["ti"].xcom_push(key=APPROVED, value={})
            context["ti"].xcom_push(key=ASK, value=str(self.ask))

    def why_outdated(self, context: AnyContext) -> str | None:  # noqa: ARG002 - of all questions
        """Return None: what was seen is approved, whatever a later preview says."""
        return None


def fleet_request_of(task: BaseOperator) -> MoveRequest:
    """Return what a fleet is asked for; its ``job`` has the names of jobs.

    Raises:
        ConfigurationError: It names no cluster, or another policy than planned and disaster.
    """
    request = request_of(task)
    if request.how.leaves_job_alone:
        raise ConfigurationError(
            f"it is {request.policy!r}, and a fleet is moved by planned or disaster; run a drill "
            f"for each job",
            setting="policy",
        )
    if request.cluster is None:
        raise ConfigurationError("name the cluster that the jobs go to", setting="to")
    return request


def jobs_of_wave(preview: Mapping[str, Any], wave: int) -> list[str]:
    """Return the names of the jobs that a wave moves, in the order in which they begin."""
    return [job["name"] for job in preview["jobs"] if job["wave"] == wave and not job["is_there"]]


@fails_at_once()
def check_order(context: Context) -> None:
    """Refuse a step of a fleet's job whose order has changed since its turn.

    It is the ``pre_execute`` of the steps that depend on the order. A step may be cleared hours
    after the turn: meanwhile a reader may have come home, or a writer been moved by another run. Or
    the turn was marked as success by hand.

    Raises:
        HandoverError: See ``fleet.order.check_order_now``.
        ConfigurationError: The file of jobs is wrong, or has no such job.
    """
    task: Any = context["task"]
    request = fleet_request_of(task)
    if request.is_dry_run:
        return
    found, file = jobs_of_file()
    by_name = {job.name: job for job in order_jobs(found, file)}
    (job,) = select_jobs(
        [*by_name.values()], to=str(request.cluster), names=[str(request.job)], file=file
    )
    check_order_now(job, by_name.values(), str(request.cluster), storage_path)


def _check_complete(
    overviews: Sequence[JobOverview], every: Sequence[SparkJob], to: str, file: str
) -> None:
    """Raise where a job is after one that this run does not move, and that is not there.

    Raises:
        ConfigurationError: All such jobs are named.
    """
    by_name, selected = {job.name: job for job in every}, {each.job.name for each in overviews}
    problems = Problems()
    for each in overviews:
        for name in each.job.after if not is_at(each, to) else ():
            other = by_name[name]
            if name in selected or not has_home(other, to):
                continue
            if not is_at(where := overview_of(other, storage_path), to):
                problems.add(
                    ConfigurationError(
                        f"job {each.job.name} moves after {name}, which this run does not move, "
                        f"and which is not at {to} ({where}): name it, too, or move it first"
                    )
                )
    problems.raise_all(file=file)
