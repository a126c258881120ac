"""The last step of a fleet failover: one report over all jobs."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator, Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.report import Outcome
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.progress import OTHER_MANIFEST, moved_before
from airflow_mm2_offsets.fleet.texts import fleet_markdown
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login, without_logins
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.fleet import jobs_of
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.run_facts import attempt, run_facts, states_of, write_report
from airflow_mm2_offsets.operators.settings import given

MOVED_BEFORE, NOT_BEGUN = "moved_before", "not_begun"
"""Outcomes beside those of a failover: an earlier run has moved the job; it was not its turn."""
NOT_ON_TARGET = "not_on_target"
"""The job was moved, as its tasks have told, and is not there now."""
_WELL = frozenset({Outcome.MOVED.value, MOVED_BEFORE, Outcome.DRY_RUN.value})


class ReportFleetOperator(BaseOperator):
    """Writes one report over all jobs of a fleet failover, and fails unless all are moved.

    Give it the trigger rule ``all_done``.

    Args:
        manifest: What ``ReadFleetManifestOperator`` returned.
        turns: The first task of each job, by the number of the wave.
        ends: The last task of each job, by the number of the wave.
        reports: The folder of reports; None: only XCom has it.
        mode: ``planned`` or ``disaster``.

    Returns:
        ``totals``, ``jobs`` (outcome, seconds, numbers, what to do next), ``run``, ``remarks`` and
        ``files``. The XCom ``summary`` has it in Markdown.

    Raises:
        AirflowFailException: A job is not moved; each is named.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("manifest", "reports", "mode")

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any],
        turns: Mapping[int, str],
        ends: Mapping[int, str],
        reports: str | None = None,
        mode: str = FailoverMode.PLANNED.value,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"trigger_rule": "all_done", **kwargs})
        self.manifest = manifest
        self.turns = turns
        self.ends = ends
        self.reports = reports
        self.mode = mode

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Collect and write; then fail where a job is left."""
        if not self.manifest:
            raise AirflowFailException("nothing was moved: the manifest was not read; see its task")
        remarks: list[str] = []
        nothing: dict[str, Any] = {}
        jobs = [*self._jobs(context["ti"])]
        moved = sum(job["outcome"] in _WELL for job in jobs)
        document: dict[str, Any] = without_logins(
            {
                "schema_version": 1,
                "manifest": self.manifest["file"],
                "run": attempt(lambda: run_facts(context), nothing, "the DAG run", remarks),
                "totals": {"jobs": len(jobs), "moved": moved},
                "jobs": jobs,
                "remarks": remarks,
            }
        )
        summary = without_login(fleet_markdown(document))
        document["files"] = self._write(context, document, summary, remarks)
        document["remarks"] = without_logins(remarks)
        self.log.info("%s", summary)
        context["ti"].xcom_push(key="summary", value=summary)
        if left := [job["name"] for job in jobs if job["outcome"] not in _WELL]:
            # What a failed task returns is lost.
            context["ti"].xcom_push(key="return_value", value=document)
            raise AirflowFailException(
                f"{len(left)} of {len(jobs)} jobs are not moved: {', '.join(left)}. Correct what "
                f"the report says of each; then clear its failed task, or start a new run of the "
                f"same manifest: it moves only what is left"
            )
        return document

    def _jobs(self, instance: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - Airflow's, of any release
        states = states_of(instance, self.ends.values())
        numbers: dict[int, int] = {}
        for job in jobs_of(self.manifest):
            number = numbers[job.wave] = numbers.get(job.wave, -1) + 1
            state = states.get((self.ends[job.wave], number))
            told = self._told(instance, job, number, state)
            if told["outcome"] in {Outcome.MOVED.value, MOVED_BEFORE}:
                told |= self._not_on_target(job)
            elif told["outcome"] in {Outcome.FAILED_BEFORE_STOP.value, NOT_BEGUN}:
                told |= self._moved_before(job)
            yield {**told, "name": job.name, "wave": job.wave}

    def _not_on_target(self, job: FleetJob) -> dict[str, Any]:
        """Return what is told instead of a job whose fence says otherwise than its tasks did.

        What they have told is old where a cleared task was marked as success by hand.
        """
        try:
            if moved_before(job, storage_path, mode=str(self.mode)) is not None:
                return {}
            why = f"no fence in {job.control} says that it is moved now; it may have come home"
        except Mm2OffsetsError as error:
            why = str(error)
        return {
            "outcome": NOT_ON_TARGET,
            "next": f"Its tasks have told that it was moved, but: {why}. See where it runs; then "
            f"start a new run of the same manifest.",
        }

    def _moved_before(self, job: FleetJob) -> dict[str, Any]:
        """Return what is told instead of a job that an earlier run has moved.

        Its ``turn`` may have failed, or not begun, in this one.
        """
        try:
            moved = moved_before(job, storage_path, mode=str(self.mode))
        except Mm2OffsetsError:  # what its tasks have told says more
            return {}
        return {} if moved is None else {"outcome": MOVED_BEFORE, "next": moved}

    def _told(
        self,
        instance: Any,  # noqa: ANN401 - Airflow's, of any release
        job: FleetJob,
        number: int,
        state: str | None,
    ) -> dict[str, Any]:
        """Return what the tasks of a job have told."""
        turn = instance.xcom_pull(task_ids=self.turns[job.wave], map_indexes=number) or {}
        nothing = {"seconds": None, "read_again": None, "at_risk": None}
        if turn.get("name", job.name) != job.name:
            return {"outcome": NOT_BEGUN, "next": OTHER_MANIFEST, **nothing}
        # Airflow also skips what had not begun when a run is marked as failed by hand.
        if state == "skipped" and turn.get("moved"):
            return {"outcome": MOVED_BEFORE, "next": str(turn["moved"]), **nothing}
        report = None
        if state in {"success", "failed"}:
            report = instance.xcom_pull(task_ids=self.ends[job.wave], map_indexes=number)
        if not report:
            return {"outcome": NOT_BEGUN, "next": _why_not_begun(job, state), **nothing}
        return {
            "outcome": report["outcome"],
            "next": "" if report["outcome"] in _WELL else " ".join(report["next"]),
            "failed": [step["task_id"] for step in report["steps"] if step["state"] == "failed"],
            "seconds": _seconds(turn.get("began_at"), report["run"].get("reported_at")),
            "read_again": _at_most(report, "read_again"),
            "at_risk": _at_most(report, "at_risk"),
        }

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


def _why_not_begun(job: FleetJob, state: str | None) -> str:
    if state is None:
        return f"Wave {job.wave} has not begun; nothing was done to the job."
    return f"Its tasks did not run ({state}): see the first of them."


def _seconds(began: str | None, ended: str | None) -> float | None:
    if not began or not ended:
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _at_most(report: Mapping[str, Any], name: str) -> int | None:
    forecast = report.get("forecast")
    return forecast["totals"][name]["at_most"] if forecast else None
