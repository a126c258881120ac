"""The step that carries a job's state over to the target cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.migration import MigrationOptions, migrate_checkpoint
from airflow_mm2_offsets.migration.report import summarize_migration
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.logs import read_logs
from airflow_mm2_offsets.spark.position_ids import check_ids


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
        skip_damaged: Translate without the archive's damaged or missing files.
        read_source: Ask the source too; without it few positions are known exactly.
        sole_writer: Your word that no one but MirrorMaker 2 writes to the target's topics, in
            order, that these are not compacted, and that no transform makes two copies of one
            record differ: then records may be counted.
        changed_records: A transform changes records on the way, so that a record may differ from
            its copy. Needless where Connect can be asked.
        max_evidence_bytes: How much of each cluster's records may be read; 0 reads none.
        give_up: How many records may be lost that MirrorMaker 2 passed over without copying them:
            the number that the refusals name, for all topic-partitions together.
        allow_bounded: Where a position is not known exactly, take its lower bound: nothing is
            lost, and records may be counted twice.
        allow_new_partitions: Pass over partitions of the target that the checkpoint does not
            know, for jobs that read partitions they name (``assign``).
        control: The job's control location. It says the job's ``subscribePattern``, if it has one.
        subscribe_pattern: The job's ``subscribePattern`` on the target. By default that of the job
            in ``control``; empty text: it subscribes by name. A topic there that
            matches, and that the checkpoint does not know, is refused.
        new_topics: Such topics that the job is to read from their beginning.
        sink: Where the job writes files or a table, if it does: one that has batches which the
            checkpoint does not know would drop as many new ones, and is refused.
        txn_app_id: What the job gives Delta as ``txnAppId``, or Hudi as
            ``hoodie.datasource.write.streaming.checkpoint.identifier``, if it does.
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
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *("checkpoint", "control", "target_checkpoint", "target_uri"),
        *("subscribe_pattern", "new_topics", "sink", "txn_app_id"),
        *("mm2_conn_id", "archive", "clusters"),
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
        skip_damaged: bool = False,
        read_source: bool = True,
        sole_writer: bool = False,
        changed_records: bool = False,
        max_evidence_bytes: int = DEFAULT_OPTIONS.max_evidence_bytes,
        give_up: int = 0,
        allow_bounded: bool = False,
        allow_new_partitions: bool = False,
        subscribe_pattern: str | None = None,
        new_topics: Sequence[str] = (),
        sink: str | None = None,
        txn_app_id: str | None = None,
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
        self.skip_damaged = skip_damaged
        self.read_source = read_source
        self.sole_writer = sole_writer
        self.changed_records = changed_records
        self.max_evidence_bytes = max_evidence_bytes
        self.give_up = give_up
        self.allow_bounded = allow_bounded
        self.allow_new_partitions = allow_new_partitions
        self.subscribe_pattern = subscribe_pattern
        self.new_topics = new_topics
        self.sink = sink
        self.txn_app_id = txn_app_id
        self.target_uri = target_uri

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Write the copy, or accept the one that an earlier try wrote."""
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        if self.clusters:
            noted_ids = PairIds.from_json(self.clusters)
            topics = noted_ids.source.topic_ids
            check_ids(noted_ids, read_known_ids(pair, topics, ask_source=self.read_source))
        report = migrate_checkpoint(
            pair,
            storage_path(self.checkpoint),
            storage_path(self.target_checkpoint),
            self._options(),
        )
        summary = summarize_migration(report)
        self.log.info("%s", summary)
        push = context["ti"].xcom_push
        push(key="summary", value=summary)
        push(key="committed_batch", value=report["committed_batch"])
        push(key="target_topics", value=",".join(sorted(report["topics"].values())))
        return report

    def _options(self) -> MigrationOptions:
        archive = None
        if self.archive:
            archive = SyncArchive(storage_path(self.archive), skip_damaged=self.skip_damaged)
        return MigrationOptions(
            plan=PlanOptions(
                read_source=self.read_source,
                sole_writer=self.sole_writer,
                changed_records=self.changed_records,
                max_evidence_bytes=self.max_evidence_bytes,
                give_up=self.give_up,
                archive=archive,
            ),
            allow_bounded=self.allow_bounded,
            allow_new_partitions=self.allow_new_partitions,
            subscribe_pattern=self.subscribe_pattern,
            source_patterns=self._source_patterns(),
            new_topics=self.new_topics,
            sink=storage_path(self.sink) if self.sink else None,
            txn_app_id=self.txn_app_id,
            target_uri=self.target_uri,
            open_path=storage_path,
        )

    def _source_patterns(self) -> tuple[str, ...]:
        driver = read_driver(storage_path(self.control)) if self.control else None
        if driver is None:
            return ()
        query_id = read_logs(storage_path(self.checkpoint)).query_id
        return driver.subscribe_patterns.get(query_id, ())
