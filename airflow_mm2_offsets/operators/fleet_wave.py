"""The step of a fleet failover that names the jobs of a wave, and bounds them by the approval."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core.approval import Ask
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.order import writers_of
from airflow_mm2_offsets.fleet.order_now import AFTER, WRITERS
from airflow_mm2_offsets.fleet.progress import check_kept_places
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.fleet import THRESHOLDS, jobs_of
from airflow_mm2_offsets.operators.links import page_links

SILENT_SECONDS = 60.0
"""The heartbeat timeout of a job in a disaster that says none."""


class FleetWaveOperator(BaseOperator):
    """Returns the jobs of one wave, for a task group to expand over; none where the wave is empty.

    Each job has the settings of the manifest, ``number`` (its place in the wave), ``after_jobs``
    (the settings of all jobs that it is after), ``writer_jobs`` (those of all that write what it
    reads), ``waits_for`` (the numbers in this wave of those of this wave, by name), ``ask``, and
    its thresholds. Where a person was asked, they are raised to what was approved for it: a plan
    that is worse asks again.

    Args:
        manifest: What ``ReadFleetManifestOperator`` returned.
        preview: What ``PreviewFleetOperator`` returned.
        approval: What ``ApproveFailoverOperator`` returned for the preview.
        wave: The wave's number, from 1.
        turn_task_id: The first task of each job of the wave, which pushes its settings as the XCom
            ``job``: a job keeps its place in the wave for the whole run. None: not compared.
        ask: When a person was to be asked: ``never`` counts for each job, too.
        mode: ``planned`` or ``disaster``.

    Raises:
        HandoverError: Another preview or manifest was approved, or it was rejected; or a place of
            the wave would go to another job than the one that has begun there in this run.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("manifest", "preview", "approval", "ask", "mode")

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any],
        preview: Mapping[str, Any],
        approval: Mapping[str, Any],
        wave: int,
        turn_task_id: str | None = None,
        ask: str = Ask.ABOVE_THRESHOLDS.value,
        mode: str = FailoverMode.PLANNED.value,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.manifest = manifest
        self.preview = preview
        self.approval = approval
        self.wave = wave
        self.turn_task_id = turn_task_id
        self.ask = ask
        self.mode = mode

    @fails_at_once()
    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Select the jobs, and bound each by what was approved for it."""
        self._check_approval()
        by_name = {job.name: job for job in jobs_of(self.manifest)}
        jobs = [job for job in by_name.values() if job.wave == self.wave]
        check_kept_places(jobs, self._begun(context["ti"]))
        numbers = {job.name: number for number, job in enumerate(jobs)}
        # Without a question nobody has approved more than each job allows itself.
        was_asked = bool(self.approval.get("asked"))
        costs = {job["name"]: job for job in self.preview["jobs"]}
        self.log.info("Wave %d: %s", self.wave, ", ".join(numbers) or "no jobs")
        ask = Ask.NEVER if self.ask == Ask.NEVER else Ask.ABOVE_THRESHOLDS
        return [
            {
                **job.to_json(),
                "number": numbers[job.name],
                **(_bounds(job, costs[job.name]) if was_asked else {}),
                "heartbeat_timeout": self._heartbeat_timeout(job),
                AFTER: [by_name[name].to_json() for name in job.after],
                WRITERS: [each.to_json() for each in writers_of(job, by_name.values())],
                "waits_for": {name: numbers[name] for name in job.after if name in numbers},
                "ask": ask.value,
            }
            for job in jobs
        ]

    def _begun(self, instance: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401 - Airflow's, of any release
        """Return the settings of the jobs of this wave that have begun in this run."""
        if self.turn_task_id is None:
            return []
        begun = instance.xcom_pull(task_ids=[self.turn_task_id], key="job")
        return [job for job in begun or () if job is not None]

    def _heartbeat_timeout(self, job: FleetJob) -> float | None:
        """Return when silence counts as an end: in a disaster nobody can answer."""
        if job.heartbeat_timeout is not None or self.mode != FailoverMode.DISASTER:
            return job.heartbeat_timeout
        is_killed_before = job.kill_after is not None and job.kill_after <= SILENT_SECONDS
        return None if is_killed_before else SILENT_SECONDS

    def _check_approval(self) -> None:
        approved = self.approval.get("plan_digest")
        if not self.approval.get("approved"):
            raise HandoverError(
                f"the fleet failover was rejected: {self.approval.get('why')}; no job of wave "
                f"{self.wave} was touched. Clear the task that approves, with all after it"
            )
        if (
            approved != self.preview["digest"]
            or self.preview["manifest"] != self.manifest["digest"]
        ):
            raise HandoverError(
                f"the preview {self.preview['digest']} is of manifest {self.preview['manifest']}; "
                f"approved was {approved}, and the manifest is {self.manifest['digest']}: clear "
                f"the task preview, with all after it"
            )


def _bounds(job: FleetJob, cost: Mapping[str, Any]) -> dict[str, int]:
    """Return a job's thresholds; what is not known was not approved."""
    approved = zip(THRESHOLDS, ("refused", "read_again", "at_risk"), strict=True)
    return {
        threshold: max(getattr(job, threshold), int(cost[name] or 0))
        for threshold, name in approved
    }
