"""The steps of a fleet failover before its waves: manifest, preview, and the jobs of a wave."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core.approval import Ask
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.plan import digest_of
from airflow_mm2_offsets.errors import ConfigurationError, HandoverError
from airflow_mm2_offsets.fleet.manifest import FleetJob, parse_manifest
from airflow_mm2_offsets.fleet.places import check_places
from airflow_mm2_offsets.fleet.preview import PreviewRequest, preview_fleet, preview_to_json
from airflow_mm2_offsets.fleet.texts import summarize_preview
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.settings import given, parse_mode
from airflow_mm2_offsets.planning.lost_parts import quick
from airflow_mm2_offsets.storage import read_text

THRESHOLDS = ("max_refused", "max_read_again", "max_at_risk")
"""What a job allows without approval; the total of all jobs allows the sum."""
SILENT_SECONDS = 60.0
"""The heartbeat timeout of a job in a disaster that says none."""
FLEET_MODES = frozenset({FailoverMode.PLANNED, FailoverMode.DISASTER})
"""A drill and a way home are of one job."""


class ReadFleetManifestOperator(BaseOperator):
    """Reads the manifest of a fleet failover, and refuses a wrong one before anything is done.

    Args:
        manifest: The file, YAML or JSON, on any storage. docs/fleet.md says what it holds.
        mode: ``planned`` or ``disaster``.
        waves: How many waves the DAG has.

    Returns:
        ``file``, ``digest`` (SHA-256 of its text) and ``jobs``: their settings, in the order in
        which they begin.

    Raises:
        ConfigurationError: The file is not there or is no manifest (see ``parse_manifest``), or
            jobs share a folder.
    """

    template_fields: Sequence[str] = ("manifest", "mode")

    def __init__(
        self,
        *,
        manifest: str,
        waves: int,
        mode: str = FailoverMode.PLANNED.value,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.manifest = manifest
        self.waves = waves
        self.mode = mode

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Read and check."""
        if parse_mode(self.task_id, self.mode) not in FLEET_MODES:
            raise ConfigurationError(
                f"task {self.task_id}: mode is {self.mode!r}, and a fleet is moved by "
                f"{' or '.join(sorted(FLEET_MODES))}; move single jobs by mm2_failover"
            )
        text = read_text(storage_path(self.manifest), ConfigurationError)
        if text is None:
            raise ConfigurationError("there is no such file; name the manifest", file=self.manifest)
        jobs = parse_manifest(text, self.manifest, waves=self.waves)
        check_places(jobs, self.manifest, storage_path)
        summary = ", ".join(f"{job.name} (wave {job.wave})" for job in jobs)
        context["ti"].xcom_push(key="summary", value=summary)
        self.log.info("%d jobs: %s", len(jobs), summary)
        return {
            "file": self.manifest,
            "digest": sha256(text.encode()).hexdigest(),
            "jobs": [job.to_json() for job in jobs],
        }


