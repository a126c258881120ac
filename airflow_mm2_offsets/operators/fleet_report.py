"""The last step of a fleet: one report over all jobs, by their journals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator, Context

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.fleet.order import is_at
from airflow_mm2_offsets.fleet.texts import fleet_markdown
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login, without_logins
from airflow_mm2_offsets.moves.overview import overview_of
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.moves.status import status_of
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.fleet import fleet_request_of, jobs_of_wave
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import MoveArgument, job_of, mover_for, to_template
from airflow_mm2_offsets.operators.run_facts import attempt, run_facts, states_of, write_report
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.triggers.fleet import BAD

THERE, LEFT, UNKNOWN, DRY_RUN = "there already", "not there", "unknown", "dry run"
"""Outcomes beside the states of a move: it was there before; it has left since; its journal can't
be read; nothing was to be changed."""


class ReportFleetOperator(BaseOperator):
    """Writes one report over all jobs of a fleet, and fails unless all are at their cluster.

    Each row is what the job's journal says. Give it the trigger rule ``all_done``.

    Args:
        move: See ``PreviewFleetOperator``.
        preview: What ``PreviewFleetOperator`` returned.
        ends: The last task of each job, in the order of the waves.
        reports: The folder of reports; None: only XCom has it.

    Returns:
        ``to``, ``policy``, ``totals``, ``jobs`` (``outcome``, ``down_seconds``, numbers, ``next``),
        ``run``, ``remarks`` and ``files``. The XCom ``summary`` has it in Markdown.

    Raises:
        AirflowFailException: A job is not there, or a task of it has failed; each is named.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move", "preview", "reports")

    def __init__(
        self,
        *,
        move: MoveArgument,
        preview: Mapping[str, Any] | None,
        ends: Sequence[str],
        reports: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"trigger_rule": "all_done", **kwargs})
        self.move = to_template(move)
        self.preview = preview
        self.ends = ends
        self.reports = reports

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Collect and write; then fail where a job is left."""
        if not self.preview:
            raise AirflowFailException("nothing was moved: there is no preview; see its task")
        request, remarks = fleet_request_of(self), list[str]()
        nothing: dict[str, Any] = {}
        failed = self._failed(context["ti"])
        jobs = [
            {**self._row(context, request, job["name"]), "name": job["name"], "wave": job["wave"]}
            for job in self.preview["jobs"]
        ]
        bad = [job["name"] for job in jobs if not job.pop("is_well") or job["name"] in failed]
        document: dict[str, Any] = without_logins(
            {
                "schema_version": 1,
                "to": request.cluster,
                "policy": request.policy,
                "run": attempt(lambda: run_facts(context), nothing, "the DAG run", remarks),
                "totals": {"jobs": len(jobs), "there": len(jobs) - len(bad)},
                "jobs": jobs,
                "remarks": [f"{name}: a task of it has failed" for name in failed],
            }
        )
        summary = without_login(fleet_markdown(document))
        document["files"] = self._write(context, document, summary, remarks)
        document["remarks"] += without_logins(remarks)
        self.log.info("%s", summary)
        context["ti"].xcom_push(key="summary", value=summary)
        if bad:
            # What a failed task returns is lost.
            context["ti"].xcom_push(key="return_value", value=document)
            raise AirflowFailException(
                f"{len(bad)} of {len(jobs)} jobs are not at {request.cluster}, or a task of them "
                f"has failed: {', '.join(bad)}. Correct what the report says of each; then clear "
                f"its failed task, or start a new run: it moves only what is left"
            )
        return document

    def _row(self, context: Context, request: MoveRequest, name: str) -> dict[str, Any]:
        """Return what a job's journal says."""
        row: dict[str, Any] = {"down_seconds": None, "read_again_at_most": None}
        row |= {"lost_at_most": None}
        try:
            job = job_of(replace(request, job=name))
            overview = overview_of(job, storage_path)
            status = status_of(mover_for(replace(request, job=job), context).find())
        except Mm2OffsetsError as error:
            return {**row, "outcome": UNKNOWN, "next": str(error), "is_well": False}
        is_there = is_at(overview, str(request.cluster))
        outcome, after = status.state, status.next
        if is_there and outcome != "moved":
            outcome, after = THERE, str(overview)
        elif outcome == "moved" and not is_there:
            outcome, after = LEFT, f"This run has moved it, and it has left since: {overview}"
        elif request.is_dry_run:
            outcome = DRY_RUN
        elif outcome == "moved":
            after = ""
        numbers = {
            each: status.numbers.get(each) for each in ("read_again_at_most", "lost_at_most")
        }
        down = status.downtime(datetime.now(UTC))
        return {
            **numbers,
            "down_seconds": None if down is None else round(down),
            "outcome": outcome,
            "next": after,
            "is_well": is_there or request.is_dry_run,
        }

    def _failed(self, instance: Any) -> list[str]:  # noqa: ANN401 - Airflow's, of any release
        """Return the jobs of which a task has failed, in their order."""
        states = states_of(instance, self.ends)
        return [*self._failed_of(states)]

    def _failed_of(self, states: Mapping[tuple[str, int], str | None]) -> Iterator[str]:
        for wave, end in enumerate(self.ends, start=1):
            for number, name in enumerate(jobs_of_wave(self.preview or {}, wave)):
                if states.get((end, number)) in BAD:
                    yield name

    def _write(
        self, context: Context, document: Mapping[str, Any], summary: str, remarks: list[str]
    ) -> list[str]:
        if (folder := given(self.reports)) is None:
            return []
        none: list[str] = []
        return attempt(
            lambda: write_report(folder, context, document, summary, distinct="fleet"),
            none,
            f"the report is only in XCom: {folder}",
            remarks,
        )
