"""The step that answers where the job continues on the target cluster, and what that costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction, FailoverPlan, Positions, Verdict
from airflow_mm2_offsets.core.brief import brief_forecast
from airflow_mm2_offsets.core.forecast import ForecastRequest
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.handover import check_unmoved, stopped_positions
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.observability import emit_forecast, emit_plan
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.moving import (
    MoveArgument,
    archive_of,
    mover_of,
    pair_of_move,
    plan_of_last_move,
    request_of,
    to_template,
)
from airflow_mm2_offsets.operators.plan_settings import (
    TrialSettings,
    parse_trial_settings,
    read_named_plan,
)
from airflow_mm2_offsets.operators.plan_xcoms import (
    forecast_texts,
    keep_plan,
    numbers_of,
    plan_texts,
)
from airflow_mm2_offsets.operators.settings import given, positions_of
from airflow_mm2_offsets.planning.forecast_file import forecast_once
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.lost_parts import LostParts, with_what_is_left
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_without
from airflow_mm2_offsets.planning.plan_file import read_plan, save_plan
from airflow_mm2_offsets.planning.source_ends import ends_from_json
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.positions.reading import PositionsReader
from airflow_mm2_offsets.spark.job_positions import JobPositions, parse_job_positions
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.spark.position_ids import check_ids

NOTE = "note"
"""The XCom of what a move would note in the journal, where the job is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a job stands, and what its plan is made with."""

    pair: ClusterPair
    positions: Positions
    options: PlanOptions
    pending: Positions | None = None
    clusters: Mapping[str, Any] | None = None
    """The ids of clusters and topics when the positions were first read."""
    plan_path: str | None = None
    """Where the plan is kept; None: it is not."""
    source_may_be_lost: bool = False
    as_of: str | None = None
    """When the job stood there, if it may have gone on since."""
    is_final: bool = False
    """Whether the job is handed over by the kept plan."""


class TranslateOffsetsOperator(BaseOperator):
    """Translates a job's positions on the source to positions on the target.

    Give ``move`` as a step of a move; else ``positions``, ``checkpoint``, or both.

    As a step of a move it also forecasts how many records are lost and read again, and notes both
    in the job's journal.

    Args:
        move: What is moved, and how.
        positions: Topic to partition to next offset, as any mapping or as Spark's JSON text, also
            the output of a task that reads them elsewhere (docs/positions.md). Airflow 3.1 takes no
            numbers as keys of a dict: give partitions as text there. Or all that
            ``ReadSparkCheckpointOperator``, ``StopSparkStreamingOperator`` or ``note_positions``
            returned: with the end of a pending batch, and with the ids of clusters and topics when
            the positions were first read. A topic that was recreated since is then refused; without
            the ids only what happens after this task can be noticed.
        checkpoint: The job's checkpoint location, to read the positions from, or to compare them
            with: the job may have run since.
        replicated: What ``Mm2ReplicatedSensor`` returned: the source's ends that its first look
            saw. Where MirrorMaker 2 has lost its first offset syncs, they bound what it copied
            before; without them and without an archive such a partition is seldom exact.
        mm2_conn_id: Id of a connection of type ``mm2``.
        to: The cluster that the job goes to, by its alias; None or empty: the target of
            ``mm2_conn_id``. With its source it is the way home: see docs/failback.md.
        archive: Location of the archive that ``ArchiveSyncsOperator`` keeps. It adds syncs that
            the topic no longer has; where the source is not read it replaces a syncs topic that
            lies on the source.
        plan_path: A file to keep the plan in, for retries and for auditors. A retry returns that
            plan if it is whole, of these positions, clusters and topics, and not contradicted by
            what MirrorMaker 2 has copied since.
        options: How the positions are translated: ``planning.options`` has each with its
            explanation, such as ``{"give_up": 12}``. Further: ``skip_damaged`` (go on without the
            archive's damaged or missing files), ``first_plan`` (on the way home: the file of the
            plan that the job was moved by); for the forecast of a disaster ``lost_at`` (when the
            source was lost, ISO 8601 with a zone) and ``max_rate`` (how many records per second
            each topic-partition was written at, at most). A mapping, or JSON text.

    Returns:
        The plan (``core.plan``); of a long one its brief (``core.brief``), and the whole plan lies
        in ``plan_path``. Beside it the XComs ``summary`` (one paragraph), ``table`` (a list of
        lines), ``starting_offsets`` (what Spark's startingOffsets takes; where it is too long for
        an argument, ``@`` and the location of a file with it) and ``target_topics`` (separated by
        commas). docs/xcom.md says what is long. Of a move also ``forecast``; of one that leaves the
        job alone (a drill, a dry run) ``note``: the numbers of both and their summaries.

    Raises:
        TranslationRefusedError: Partitions without an answer, or with one that is not safe, by
            name. Plan and summary are pushed.
        ForeignPositionsError: A file beside the checkpoint says that it is of another cluster, or
            of a topic that was recreated since.
        HandoverError: The job has not stopped, the checkpoint differs from ``positions``, or a
            cluster or topic has another id than in ``positions``.
        PlanError: The kept plan is damaged, edited, of other clusters, topics or positions, or
            contradicts what the clusters say now.
        Mm2OffsetsError: See ``planning.plan.plan_failover``.
    """

    operator_extra_links = page_links("plan")
    template_fields: Sequence[str] = (
        *("move", "positions", "checkpoint", "replicated"),
        *("mm2_conn_id", "to", "archive", "plan_path", "options"),
    )

    def __init__(
        self,
        *,
        move: MoveArgument | None = None,
        positions: Mapping[str, Any] | str | None = None,
        checkpoint: str | None = None,
        replicated: Mapping[str, Any] | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        to: str | None = None,
        archive: str | None = None,
        plan_path: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.positions = positions
        self.checkpoint = checkpoint
        self.replicated = replicated
        self.mm2_conn_id = mm2_conn_id
        self.to = to
        self.archive = archive
        self.plan_path = plan_path
        self.options = options

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Make the plan, or take the one that an earlier try made."""
        if self.move is None:
            return self._translate(context, self._own_stand())[1]
        mover = mover_of(self, context)
        move = mover.find()
        stand = self._stand_of(move)
        plan, content = self._translate(context, stand)
        self._forecast(context, (mover, move), stand, plan, content)
        return content

    def parse_settings(self) -> TrialSettings:
        """Return the options.

        Raises:
            ConfigurationError: One is unknown or invalid.
        """
        return parse_trial_settings(self)

    def _own_stand(self) -> Stand:
        """Return the stand of positions that are given, or are in a checkpoint."""
        hook = Mm2OffsetHook(self.mm2_conn_id, to=given(self.to))
        pair, settings = hook.get_conn(), self.parse_settings()
        options = self._options(settings, given(self.archive), self.replicated)
        read = self._read_positions(pair, ask_source=options.read_source)
        return Stand(
            pair=pair,
            positions=read.positions,
            pending=read.pending,
            options=options,
            clusters=read.clusters,
            plan_path=given(self.plan_path),
        )

    def _read_positions(self, pair: ClusterPair, *, ask_source: bool) -> JobPositions:
        own = None if self.positions is None else positions_of(self)
        checkpoint = None
        if self.checkpoint:
            checkpoint = read_checkpoint_of(
                pair,
                storage_path(self.checkpoint),
                open_path=storage_path,
                ask_source=ask_source,
                compare_topics=own is None or not own.clusters,
            )
        if own is not None and checkpoint is not None:
            check_unmoved(checkpoint, own)
        if own is not None:
            return own
        if checkpoint is None:
            raise ConfigurationError(
                f"task {self.task_id}: give move, positions or checkpoint; none is given"
            )
        return JobPositions(positions=checkpoint.positions, pending=checkpoint.pending)

    def _stand_of(self, move: Move) -> Stand:
        """Return the stand of a job that was stopped; of one that is left alone, where it is."""
        pair, job = pair_of_move(move), move.job
        settings = parse_trial_settings(self, changed_records=job.changed_records)
        options = self._options(settings, archive_of(move), move.noted("replicated"))
        if pair.direction is Direction.EXCHANGED and options.first_plan is None:
            options = replace(options, first_plan=plan_of_last_move(move))
        if request_of(self).leaves_job_alone:
            read = PositionsReader(
                checkpoint=move.here.checkpoint,
                open_path=storage_path,
                control=move.here.control if job.is_controlled else None,
                pair=pair,
                notes_ids=False,
                may_be_lost=move.policy.source_may_be_lost,
                saved_positions=job.saved_positions,
            ).read()
            where = parse_job_positions(read)
            return Stand(
                pair=pair,
                positions=where.positions,
                pending=where.pending,
                options=options,
                source_may_be_lost=move.policy.source_may_be_lost,
            )
        stopped, proof = stopped_positions(move), move.entry(Event.PROVE)
        folder = move.there.folder if move.there else move.here.folder
        return Stand(
            pair=pair,
            positions=stopped.positions,
            pending=stopped.pending,
            options=options,
            clusters=stopped.clusters,
            plan_path=f"{folder}/plans/{proof.number if proof else 0:06d}.json",
            as_of=stopped.as_of,
            is_final=move.is_handed_over,
            source_may_be_lost=move.policy.source_may_be_lost,
        )

    def _options(
        self, settings: TrialSettings, archive: str | None, replicated: Mapping[str, Any] | None
    ) -> PlanOptions:
        first = settings.first_plan
        return replace(
            settings.options,
            archive=SyncArchive(storage_path(archive), skip_damaged=settings.skip_damaged)
            if archive
            else None,
            source_ends=ends_from_json((replicated or {}).get("source_ends") or {}),
            first_plan=read_named_plan(first) if first else None,
        )

    def _translate(self, context: Context, stand: Stand) -> tuple[FailoverPlan, dict[str, Any]]:
        """Push plan and offsets; return the plan, and what XCom gets of it."""
        plan = self._plan(stand, context.get("run_id"))
        results = LongResults.of(context)
        content = keep_plan(results, plan, stand.plan_path)
        emit_plan(content)
        push = context["ti"].xcom_push
        texts = plan_texts(plan, content)
        texts.push(push)
        self.log.info("%s", texts.whole)
        if plan.verdict is not Verdict.READY:
            # A task that fails returns nothing, and its user needs the plan all the more.
            push(key="return_value", value=content)
        targets = plan.target_positions()
        offsets = results.offsets_argument(format_offsets(targets), beside=stand.plan_path)
        push(key="starting_offsets", value=offsets)
        push(key="target_topics", value=",".join(targets))
        return plan, content

    def _plan(self, stand: Stand, run_id: str | None) -> FailoverPlan:
        path = storage_path(stand.plan_path) if stand.plan_path else None
        kept = read_plan(path) if path else None
        if kept is not None and stand.is_final:
            return kept

        def plan_or_check(lost: LostParts) -> FailoverPlan:
            ids = _checked_ids(stand, lost) if kept or stand.clusters else None
            if path is not None and kept is not None and ids is not None:
                check_kept_plan(
                    kept,
                    path,
                    stand.pair,
                    positions=stand.positions,
                    pending=stand.pending,
                    ids=ids,
                )
                return kept
            plan = plan_without(
                lost, stand.pair, stand.positions, pending=stand.pending, options=stand.options
            )
            if ids is not None:
                check_ids(ids, plan.ids)
            return plan

        plan = (
            with_what_is_left(stand.pair, stand.positions, plan_or_check)
            if stand.source_may_be_lost
            else plan_or_check(LostParts())
        )
        if kept is not None:
            self.log.info("Took the plan of %s from %s", kept.created_at, path)
            return kept
        plan = replace(plan, run_id=run_id)
        if path is not None and plan.verdict is Verdict.READY:
            save_plan(path, plan)
        return plan

    def _forecast(
        self,
        context: Context,
        of: tuple[Mover, Move],
        stand: Stand,
        plan: FailoverPlan,
        plan_content: Mapping[str, Any],
    ) -> None:
        """Forecast what the move costs, and note plan and forecast in the journal."""
        (mover, move), settings = of, self.parse_settings()
        path = stand.plan_path and f"{stand.plan_path.removesuffix('.json')}.forecast.json"
        forecast = forecast_once(
            stand.pair,
            plan,
            ForecastRequest(
                policy=mover.policy,
                plan_digest=str(plan.to_json()["digest"]),
                lost_at=settings.lost_at,
                max_rate=settings.max_rate,
                positions_as_of=stand.as_of,
            ),
            archive=stand.options.archive,
            path=storage_path(path) if path else None,
        )
        results = LongResults.of(context)
        content = results.keep(forecast.to_json(), "forecast", brief_forecast, kept_at=path)
        push = context["ti"].xcom_push
        texts = forecast_texts(forecast, content)
        texts.push(push, "forecast_")
        self.log.info("%s", texts.whole)
        emit_forecast(content)
        push(key="forecast", value=content)
        note = {
            "numbers": numbers_of(plan, forecast),
            "summaries": {
                "Forecast": texts.folded,
                "Plan": plan_texts(plan, plan_content).folded,
            },
        }
        if path is None:  # the job is left alone, and so is its journal
            push(key=NOTE, value=note)
            return
        mover.record(
            move,
            Event.NOTE,
            plan=stand.plan_path,
            plan_digest=plan.to_json()["digest"],
            forecast=path,
            **note,
        )


def _checked_ids(stand: Stand, lost: LostParts) -> PairIds:
    """Return the present ids; they must be those of when the positions were first read."""
    ask_source = stand.options.read_source and not lost.source_is_silent
    now = read_known_ids(stand.pair, stand.positions, ask_source=ask_source)
    if stand.clusters:
        check_ids(PairIds.from_json(stand.clusters), now)
    return now
