"""The step that carries a job's state over to the target cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.migration import MigrationOptions, migrate_checkpoint
from airflow_mm2_offsets.migration.report import summarize_migration
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.plan_settings import parse_trial_settings
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.logs import read_logs
from airflow_mm2_offsets.spark.position_ids import check_ids

ALLOWED: Final = frozenset({"bounded", "new_partitions"})


class MigrateSparkCheckpointOperator(BaseOperator):
    """Copies a stopped job's checkpoint, with the offsets of the target cluster.

    The same query continues from the copy: aggregations, deduplication, joins and exactly-once
    sinks keep their state. The original is only read. A retry accepts a copy that an earlier try
    has finished, and completes one that it has not.

    Args:
        checkpoint: The job's checkpoint location on the source.
        target_checkpoint: Where to write the copy; nothing may be there.
        mm2_conn_id: Id of a connection of type ``mm2``.
        clusters: The ids of clusters and topics when the positions were first read:
            ``ReadSparkCheckpointOperator`` returns them. A topic that was recreated since is then
            refused.
        archive: Location of the archive that ``ArchiveSyncsOperator`` keeps.
        options: How the positions are translated: see ``TranslateOffsetsOperator``.
        allow: What is taken although it may differ: ``bounded`` (where a position is not known
            exactly, its lower bound: nothing is lost, and records may be counted twice) and
            ``new_partitions`` (those of the target that the checkpoint does not know are passed
            over, for jobs that read partitions they name, by ``assign``).
        control: The job's control location. It says the job's ``subscribePattern``, if it has one.
        subscribe_pattern: The job's ``subscribePattern`` on the target. By default that of the job
            in ``control``; empty text: it subscribes by name. A topic there that
            matches, and that the checkpoint does not know, is refused.
        new_topics: Such topics that the job is to read from their beginning.
        sink: Where the job writes files or a table, if it does: one that has batches which the
            checkpoint does not know would drop as many new ones, and is refused. A location; or a
            mapping of ``path`` and ``txn_app_id``, what the job gives Delta as ``txnAppId``, or
            Hudi as ``hoodie.datasource.write.streaming.checkpoint.identifier``.
        target_uri: How Spark spells ``target_checkpoint``. Only for state that is kept by absolute
            paths (``transformWithState``), where the copy lies on another kind of storage.

    Returns:
        What was done (``docs/checkpoints.md``). Beside it the XComs ``summary``,
        ``committed_batch`` (the last one) and ``target_topics`` (separated by commas): what the
        job must subscribe to.

    Raises:
        TranslationRefusedError: A position is not known exactly; each is named with its batch.
        CheckpointError: The checkpoint can't be migrated, still changes, or a storage failed.
        HandoverError: A cluster or topic has another id than in ``clusters``.
        NotReadyError: The sink is further than the checkpoint.
        ConfigurationError: ``options``, ``allow`` or ``sink`` has an unknown word or value.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *("checkpoint", "control", "target_checkpoint", "target_uri"),
        *("subscribe_pattern", "new_topics", "sink"),
        *("mm2_conn_id", "archive", "clusters", "options"),
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        target_checkpoint: str,
        control: str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        clusters: Mapping[str, Any] | None = None,
        archive: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        allow: Sequence[str] = (),
        subscribe_pattern: str | None = None,
        new_topics: Sequence[str] = (),
        sink: Mapping[str, str] | str | None = None,
        target_uri: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.checkpoint = checkpoint
        self.control = control
        self.target_checkpoint = target_checkpoint
        self.mm2_conn_id = mm2_conn_id
        self.clusters = clusters
        self.archive = archive
        self.options = options
        self.allow = allow
        self.subscribe_pattern = subscribe_pattern
        self.new_topics = new_topics
        self.sink = sink
        self.target_uri = target_uri

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Write the copy, or accept the one that an earlier try wrote."""
        options = self.parse_settings()
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        if self.clusters:
            noted_ids = PairIds.from_json(self.clusters)
            topics = noted_ids.source.topic_ids
            check_ids(noted_ids, read_known_ids(pair, topics, ask_source=options.plan.read_source))
        report = migrate_checkpoint(
            pair,
            storage_path(self.checkpoint),
            storage_path(self.target_checkpoint),
            options,
        )
        summary = summarize_migration(report)
        self.log.info("%s", summary)
        push = context["ti"].xcom_push
        push(key="summary", value=summary)
        push(key="committed_batch", value=report["committed_batch"])
        push(key="target_topics", value=",".join(sorted(report["topics"].values())))
        return report

    def parse_settings(self) -> MigrationOptions:
        """Return the options.

        Raises:
            ConfigurationError: One is unknown or invalid.
        """
        settings = parse_trial_settings(self)
        if unknown := {*self.allow} - ALLOWED:
            raise ConfigurationError(
                f"task {self.task_id}: allow names {', '.join(sorted(unknown))}; give some of "
                f"{', '.join(sorted(ALLOWED))}"
            )
        sink = {"path": self.sink} if isinstance(self.sink, str) else dict(self.sink or {})
        if sink and (set(sink) - {"path", "txn_app_id"} or not sink.get("path")):
            raise ConfigurationError(
                f"task {self.task_id}: sink has {', '.join(sorted(sink))}; give a location, or a "
                f"mapping of path and txn_app_id"
            )
        archive = None
        if self.archive:
            archive = SyncArchive(storage_path(self.archive), skip_damaged=settings.skip_damaged)
        return MigrationOptions(
            plan=replace(settings.options, archive=archive),
            allow_bounded="bounded" in self.allow,
            allow_new_partitions="new_partitions" in self.allow,
            subscribe_pattern=self.subscribe_pattern,
            source_patterns=self._source_patterns(),
            new_topics=self.new_topics,
            sink=storage_path(sink["path"]) if sink else None,
            txn_app_id=sink.get("txn_app_id"),
            target_uri=self.target_uri,
            open_path=storage_path,
        )

    def _source_patterns(self) -> tuple[str, ...]:
        driver = read_driver(storage_path(self.control)) if self.control else None
        if driver is None:
            return ()
        query_id = read_logs(storage_path(self.checkpoint)).query_id
        return driver.subscribe_patterns.get(query_id, ())
