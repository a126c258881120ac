"""The step that answers where the job continues on the target cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    FailoverPlan,
    OnUnmapped,
    Positions,
    Strategy,
    Verdict,
)
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError, PositionError, as_class
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.observability import emit_plan
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.first_plan import read_named_plan, read_plan_of_fence
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.pairs import pair_of
from airflow_mm2_offsets.operators.plan_settings import (
    PLAN_SETTINGS,
    parse_plan_settings,
    plan_settings_of,
)
from airflow_mm2_offsets.operators.plan_xcoms import keep_plan, tell_plan
from airflow_mm2_offsets.operators.settings import (
    check_location,
    given,
    is_true,
    leaves_job_alone,
    parse_mode,
)
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.lost_parts import LostParts, with_what_is_left
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_without
from airflow_mm2_offsets.planning.plan_file import read_plan, save_plan
from airflow_mm2_offsets.planning.source_ends import ends_from_json
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.handover import check_unmoved
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.offsets import format_offsets, to_positions
from airflow_mm2_offsets.spark.position_ids import check_ids


class TranslateOffsetsOperator(BaseOperator):
    """Translates a job's positions on the source to positions on the target.

    Give ``positions``, ``checkpoint``, or both: both must then agree.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        positions: Topic to partition to next offset, as any mapping or as Spark's JSON text, also
            the output of a task that reads them elsewhere (docs/positions.md). Airflow 3.1 takes no
            numbers as keys of a dict: give partitions as text there.
        pending: Where the batch ends that the job began and did not commit, likewise, if any.
        checkpoint: The job's checkpoint location, to read both from, or to compare them with: the
            job may have run since.
        clusters: The ids of clusters and topics when the positions were first read:
            ``ReadSparkCheckpointOperator`` and ``note_positions`` return them. A topic that was
            recreated since is then refused; without them only what happens after this task can be
            noticed.
        replicated: What ``Mm2ReplicatedSensor`` returned: the source's ends that its first look
            saw. Where MirrorMaker 2 has lost its first offset syncs, they bound what it copied
            before; without them and without an archive such a partition is seldom exact.
        mode: The mode of the failover (``core.mode``). In a disaster the answer comes from what is
            left of the source; in a drill the job runs on, and no plan is kept.
        exchanged: The job moves against the copying: from the target of ``mm2_conn_id`` to its
            source; see docs/failback.md. May be a templated string.
        first_plan: With ``exchanged``: the file of the plan that the job was moved by, or None.
        home_control: With ``exchanged``: the control location that the job returns to; its fence
            names the first plan where ``first_plan`` does not.
        is_dry_run: The job runs on, and no plan is kept. May be a templated string.
        plan_path: A file to keep the plan in, for retries and for auditors. A retry returns that
            plan if it is whole, of these positions, clusters and topics, and not contradicted by
            what MirrorMaker 2 has copied since.
        strategy: ``safe`` loses nothing. A plan by ``linear`` or ``kafka`` that may lose records is
            not safe, and refused as one without an answer; see ``core.Strategy``.
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
        give_up: How many records may be lost that MirrorMaker 2 passed over without copying them:
            the number that the refusals name, for all topic-partitions together.

    Returns:
        The plan (``core.plan``); of a long one its brief (``core.brief``), and the whole plan lies
        in ``plan_path``. Beside it the XComs ``summary`` (one paragraph), ``table`` (a list of
        lines), ``starting_offsets`` (what Spark's startingOffsets takes; where it is too long for
        an argument, ``@`` and the location of a file with it) and ``target_topics`` (separated by
        commas). docs/xcom.md says what is long.

    Raises:
        TranslationRefusedError: Partitions without an answer, or with one that is not safe, by
            name. Plan and summary are pushed.
        ForeignPositionsError: A file beside the checkpoint says that it is of another cluster, or
            of a topic that was recreated since.
        HandoverError: The checkpoint differs from ``positions``, or a cluster or topic has another
            id than in ``clusters``.
        PlanError: The kept plan is damaged, edited, of other clusters, topics or positions, or
            contradicts what the clusters say now.
        Mm2OffsetsError: See ``planning.plan.plan_failover``.
    """

    operator_extra_links = page_links("plan")
    template_fields: Sequence[str] = (
        "mm2_conn_id",
        "positions",
        "pending",
        "checkpoint",
        "clusters",
        "replicated",
        "plan_path",
        "archive",
        "mode",
        "exchanged",
        "home_control",
        "is_dry_run",
        *PLAN_SETTINGS,
    )

    def __init__(
        self,
        *,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        positions: Mapping[str, Any] | str | None = None,
        pending: Mapping[str, Any] | str | None = None,
        checkpoint: str | None = None,
        clusters: Mapping[str, Any] | None = None,
        replicated: Mapping[str, Any] | None = None,
        mode: str = FailoverMode.PLANNED.value,
        exchanged: bool | str = False,
        first_plan: str | None = None,
        home_control: str | None = None,
        is_dry_run: bool | str = False,
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
        give_up: int = 0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions
        self.pending = pending
        self.checkpoint = checkpoint
        self.clusters = clusters
        self.replicated = replicated
        self.mode = mode
        self.exchanged = exchanged
        self.first_plan = first_plan
        self.home_control = home_control
        self.is_dry_run = is_dry_run
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
        self.give_up = give_up

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Make the plan, or take the one that an earlier try made."""
        positions, pending = self._read_positions()
        plan = self._plan(positions, pending, context.get("run_id"))
        results = LongResults.of(context)
        content = keep_plan(results, plan, self._kept_path())
        emit_plan(content)
        push = context["ti"].xcom_push
        self.log.info("%s", tell_plan(push, plan, content))
        if plan.verdict is not Verdict.READY:
            # A task that fails returns nothing, and its user needs the plan all the more.
            push(key="return_value", value=content)
        targets = plan.target_positions()
        offsets = results.offsets_argument(format_offsets(targets), beside=self._kept_path())
        push(key="starting_offsets", value=offsets)
        push(key="target_topics", value=",".join(targets))
        return content

    def _kept_path(self) -> str | None:
        """Return the file that the plan is kept in; None where it is not kept."""
        return str(self.plan_path) if self.plan_path and not leaves_job_alone(self) else None

    def _read_positions(self) -> tuple[Positions, Positions | None]:
        if self.positions is None and not self.checkpoint:
            raise ConfigurationError(
                f"task {self.task_id}: give positions, checkpoint or both; neither is given"
            )
        if self.positions is None:
            checkpoint = self._read_checkpoint(storage_path(str(self.checkpoint)))
            return checkpoint.positions, checkpoint.pending
        positions = self._parse("positions")
        pending = self._parse("pending") if self.pending else None
        if self.checkpoint and not leaves_job_alone(self):
            self._check_unmoved(storage_path(self.checkpoint), positions, pending)
        return positions, pending

    def _parse(self, field: str) -> Positions:
        try:
            return to_positions(getattr(self, field))
        except PositionError as error:
            message = f"task {self.task_id}: {field}: {error}"
            raise as_class(PositionError, error, message) from error

    def _check_unmoved(
        self, location: UPath, positions: Positions, pending: Positions | None
    ) -> None:
        """Raise if the job has run since its positions were read."""
        if self._mode() is FailoverMode.DISASTER and (lost := why_lost(location)):
            self.log.warning("The positions are not compared with the checkpoint: %s", lost)
            return
        check_unmoved(self._read_checkpoint(location), positions, pending)

    def _read_checkpoint(self, location: UPath) -> Checkpoint:
        return read_checkpoint_of(
            pair_of(self),
            location,
            open_path=storage_path,
            ask_source=is_true(self, "read_source"),
            compare_topics=not self.clusters,
        )

    def _mode(self) -> FailoverMode:
        return parse_mode(self.task_id, self.mode)

    def _archive(self) -> SyncArchive | None:
        if not self.archive:
            return None
        skip_damaged = is_true(self, "skip_damaged")
        return SyncArchive(storage_path(self.archive), skip_damaged=skip_damaged)

    def _plan(
        self, positions: Positions, pending: Positions | None, run_id: str | None
    ) -> FailoverPlan:
        location = self._kept_path()
        path = storage_path(location) if location else None
        pair = pair_of(self)
        kept = read_plan(path) if path else None

        def plan_or_check(lost: LostParts) -> FailoverPlan:
            if path is not None and kept is not None:
                ids = self._checked_ids(pair, positions, lost)
                check_kept_plan(kept, path, pair, positions=positions, pending=pending, ids=ids)
                return kept
            return self._make_plan(pair, positions, pending, lost)

        is_disaster = self._mode() is FailoverMode.DISASTER
        plan = (
            with_what_is_left(pair, positions, plan_or_check)
            if is_disaster
            else plan_or_check(LostParts())
        )
        if kept is not None:
            self.log.info("Took the plan of %s from %s", kept.created_at, path)
            return kept
        plan = replace(plan, run_id=run_id)
        if path is not None and plan.verdict is Verdict.READY:
            save_plan(path, plan)
        return plan

    def _make_plan(
        self, pair: ClusterPair, positions: Positions, pending: Positions | None, lost: LostParts
    ) -> FailoverPlan:
        """Return a new plan; its clusters and topics are those that the positions are of."""
        ids = self._checked_ids(pair, positions, lost) if self.clusters else None
        plan = plan_without(lost, pair, positions, pending=pending, options=self._options())
        if ids is not None:
            check_ids(ids, plan.ids)
        return plan

    def parse_settings(self) -> PlanOptions:
        """Return the options with the first plan that is named.

        Raises:
            ConfigurationError: A setting is invalid, or the first plan is not there.
        """
        options = parse_plan_settings(plan_settings_of(self))
        return replace(options, first_plan=self._named_first_plan())

    def _options(self) -> PlanOptions:
        options = self.parse_settings()
        if options.first_plan is None and is_true(self, "exchanged"):
            options = replace(options, first_plan=read_plan_of_fence(self.home_control))
        ends = ends_from_json((self.replicated or {}).get("source_ends") or {})
        return replace(options, archive=self._archive(), source_ends=ends)

    def _named_first_plan(self) -> FailoverPlan | None:
        """Return the plan that the user names as the one that the job was moved by."""
        if not is_true(self, "exchanged") or not (named := given(self.first_plan)):
            return None
        check_location(self, "first_plan")
        return read_named_plan(named)

    def _checked_ids(self, pair: ClusterPair, positions: Positions, lost: LostParts) -> PairIds:
        """Return the present ids; they must be those of when the positions were first read."""
        ask_source = self.read_source and not lost.source_is_silent
        now = read_known_ids(pair, positions, ask_source=ask_source)
        if self.clusters:
            check_ids(PairIds.from_json(self.clusters), now)
        return now
