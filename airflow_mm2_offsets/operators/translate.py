"""The step that answers where the job continues on the target cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    FailoverPlan,
    OnUnmapped,
    Positions,
    Strategy,
    check_positions,
    summarize,
)
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.options import (
    DEFAULT_OPTIONS,
    PLAN_OPTIONS,
    parse_plan_options,
)
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.plan_file import read_plan, save_plan
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.handover import check_unmoved
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.spark.position_ids import check_ids


class TranslateOffsetsOperator(BaseOperator):
    """Translates a job's positions on the source to positions on the target.

    Give ``positions``, ``checkpoint``, or both: both must then agree.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        positions: Topic to partition to next offset, as a dict or as Spark's JSON text. Airflow 3.1
            takes no numbers as keys of a dict: give partitions as text there.
        pending: Where the batch ends that the job began and did not commit, likewise, if any.
        checkpoint: The job's checkpoint location, to read both from, or to compare them with: the
            job may have run since.
        clusters: The ids of clusters and topics when the positions were first read:
            ``ReadSparkCheckpointOperator`` returns them. A topic that was recreated since is then
            refused; without them only what happens after this task can be noticed.
        plan_path: A file to keep the plan in, for retries and for auditors. A retry returns that
            plan if it is whole, of these positions, clusters and topics, and not contradicted by
            what MirrorMaker 2 has copied since.
        strategy: ``safe`` loses nothing; see ``core.Strategy``.
        read_source: Ask the source too: positions are checked against it, and records are
            matched by content.
        archive: Location of the archive that ``ArchiveSyncsOperator`` keeps. It adds syncs that
            the topic no longer has; without ``read_source`` it replaces a syncs topic that lies on
            the source.
        skip_damaged: Translate without the archive's damaged or missing files.
        on_unmapped: What to do with a partition that has no answer: ``fail``, or start it at the
            target's ``earliest`` or ``latest`` offset, or by ``timestamp``. The plan names and
            counts each partition that took it.
        unmapped_time: For ``timestamp``: how old the position is, as ISO 8601 with a time zone;
            None takes the time of the source's record there.
        unmapped_margin: For ``timestamp``: seconds to start earlier.
        sole_writer: Your word that no one but MirrorMaker 2 writes to the target's topics, in
            order, that these are not compacted, and that no transform makes two copies of one
            record differ: then records may be counted.
        changed_records: A transform changes records on the way, so that a record may differ from
            its copy. Needless where Connect can be asked. May be a templated string.
        max_evidence_bytes: How much of each cluster's records may be read; 0 reads none.

    Returns:
        The plan (``core.plan``). Beside it the XComs ``summary`` (a table), ``table`` (its lines,
        for Airflow's page), ``starting_offsets`` (what Spark's startingOffsets takes) and
        ``target_topics`` (separated by commas).

    Raises:
        TranslationRefusedError: Partitions without an answer, by name. Plan and summary are
            pushed.
        HandoverError: The checkpoint differs from ``positions``, or a cluster or topic has another
            id than in ``clusters``.
        PlanError: The kept plan is damaged, edited, of other clusters, topics or positions, or
            contradicts what the clusters say now.
        Mm2OffsetsError: See ``planning.plan.plan_failover``.
    """

    template_fields: Sequence[str] = (
        "mm2_conn_id",
        "positions",
        "pending",
        "checkpoint",
        "clusters",
        "plan_path",
        "archive",
        "strategy",
        "on_unmapped",
        "unmapped_time",
        "changed_records",
    )

    def __init__(
        self,
        *,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        positions: Mapping[str, Any] | str | None = None,
        pending: Mapping[str, Any] | str | None = None,
        checkpoint: str | None = None,
        clusters: Mapping[str, Any] | None = None,
        plan_path: str | None = None,
        archive: str | None = None,
        skip_damaged: bool = False,
        strategy: str = Strategy.SAFE.value,
        read_source: bool = True,
        on_unmapped: str = OnUnmapped.FAIL.value,
        unmapped_time: str | None = None,
        unmapped_margin: float = DEFAULT_OPTIONS.unmapped_margin,
        sole_writer: bool = False,
        changed_records: bool | str = False,
        max_evidence_bytes: int = DEFAULT_OPTIONS.max_evidence_bytes,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions
        self.pending = pending
        self.checkpoint = checkpoint
        self.clusters = clusters
        self.plan_path = plan_path
        self.archive = archive
        self.skip_damaged = skip_damaged
        self.strategy = strategy
        self.read_source = read_source
        self.on_unmapped = on_unmapped
        self.unmapped_time = unmapped_time
        self.unmapped_margin = unmapped_margin
        self.sole_writer = sole_writer
        self.changed_records = changed_records
        self.max_evidence_bytes = max_evidence_bytes

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Make the plan, or take the one that an earlier try made."""
        positions, pending = self._read_positions()
        plan = self._plan(positions, pending)
        push = context["ti"].xcom_push
        summary = summarize(plan)
        push(key="summary", value=summary)
        # Airflow's page shows a text as one paragraph, and a list line by line.
        push(key="table", value=summary.splitlines())
        self.log.info("%s", summary)
        if plan.refused:
            # A task that fails returns nothing, and its user needs the plan all the more.
            push(key="return_value", value=plan.to_json())
        targets = plan.target_positions()
        push(key="starting_offsets", value=format_offsets(targets))
        push(key="target_topics", value=",".join(targets))
        return plan.to_json()

    def _read_positions(self) -> tuple[Positions, Positions | None]:
        if self.positions is None and self.checkpoint is None:
            raise ConfigurationError(
                f"task {self.task_id}: give positions, checkpoint or both; neither is given"
            )
        checkpoint = read_checkpoint(storage_path(self.checkpoint)) if self.checkpoint else None
        if self.positions is None and checkpoint is not None:
            return checkpoint.positions, checkpoint.pending
        positions = _parse(self.positions)
        pending = _parse(self.pending) if self.pending else None
        if checkpoint is not None:
            check_unmoved(checkpoint, positions, pending)
        return positions, pending

    def _archive(self) -> SyncArchive | None:
        if not self.archive:
            return None
        return SyncArchive(storage_path(self.archive), skip_damaged=self.skip_damaged)

    def _plan(self, positions: Positions, pending: Positions | None) -> FailoverPlan:
        path = storage_path(self.plan_path) if self.plan_path else None
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        kept = read_plan(path) if path else None
        ids = self._checked_ids(pair, positions) if kept or self.clusters else None
        if path is not None and kept is not None and ids is not None:
            check_kept_plan(kept, path, pair, positions=positions, pending=pending, ids=ids)
            self.log.info("Took the plan of %s from %s", kept.created_at, path)
            return kept
        values = {name: getattr(self, name) for name in PLAN_OPTIONS}
        options = replace(parse_plan_options(values), archive=self._archive())
        plan = plan_failover(pair, positions, pending=pending, options=options)
        if ids is not None:
            check_ids(ids, plan.ids)
        if path is not None and not plan.refused:
            save_plan(path, plan)
        return plan

    def _checked_ids(self, pair: ClusterPair, positions: Positions) -> PairIds:
        """Return the present ids; they must be those of when the positions were first read."""
        now = read_known_ids(pair, positions, ask_source=self.read_source)
        if self.clusters:
            check_ids(PairIds.from_json(self.clusters), now)
        return now


def _parse(positions: Mapping[str, Any] | str | None) -> Positions:
    return parse_offsets(positions) if isinstance(positions, str) else check_positions(positions)
