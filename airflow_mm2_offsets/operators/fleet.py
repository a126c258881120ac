"""The steps of a fleet failover before its waves: the manifest and the preview."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.plan import digest_of
from airflow_mm2_offsets.core.summary import fold
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.manifest import parse_manifest
from airflow_mm2_offsets.fleet.places import check_places
from airflow_mm2_offsets.fleet.preview import PreviewRequest, preview_fleet, preview_to_json
from airflow_mm2_offsets.fleet.texts import summarize_preview
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.plan_settings import parse_trial_settings
from airflow_mm2_offsets.operators.run_conf import check_run_conf
from airflow_mm2_offsets.operators.settings import given, parse_mode
from airflow_mm2_offsets.planning.lost_parts import quick
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.storage import read_text

THRESHOLDS = ("max_refused", "max_read_again", "max_at_risk")
"""What a job allows without approval; the total of all jobs allows the sum."""
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
        ConfigurationError: The file is not there or is no manifest (see ``parse_manifest``), jobs
            share a folder, or the conf of the run has a key that no param of the DAG has.
    """

    operator_extra_links = page_links("run")
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
        check_run_conf(context)
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
            "file": without_login(self.manifest),
            "digest": sha256(text.encode()).hexdigest(),
            "jobs": [job.to_json() for job in jobs],
        }


class PreviewFleetOperator(BaseOperator):
    """Says what a fleet failover would cost from where its jobs stand now; changes nothing.

    Args:
        manifest: What ``ReadFleetManifestOperator`` returned.
        mode: ``planned`` or ``disaster``.
        archive: The archive of offset syncs; what the topic has since is read once.
        plan_options: See ``CheckFailoverOperator``; they count for all jobs.
        mm2_conn_id: Id of a connection of type ``mm2``.

    Returns:
        ``totals``, ``jobs`` (each with its numbers), ``allowed`` (the sum of what the jobs allow
        without approval) and ``digest``. Beside it the XComs ``summary``, ``table``, ``allowed``
        and ``costs`` (the numbers as ``ApproveFailoverOperator`` takes a forecast).

    Raises:
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        ClusterUnreachableError: A cluster does not answer.
        ConfigurationError: The ``reads`` of a job are not what its checkpoint reads.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("manifest", "mode", "archive", "plan_options", "mm2_conn_id")

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any],
        mode: str = FailoverMode.PLANNED.value,
        archive: str | None = None,
        plan_options: Mapping[str, Any] | str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.manifest = manifest
        self.mode = mode
        self.archive = archive
        self.plan_options = plan_options
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Plan all jobs, and add up."""
        jobs = jobs_of(self.manifest)
        mode = parse_mode(self.task_id, self.mode)
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        request = PreviewRequest(
            pair=quick(pair) if mode is FailoverMode.DISASTER else pair,
            mode=mode,
            options=self._options(),
            open_place=storage_path,
        )
        preview = preview_to_json(preview_fleet(jobs, request))
        preview["manifest"] = self.manifest["digest"]
        preview["allowed"] = {name: sum(getattr(job, name) for job in jobs) for name in THRESHOLDS}
        preview["digest"] = digest_of(preview)
        preview["summary"] = summarize_preview(preview)
        totals = preview["totals"]
        push = context["ti"].xcom_push
        push(key="summary", value=fold(preview["summary"]))
        push(key="table", value=preview["summary"].splitlines())
        push(key="allowed", value=preview["allowed"])
        costs = {name: {"at_most": totals[name]} for name in ("read_again", "at_risk")}
        push(key="costs", value={"totals": costs})
        self.log.info("%s", preview["summary"])
        return preview

    def _options(self) -> PlanOptions:
        trial = parse_trial_settings(self, self.plan_options)
        if (location := given(self.archive)) is None:
            return trial.options
        archive = SyncArchive(storage_path(location), skip_damaged=trial.skip_damaged)
        return replace(trial.options, archive=archive)


def jobs_of(manifest: Mapping[str, Any]) -> list[FleetJob]:
    """Return the jobs that ``ReadFleetManifestOperator`` returned."""
    return [FleetJob.from_json(job) for job in manifest["jobs"]]
