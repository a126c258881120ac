"""The first step: it reports whether a move can begin, and changes nothing of the job."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.core.summary import fold
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError, NotReadyError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.observability import emit_readiness
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_result_options import LongResultOptions
from airflow_mm2_offsets.operators.moving import (
    MoveArgument,
    archive_of,
    ended_run,
    mover_of,
    pair_of_move,
    plan_of_last_move,
    request_of,
    skip_if_handed_over,
    to_template,
)
from airflow_mm2_offsets.operators.plan_settings import parse_trial_settings, read_named_plan
from airflow_mm2_offsets.operators.run_conf import check_run_conf
from airflow_mm2_offsets.operators.settings import given, given_positions, is_true
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, tells_of_dags
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.readiness import ReadinessRequest, check_readiness
from airflow_mm2_offsets.readiness.answers import failed
from airflow_mm2_offsets.readiness.request import MoreChecks, fields_of_move
from airflow_mm2_offsets.readiness.thresholds import THRESHOLDS, Thresholds

_FAILURES = {
    False: "the move can't begin, and nothing was stopped; {} to mend:",
    True: "the move can't go on; {} to mend:",
}
"""The line above the problems, by whether the move is under way."""


class CheckFailoverOperator(BaseOperator):
    """Reports whether a move can begin, while the job still runs.

    It asks both clusters, Kafka Connect, the archive, the job's homes and its journal, all that the
    policy needs, and returns every finding as a named check; docs/readiness.md lists them. On a
    schedule it reports what is wrong before the night on which it is needed.

    It changes nothing but a note beside the checkpoint, ``<checkpoint>.clusters.json``: the ids of
    clusters and topics, which every later step compares. ``note_ids=False`` leaves that out.

    Once the run has begun to move the job, only what is still to come is looked at.

    Args:
        move: What is moved, and how.
        positions: In a disaster: where the job stands, if nothing else says so; as
            ``StopSparkStreamingOperator`` has it.
        options: How the positions are to be translated, as ``TranslateOffsetsOperator`` has it.
        thresholds: The limits that values are compared with, by the names of
            ``readiness.Thresholds``, such as ``{"max_lag_records": 1000}``.
        note_ids: Write the note of ids. False on a schedule. May be a templated string.
        probe_folder: A folder where a file may be written and removed: only that shows whether an
            object store lets us write.
        timeout: Seconds until a broker or a Connect worker must have answered; 30 by default.

    Returns:
        The report (``core.readiness``). Beside it the XComs ``summary`` (one paragraph) and
        ``table`` (a list of lines).

    Raises:
        ConfigurationError: The conf of the run has a key that no param of the DAG has, or a setting
            is wrong.
        NotReadyError: Checks have failed; each is named. The report is pushed.
    """

    operator_extra_links = page_links("readiness")
    template_fields: Sequence[str] = (
        *("move", "positions", "options", "thresholds", "note_ids", "probe_folder"),
    )

    def __init__(
        self,
        *,
        move: MoveArgument,
        positions: Mapping[str, Any] | str | None = None,
        options: Mapping[str, Any] | str | None = None,
        thresholds: Mapping[str, Any] | None = None,
        note_ids: bool | str = True,
        probe_folder: str | None = None,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.positions = positions
        self.options = options
        self.thresholds = thresholds
        self.note_ids = note_ids
        self.probe_folder = probe_folder
        self.timeout = timeout

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Make the report; raise if a check has failed."""
        check_run_conf(context)
        self.parse_settings()
        skip_if_handed_over(mover_of(self, context).find())
        report = check_readiness(self._request(context))
        push = context["ti"].xcom_push
        summary = report.summary()
        push(key="summary", value=fold(summary))
        # Airflow's page shows a text as one paragraph, and a list line by line.
        push(key="table", value=summary.splitlines())
        emit_readiness(report.to_json())
        self.log.info("%s", summary)
        if report.failed:
            # A task that fails returns nothing, and its user needs the report all the more.
            push(key="return_value", value=report.to_json())
            raise NotReadyError(_listed(report))
        return report.to_json()

    def parse_settings(self) -> tuple[Thresholds, Positions | None]:
        """Return thresholds and given positions, and check the other settings.

        The options of long results, too: the tasks that use them come after the stop.

        Raises:
            Mm2OffsetsError: A setting is invalid.
        """
        LongResultOptions.parse()
        is_number = isinstance(self.timeout, (int, float))
        if self.timeout is not None and not (is_number and 0 < self.timeout < float("inf")):
            raise ConfigurationError(
                f"task {self.task_id}: timeout is {self.timeout!r}; give seconds, or None"
            )
        limits = self.thresholds or {}
        if unknown := sorted(set(limits) - set(THRESHOLDS)):
            raise ConfigurationError(
                f"task {self.task_id}: thresholds has {', '.join(unknown)}; its names are "
                f"{', '.join(THRESHOLDS)}"
            )
        positions = given_positions(self)
        return Thresholds.parse(limits), positions.positions if positions else None

    def _request(self, context: Context) -> ReadinessRequest:
        thresholds, positions = self.parse_settings()
        request, mover = request_of(self), mover_of(self, context)
        move = mover.find()
        options, unread, skip_damaged = self._plan_options(move)
        return ReadinessRequest(
            find_pair=partial(pair_of_move, move, timeout=self.timeout),
            open=storage_path,
            takes_over=ended_run(move.last),
            thresholds=thresholds,
            note_ids=not (request.leaves_job_alone or move.policy.source_may_be_lost)
            and is_true(self, "note_ids"),
            plan_options=options,
            came_by=partial(plan_of_last_move, move),
            skip_damaged=skip_damaged,
            source_is_gone=request.is_source_gone,
            positions=positions,
            more={**self._more_checks(context, move.job), **_of_first_plan(unread)},
            archive=_archive_of(move),
            probe_folder=given(self.probe_folder),
            **fields_of_move(mover, move),
        )

    def _plan_options(self, move: Move) -> tuple[PlanOptions, str | None, bool]:
        """Return how the plan will be made, and why the plan that it names can't be read."""
        changed = move.job.changed_records
        trial = parse_trial_settings(self, changed_records=changed)
        try:
            first = read_named_plan(trial.first_plan) if trial.first_plan else None
        except Mm2OffsetsError as error:
            return trial.options, str(error), trial.skip_damaged
        return replace(trial.options, first_plan=first), None, trial.skip_damaged

    def _more_checks(self, context: Context, job: SparkJob) -> Mapping[CheckName, MoreChecks]:
        """Return the checks that need Airflow; a subclass may add to them."""
        if job.dag is None:
            return {}
        dag_id = job.dag
        return {CheckName.TARGET_DAG: lambda: _check_dag(context, dag_id)}


