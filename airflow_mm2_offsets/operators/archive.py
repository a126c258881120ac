"""The step that keeps an archive of offset syncs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context

from airflow_mm2_offsets.archive import COMPACT_OVER, SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.observability import emit_archive
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    JobArgument,
    archive_of,
    job_of_task,
    job_to_template,
    mirror_of,
)


class ArchiveSyncsOperator(BaseOperator):
    """Adds the new offset syncs of the topic to an archive.

    Give ``job``, or ``archive``.

    Args:
        job: A job, or its name in the file of jobs: the mirror that its next move goes by is
            archived, where the job is declared to have its archive.
        archive: A folder for one ``mm2`` connection alone, on storage that outlives both clusters:
            any that Airflow's ``ObjectStoragePath`` knows.
        mm2_conn_id: With ``archive``: id of a connection of type ``mm2``.
        compact_over: Merge the files into one if there are more than so many.
        keep_days: Keep syncs for that many days at least; None keeps all.
        skip_damaged: Continue without damaged or missing files, and read their syncs again as far
            as the topic still has them.

    Returns:
        ``new_syncs``, ``total``, ``skipped``, ``incarnation``, ``next_offset``, ``as_of``,
        ``notes`` (recreated topics) and ``compacted`` (how many files became one).

    Raises:
        ArchiveError: The archive is of another pair of clusters, damaged, or out of reach.
        ConfigurationError: Neither, or both, are given; or there is no such job.
        Mm2OffsetsError: See ``archive.update.archive_syncs``.
        AirflowSkipException: The job has no archive.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("job", "archive", "mm2_conn_id")

    def __init__(
        self,
        *,
        job: JobArgument | None = None,
        archive: str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        compact_over: int = COMPACT_OVER,
        keep_days: float | None = None,
        skip_damaged: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.job = job_to_template(job)
        self.archive = archive
        self.mm2_conn_id = mm2_conn_id
        self.compact_over = compact_over
        self.keep_days = keep_days
        self.skip_damaged = skip_damaged

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Archive, and compact."""
        location, conn_id = self._place()
        archive = SyncArchive(storage_path(location), skip_damaged=self.skip_damaged)
        run = archive_syncs(Mm2OffsetHook(conn_id).get_conn(), archive)
        keep = None if self.keep_days is None else timedelta(days=self.keep_days)
        compacted = archive.compact(over=self.compact_over, keep=keep)
        self.log.info("Archived %d new syncs; %d in all", run.new_syncs, run.total)
        emit_archive(run.to_json())
        return {**run.to_json(), "compacted": compacted}

    def _place(self) -> tuple[str, str]:
        """Return where the archive is, and the connection of its clusters."""
        if (self.job is None) == (self.archive is None):
            both = "neither is given" if self.job is None else "both are given"
            raise ConfigurationError(
                f"task {self.task_id}: job or archive: {both}; give one of them"
            )
        if self.archive is not None:
            return self.archive, self.mm2_conn_id
        job = job_of_task(self)
        move = Mover(job, "", PLANNED, storage_path).find()
        if (archive := archive_of(move)) is None:
            raise AirflowSkipException(f"job {job.name} has no archive: nothing is archived")
        return archive, mirror_of(move)