class PreviewFleetOperator(BaseOperator):
    """Says what a fleet failover would cost from where its jobs stand now; changes nothing.

    Args:
        manifest: What ``ReadFleetManifestOperator`` returned.
        mode: ``planned`` or ``disaster``.
        archive: The archive of offset syncs; what the topic has since is read once.
        mm2_conn_id: Id of a connection of type ``mm2``.

    Returns:
        ``totals``, ``jobs`` (each with its numbers), ``allowed`` (the sum of what the jobs allow
        without approval) and ``digest``. Beside it the XComs ``summary``, ``table``, ``allowed``
        and ``costs`` (the numbers as ``ApproveFailoverOperator`` takes a forecast).

    Raises:
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        ClusterUnreachableError: A cluster does not answer.
    """

    template_fields: Sequence[str] = ("manifest", "mode", "archive", "mm2_conn_id")

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any],
        mode: str = FailoverMode.PLANNED.value,
        archive: str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.manifest = manifest
        self.mode = mode
        self.archive = archive
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Plan all jobs, and add up."""
        jobs = jobs_of(self.manifest)
        archive = given(self.archive)
        mode = parse_mode(self.task_id, self.mode)
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        request = PreviewRequest(
            pair=quick(pair) if mode is FailoverMode.DISASTER else pair,
            mode=mode,
            archive=SyncArchive(storage_path(archive)) if archive else None,
            open_place=storage_path,
        )
        preview = preview_to_json(preview_fleet(jobs, request))
        preview["manifest"] = self.manifest["digest"]
        preview["allowed"] = {name: sum(getattr(job, name) for job in jobs) for name in THRESHOLDS}
        preview["digest"] = digest_of(preview)
        preview["summary"] = summarize_preview(preview)
        totals = preview["totals"]
        push = context["ti"].xcom_push
        push(key="summary", value=preview["summary"])
        push(key="table", value=preview["summary"].splitlines())
        push(key="allowed", value=preview["allowed"])
        costs = {name: {"at_most": totals[name]} for name in ("read_again", "at_risk")}
        push(key="costs", value={"totals": costs})
        self.log.info("%s", preview["summary"])
        return preview


class FleetWaveOperator(BaseOperator):
    """Returns the jobs of one wave, for a task group to expand over; none where the wave is empty.

    Each job has the settings of the manifest, ``after_jobs`` (the settings of all jobs that it is
    after), ``waits_for`` (the numbers in this wave of those of this wave, by name), ``ask``, and
    its thresholds. Where a person was asked, they are raised to what was approved for it: a plan
    that is worse asks again.

    Args:
        manifest: What ``ReadFleetManifestOperator`` returned.
        preview: What ``PreviewFleetOperator`` returned.
        approval: What ``ApproveFailoverOperator`` returned for the preview.
        wave: The wave's number, from 1.
        ask: When a person was to be asked: ``never`` counts for each job, too.
        mode: ``planned`` or ``disaster``.

    Raises:
        HandoverError: Another preview or manifest was approved, or it was rejected.
    """

    template_fields: Sequence[str] = ("manifest", "preview", "approval", "ask", "mode")

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any],
        preview: Mapping[str, Any],
        approval: Mapping[str, Any],
        wave: int,
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
        self.ask = ask
        self.mode = mode

    @fails_at_once()
    def execute(self, context: Context) -> list[dict[str, Any]]:  # noqa: ARG002 - Airflow's signature
        """Select the jobs, and bound each by what was approved for it."""
        self._check_approval()
        by_name = {job.name: job for job in jobs_of(self.manifest)}
        jobs = [job for job in by_name.values() if job.wave == self.wave]
        numbers = {job.name: number for number, job in enumerate(jobs)}
        # Without a question nobody has approved more than each job allows itself.
        was_asked = bool(self.approval.get("asked"))
        costs = {job["name"]: job for job in self.preview["jobs"]}
        self.log.info("Wave %d: %s", self.wave, ", ".join(numbers) or "no jobs")
        ask = Ask.NEVER if self.ask == Ask.NEVER else Ask.ABOVE_THRESHOLDS
        return [
            {
                **job.to_json(),
                **(_bounds(job, costs[job.name]) if was_asked else {}),
                "heartbeat_timeout": self._heartbeat_timeout(job),
                "after_jobs": [by_name[name].to_json() for name in job.after],
                "waits_for": {name: numbers[name] for name in job.after if name in numbers},
                "ask": ask.value,
            }
            for job in jobs
        ]

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


def jobs_of(manifest: Mapping[str, Any]) -> list[FleetJob]:
    """Return the jobs that ``ReadFleetManifestOperator`` returned."""
    return [FleetJob.from_json(job) for job in manifest["jobs"]]


def _bounds(job: FleetJob, cost: Mapping[str, Any]) -> dict[str, int]:
    """Return a job's thresholds; what is not known was not approved."""
    approved = zip(THRESHOLDS, ("refused", "read_again", "at_risk"), strict=True)
    return {
        threshold: max(getattr(job, threshold), int(cost[name] or 0))
        for threshold, name in approved
    }