def _archive_of(move: Move) -> str | None:
    try:
        return archive_of(move)
    except ConfigurationError:  # ``connection`` reports it
        return None


def _of_first_plan(unread: str | None) -> Mapping[CheckName, MoreChecks]:
    """Return the check that fails where the translation would, for want of the first plan."""
    if unread is None:
        return {}
    return {CheckName.TRANSLATION: lambda: [failed(CheckName.TRANSLATION, unread)]}


def _check_dag(context: Context, dag_id: str) -> Iterable[ReadinessCheck]:
    problems = find_dag_problems(context, dag_id)
    status, value = CheckStatus.OK, f"DAG {dag_id} exists and is not paused"
    if not tells_of_dags(context):
        status, value = CheckStatus.UNKNOWN, f"Airflow before 3.2 does not tell of DAG {dag_id}"
    if not problems:
        yield ReadinessCheck(name=CheckName.TARGET_DAG, status=status, value=value)
    for problem in problems:
        yield ReadinessCheck(name=CheckName.TARGET_DAG, status=CheckStatus.FAILED, value=problem)


def _listed(report: ReadinessReport) -> str:
    problems = "\n".join(f"  - {problem}" for problem in report.problems)
    return f"{_FAILURES[report.is_under_way].format(len(report.problems))}\n{problems}"
