"""The step that starts the job on the target cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, Context
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import (
    CheckpointError,
    HandoverError,
    Mm2OffsetsError,
    NotReadyError,
    PlanError,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, has_dag_run
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.plan_file import read_plan
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.claim import claim_target, has_claimed
from airflow_mm2_offsets.spark.fence import FenceState, mark_moved, read_fence
from airflow_mm2_offsets.spark.handover import confirm_handover, describe_start
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.spark.position_ids import check_ids
from airflow_mm2_offsets.storage import list_directory, open_location


class TriggerTargetDagOperator(TriggerDagRunOperator):
    """Checks that nothing has changed since the stop, marks the job as moved, triggers its DAG.

    Hours may pass between the stop and this task, and a user may have started the job again. So
    this task compares fence, driver, checkpoint and plan with what they were; cleared alone, it
    compares again. Then it marks the fence as moved, before it triggers: whatever fails from there
    on, no other run starts a second job.

    It takes all arguments of ``TriggerDagRunOperator``, too. If its ``conf`` holds
    ``starting_offsets``, they must be the plan's. Give a ``trigger_run_id`` that
    derives from this run's, and ``skip_when_already_exists``: a retry then starts nothing twice.

    Args:
        checkpoint: The source job's checkpoint location.
        read: What ``ReadSparkCheckpointOperator`` returned.
        moved_to: Where the job goes, for the messages about the fence.
        target_checkpoint: The target job's checkpoint location; it must be empty.
        plan_path: The file that ``TranslateOffsetsOperator`` keeps the plan in.
        control: The source job's control location; None where it has none.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.
        mm2_conn_id: Id of a connection of type ``mm2``.

    Raises:
        HandoverError: The job has run since, or may, or a topic was recreated, or the DAG run
            exists though no earlier try can have triggered it. The message says whether an
            earlier try of this task may have triggered the target job.
        PlanError: The kept plan is damaged, edited, of other clusters, topics or positions, or
            contradicts what the clusters say now, as after a reset of MirrorMaker 2.
        AirflowSkipException: The target job has begun: it is not started twice.
        NotReadyError: The DAG does not exist or is paused, or the target's checkpoint is in use.
    """

    template_fields: Sequence[str] = (
        *TriggerDagRunOperator.template_fields,
        *("checkpoint", "read", "moved_to", "target_checkpoint", "plan_path", "control"),
        *("request_id", "mm2_conn_id"),
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        read: Mapping[str, Any],
        moved_to: str,
        target_checkpoint: str,
        plan_path: str,
        control: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.checkpoint = checkpoint
        self.read = read
        self.moved_to = moved_to
        self.target_checkpoint = target_checkpoint
        self.plan_path = plan_path
        self.control = control
        self.request_id = request_id
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> None:
        """Compare, mark the job as moved, and trigger its DAG."""
        control = storage_path(self.control) if self.control else None
        earlier_run = self._earlier_run(control)
        if earlier_run:
            self._skip_if_begun(earlier_run)
        checkpoint = confirm_handover(
            control=control,
            checkpoint=storage_path(self.checkpoint),
            request_id=self.request_id,
            read=self.read,
            earlier_run=earlier_run,
        )
        self._check_plan(checkpoint)
        self._check_target(context, earlier_run)
        claim_target(storage_path(self.target_checkpoint), self.request_id)
        if control is not None:
            mark_moved(control, self.request_id, self.moved_to)
        super().execute(context)

    def _earlier_run(self, control: UPath | None) -> str | None:
        """Return the DAG run that an earlier try of this task may have triggered, if any.

        The claim comes before the mark, and the mark before the trigger.
        """
        fence = read_fence(control) if control else None
        if fence and fence.request_id == self.request_id:
            may_exist = fence.state is FenceState.MOVED
        else:
            may_exist = has_claimed(storage_path(self.target_checkpoint), self.request_id)
        if not may_exist:
            return None
        return f"the run {self.trigger_run_id or 'of this task'!r} of DAG {self.trigger_dag_id}"

    def _check_plan(self, checkpoint: Checkpoint) -> None:
        path = storage_path(self.plan_path)
        plan = read_plan(path)
        if plan is None:
            raise PlanError(
                f"{path} is gone, and the target job is to start from it: clear the task that "
                f"translates, with all after it"
            )
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        positions, pending = checkpoint.positions, checkpoint.pending
        ids = read_known_ids(pair, positions)
        if noted_ids := self.read.get("clusters"):
            check_ids(PairIds.from_json(noted_ids), ids)
        check_kept_plan(plan, path, pair, positions=positions, pending=pending, ids=ids)
        self._check_conf(plan.target_positions(), path)

    def _check_conf(self, planned: Positions, path: UPath) -> None:
        """Raise where the conf names no offsets, or others than the plan: those of an older one."""
        if not isinstance(self.conf, Mapping) or "starting_offsets" not in self.conf:
            return
        offsets = self.conf["starting_offsets"]
        try:
            is_planned = parse_offsets(offsets) == planned
        except Mm2OffsetsError:
            is_planned = False
        if not is_planned:
            raise PlanError(
                f"conf says starting_offsets {offsets!r}, and the plan in {path} "
                f"{format_offsets(planned)}: clear the task that translates, with all after "
                f"it"
            )

    def _check_target(self, context: Context, earlier_run: str | None) -> None:
        """Raise where the DAG can't be triggered, or something is in the way of a fresh job."""
        problems = find_dag_problems(context, self.trigger_dag_id)
        if not earlier_run and (names := self._files_at_target()):
            problems.append(f"{self.target_checkpoint} holds {', '.join(names)} already")
        if problems:
            raise NotReadyError(f"{describe_start(earlier_run)}: {'; '.join(problems)}")
        if not earlier_run:
            self._check_no_run(context)

    def _check_no_run(self, context: Context) -> None:
        """Raise where the DAG run exists that no try of this hand-over can have triggered.

        ``skip_when_already_exists`` would take it for this hand-over's, and start no job.
        """
        run_id = self.trigger_run_id
        if run_id and has_dag_run(context, self.trigger_dag_id, run_id):
            raise HandoverError(
                f"{describe_start(None)}: DAG {self.trigger_dag_id} has the run {run_id!r} "
                f"already, from before the job was stopped this time, with offsets of then. See "
                f"that its job does not run, delete that DAG run and clear this task; or start a "
                f"new run of the failover"
            )

    def _skip_if_begun(self, earlier_run: str) -> None:
        """Skip the task if the job has begun on the target, even if its DAG run was deleted.

        Raises:
            AirflowSkipException: The job has begun on the target.
        """
        if self._files_at_target():
            raise AirflowSkipException(
                f"{self.target_checkpoint} is there, and {describe_start(earlier_run)}: the target "
                f"job has begun, and is not started twice. If it does not run, trigger "
                f"{self.trigger_dag_id} yourself with the same conf"
            )

    def _files_at_target(self) -> list[str]:
        root = open_location(storage_path(self.target_checkpoint), CheckpointError)
        return sorted(list_directory(root, CheckpointError))
