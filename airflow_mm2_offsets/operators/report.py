"""The last step: it takes a failed move back, writes down what was done, and fails if it failed."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator, Context

from airflow_mm2_offsets.core.report import MoveReport, Step
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.logins import without_login, without_logins
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.moves.status import MoveStatus, status_of, status_of_drill
from airflow_mm2_offsets.observability import emit_report
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import PROBLEM, page_links
from airflow_mm2_offsets.operators.moving import MoveArgument, mover_of, request_of, to_template
from airflow_mm2_offsets.operators.rollback import WITHDRAW, give_up, parse_on_failure
from airflow_mm2_offsets.operators.run_facts import (
    as_mapping,
    attempt,
    run_facts,
    steps_of,
    write_report,
)
from airflow_mm2_offsets.operators.translate import NOTE

OF_DRILL: Mapping[str, str] = {"verified": "verify", "drill": "tear_down"}
"""The results of a drill in its report, and the tasks that return them."""
HANDED_OVER = frozenset({"handed over", "moved"})
"""The states of a move that can't be taken back."""


class ReportFailoverOperator(BaseOperator):
    """Takes back a move that has failed before its hand-over, and writes one report of it.

    Of a drill it says what a move would cost: records, and seconds until the first batch.

    Its trigger rule is ``all_done``. It reports what is there: a storage that does not answer is a
    remark. Where a task of the move failed, it fails, too, without a retry and with the names of
    those tasks, so that the DAG run is red.

    Args:
        move: What is moved, and how.
        on_failure: What is taken back: see ``RollbackFailoverOperator``. May be a templated string.
        reports: The folder of reports; by default ``reports`` in the folder where the journal is.
        results: What further tasks returned, by their names in the report. A drill's are there in
            any case: ``verified`` and ``drill``, of its tasks ``verify`` and ``tear_down``.

    Returns:
        The report. The XCom ``summary`` has it in Markdown.

    Raises:
        AirflowFailException: A task of the move failed.
        ConfigurationError: ``on_failure`` is another word.
    """

    operator_extra_links = page_links("report")
    template_fields: Sequence[str] = ("move", "on_failure", "reports", "results")

    def __init__(
        self,
        *,
        move: MoveArgument,
        on_failure: str = WITHDRAW,
        reports: str | None = None,
        results: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"trigger_rule": "all_done", **kwargs})
        self.move = to_template(move)
        self.on_failure = on_failure
        self.reports = reports
        self.results = results

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Take back, collect and write; then fail where the move failed."""
        remarks: list[str] = []
        none: tuple[Step, ...] = ()
        if _is_last_try(context):
            steps = attempt(lambda: steps_of(context), none, "the states of the tasks", remarks)
        else:
            steps = steps_of(context)
        mover = mover_of(self, context)
        failed = _failed(steps, mover.find())
        rollback = self._take_back(context, mover, remarks) if failed else None
        note = self._note(context, mover, steps)
        status = self._status(mover, failed, steps, note)
        if failed:
            cause = attempt(lambda: _cause(context, failed), failed[0], "the cause", remarks)
            status = status.with_cause(cause)
        report = self._report(
            context, status, steps=steps, rollback=rollback, note=note, remarks=remarks
        )
        document: dict[str, Any] = without_logins(report.to_json())
        summary = without_login(report.to_markdown())
        if not request_of(self).is_dry_run:
            document["files"] = self._write(
                context, mover, document, summary=summary, remarks=remarks
            )
        document["remarks"] = without_logins(remarks)
        self.log.info("%s", "\n".join(status.to_lines()))
        if not request_of(self).is_dry_run:
            of_move = {"policy": mover.policy.name, "mm2_conn_id": mover.job.mm2_conn_id}
            emit_report(document | of_move)
        context["ti"].xcom_push(key="summary", value=summary)
        if failed:
            # What a failed task returns is lost.
            context["ti"].xcom_push(key="return_value", value=document)
            raise AirflowFailException(
                f"the move failed in {', '.join(failed)} ({status.state}): "
                f"{' '.join(report.next)} See the report in this task's XCom summary"
            )
        return document

    def parse_settings(self) -> str:
        """Return ``on_failure``.

        Raises:
            ConfigurationError: It is another word.
        """
        return parse_on_failure(self.task_id, self.on_failure)

    def _take_back(
        self, context: Context, mover: Mover, remarks: list[str]
    ) -> dict[str, Any] | None:
        """Take the move back, unless its job is handed over; a failure is a remark."""
        choice = self.parse_settings()
        if request_of(self).leaves_job_alone or status_of(mover.find()).state in HANDED_OVER:
            return None
        try:
            return give_up(context, mover, choice)
        except Mm2OffsetsError as error:
            # Without a report nobody would know what to do.
            if error.retryable and not _is_last_try(context):
                raise
            remarks.append(f"The move was not taken back: {error}")
            return None

    def _note(self, context: Context, mover: Mover, steps: tuple[Step, ...]) -> Mapping[str, Any]:
        """Return the numbers and summaries of plan and forecast, as the translation noted them."""
        if request_of(self).leaves_job_alone:
            return _pulled(context, steps, "translate", key=NOTE) or {}
        return {"summaries": mover.find().noted("summaries")}

    def _status(
        self,
        mover: Mover,
        failed: Sequence[str],
        steps: tuple[Step, ...],
        note: Mapping[str, Any],
    ) -> MoveStatus:
        """Return the status; of a drill with what a move would cost."""
        status = status_of(mover.find())
        if mover.policy.leaves_job_alone:
            numbers = {**(note.get("numbers") or {}), **_seconds_to_start(steps)}
            status = status_of_drill(mover.find(), has_failed=bool(failed), numbers=numbers)
        return status

    def _report(
        self,
        context: Context,
        status: MoveStatus,
        *,
        steps: tuple[Step, ...],
        rollback: Mapping[str, Any] | None,
        note: Mapping[str, Any],
        remarks: list[str],
    ) -> MoveReport:
        results = {name: as_mapping(value) for name, value in (self.results or {}).items()}
        if request_of(self).how.leaves_job_alone:
            results |= {name: _pulled(context, steps, task) for name, task in OF_DRILL.items()}
            remarks += filter(None, [(results["drill"] or {}).get("moved")])
        return MoveReport(
            status=status.to_json(),
            lines=status.to_lines(),
            run=attempt(lambda: run_facts(context), {}, "the DAG run", remarks),
            steps=steps,
            rollback=rollback,
            summaries=note.get("summaries") or {},
            results=results,
            remarks=tuple(remarks),
        )

    def _write(
        self,
        context: Context,
        mover: Mover,
        document: Mapping[str, Any],
        *,
        summary: str,
        remarks: list[str],
    ) -> list[str]:
        """Write both files, and return where they are."""
        folder = self.reports or f"{mover.job.journal}.reports"
        move = mover.find()

        def write() -> list[str]:
            return write_report(
                folder, context, document, summary, distinct=f"{move.job.name} {move.request_id}"
            )

        none: list[str] = []
        return attempt(write, none, f"the report is only in XCom: {folder}", remarks)


def _is_last_try(context: Context) -> bool:
    instance: Any = context["ti"]
    return bool(instance.try_number > (instance.max_tries or 0))


def _pulled(
    context: Context, steps: tuple[Step, ...], name: str, key: str = "return_value"
) -> dict[str, Any] | None:
    """Return an XCom of a task before this one; None where there is none."""
    task_ids = [each.task_id for each in steps if each.name == name]
    if not task_ids:
        return None
    instance: Any = context["ti"]
    value = instance.xcom_pull(task_ids=task_ids[0], key=key, map_indexes=instance.map_index)
    return as_mapping(value)


def _cause(context: Context, failed: Sequence[str]) -> str:
    """Return why the first task failed, by the message that it has kept."""
    instance: Any = context["ti"]
    message = instance.xcom_pull(task_ids=failed[0], key=PROBLEM, map_indexes=instance.map_index)
    if isinstance(message, str):
        return f"{failed[0]}: {message}"
    return f"{', '.join(failed)} failed; its log says why"


def _seconds_to_start(steps: tuple[Step, ...]) -> dict[str, int]:
    """Return how long a copy took from its start to its first batch, if Airflow tells."""
    known = {each.name: each.seconds for each in steps if each.seconds is not None}
    if not {"start_drill", "wait_started"} <= known.keys():
        return {}
    return {"seconds_to_first_batch": round(known["start_drill"] + known["wait_started"])}


def _failed(steps: tuple[Step, ...], move: Move) -> list[str]:
    """Return which tasks failed; where Airflow does not tell, the journal does."""
    states = ("failed", "upstream_failed")  # in a mapped group only the latter shows
    failed = ([each.task_id for each in steps if each.state == state] for state in states)
    unfinished = [f"a step after {move.last.event!r}"] if move.is_under_way and move.last else []
    return next(filter(None, failed), unfinished)
