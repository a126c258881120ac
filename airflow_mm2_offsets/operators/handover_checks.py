"""The hand-over: all that is checked and marked directly before a job is started on the target.

What starts the job is the business of the operators in ``handover``.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan, Positions
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.handover_plan import read_checked_plan
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.locking import confirm_own_lock, lift_locks_at_target
from airflow_mm2_offsets.operators.pairs import pair_of
from airflow_mm2_offsets.operators.settings import check_location, is_true, parse_mode
from airflow_mm2_offsets.operators.topic_list import check_topic_list
from airflow_mm2_offsets.spark.claim import claim_target
from airflow_mm2_offsets.spark.fence import mark_moved
from airflow_mm2_offsets.spark.handover import confirm_handover, describe_start, may_have_started
from airflow_mm2_offsets.spark.homecoming import files_at_target, lift_for_home, prepare_home
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.offsets import parse_offsets


class HandOver(BaseOperator):
    """Mixin of the operators that hand a job over: ``hand_over`` compares, claims and marks.

    Hours may pass between the stop and this task, and a user may have started the job again. So
    it compares fence, driver, checkpoint and plan with what they were; cleared alone, it compares
    again. Then it marks the fence as moved, before anything is started: whatever fails from there
    on, no other run starts a second job.

    Args:
        checkpoint: The source job's checkpoint location.
        read: What ``ReadSparkCheckpointOperator`` returned.
        moved_to: Where the job goes, for the messages about the fence.
        target_checkpoint: The target job's checkpoint location; it must be empty.
        plan_path: The file that ``TranslateOffsetsOperator`` keeps the plan in.
        control: The source job's control location; None where it has none.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.
        mode: The mode of the failover. In a failback the job comes home to its old folder, or to a
            new one: the fence that the first failover left there is lifted.
        from_folder: In a failback: the folder that the job comes from.
        target_control: In a failback: the control location that the job returns to.
        exchanged: See ``TranslateOffsetsOperator``. May be a templated string.
        locks: The folder of locks, where the failover has one.
        source_is_gone: As ``StopSparkStreamingOperator`` has it: where the job's folders can't be
            reached, the positions that were read stand, and the fence is not compared.
        stopped: What ``StopSparkStreamingOperator`` returned in this run. It is the proof of the
            stop for a job without ``control``, or whose control location is lost; else the answer
            in the control location is.
        approval: What ``ApproveFailoverOperator`` returned: it counts for the plan that it was
            given for. None: nothing was approved.
        subscribe_pattern: The ``subscribePattern`` of the job on the target, as
            ``CheckFailoverOperator`` has it: a job with a pattern needs no list of topics, which
            may be too long for an argument.
        mm2_conn_id: Id of a connection of type ``mm2``.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *("checkpoint", "read", "moved_to", "target_checkpoint", "plan_path", "control"),
        *("request_id", "mm2_conn_id", "source_is_gone", "mode", "from_folder", "target_control"),
        *("exchanged", "locks", "approval", "stopped", "subscribe_pattern"),
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
        source_is_gone: bool | str = False,
        mode: str = FailoverMode.PLANNED.value,
        from_folder: str | None = None,
        target_control: str | None = None,
        exchanged: bool | str = False,
        locks: str | None = None,
        stopped: Mapping[str, Any] | None = None,
        approval: Mapping[str, Any] | None = None,
        subscribe_pattern: str | None = None,
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
        self.source_is_gone = source_is_gone
        self.mode = mode
        self.from_folder = from_folder
        self.target_control = target_control
        self.exchanged = exchanged
        self.locks = locks
        self.stopped = stopped
        self.approval = approval
        self.subscribe_pattern = subscribe_pattern
        self.mm2_conn_id = mm2_conn_id

    def hand_over(self, context: Context) -> Any:  # noqa: ANN401 - of any start
        """Compare, claim the target, mark the job as moved; return what ``make_arguments`` made.

        Raises:
            HandoverError: No stop of this run is proved, the job has run since, or may, or a topic
                was recreated. The message says whether an earlier try may have started the job.
            PlanError: The kept plan is damaged, edited, of other clusters, topics or positions, or
                contradicts what the clusters say now, as after a reset of MirrorMaker 2.
            NotReadyError: The job can't be started, or the target's checkpoint is in use.
            AirflowSkipException: The target job has begun: it is not started twice.
            Mm2OffsetsError: ``make_arguments`` has failed, and nothing is marked.
        """
        control = self._reachable(self.control)
        earlier_start = self._earlier_start(control)
        if earlier_start:
            self._skip_if_begun(earlier_start)
        positions, pending = self._confirm(control, earlier_start)
        plan = self._check_plan(positions, pending)
        home = self._prepare_home(plan.target_positions())
        self._check_target(context, earlier_start)
        if not earlier_start and (topics := self.topics_argument(plan)):
            check_topic_list(self, topics, control)
        if not earlier_start:
            confirm_own_lock(self, source_may_be_gone=is_true(self, "source_is_gone"))
        arguments = self.make_arguments(context, plan)
        target = storage_path(self.target_checkpoint)
        claim_target(
            target,
            self.request_id,
            has_fence=control is not None,
            cluster_id=plan.ids.target.cluster_id,
        )
        if control is not None:
            mark_moved(control, self.request_id, self.moved_to, plan=self.plan_path)
        if home is not None:
            lift_for_home(*home, request_id=self.request_id, positions=plan.target_positions())
        lift_locks_at_target(self)
        return arguments

    @abstractmethod
    def make_arguments(self, context: Context, plan: FailoverPlan) -> Any:  # noqa: ANN401 - of any start
        """Return what the job is started with; ``hand_over`` calls it after the checks.

        The job is not marked as moved yet: all that can fail with the arguments must fail here.
        """

    @abstractmethod
    def name_start(self) -> str:
        """Return what starts the job, for messages: "may have triggered ..."."""

    @abstractmethod
    def how_to_start(self) -> str:
        """Return how a user starts the job by hand, for messages."""

    @abstractmethod
    def find_start_problems(self, context: Context) -> list[str]:
        """Return why the job can't be started, as sentences."""

    @abstractmethod
    def check_not_started(self, context: Context) -> None:
        """Raise HandoverError where something was started before the job was stopped this time."""

    def planned_offsets(self) -> object:
        """Return the offsets that the job would be started with; None where it takes the plan's."""
        return None

    @abstractmethod
    def topics_argument(self, plan: FailoverPlan) -> str | None:
        """Return the topics that the job gets, separated by commas; None where it gets none."""

    def parse_settings(self) -> None:
        """Raise ConfigurationError where the folder of locks can't be opened from here."""
        check_location(self, "locks")

    def _reachable(self, location: str | None) -> UPath | None:
        """Return a folder of the source job; None where it is lost, by the user's word."""
        if not location:
            return None
        path = storage_path(location)
        if not is_true(self, "source_is_gone"):
            return path
        if lost := why_lost(path):
            self.log.warning("Not compared, by your word (source_is_gone): %s", lost)
            return None
        return path

    def _confirm(
        self, control: UPath | None, earlier_start: str | None
    ) -> tuple[Positions, Positions | None]:
        """Return the source job's positions and pending batch, which are those that were read."""
        confirmed = confirm_handover(
            control=control,
            checkpoint=storage_path(self.checkpoint),
            request_id=self.request_id,
            read=self.read,
            earlier_run=earlier_start,
            checkpoint_is_lost=self._is_checkpoint_lost(control),
            stopped=self.stopped,
            # What was given and is not there is lost.
            is_lost=control is None and bool(self.control),
        )
        if confirmed is not None:
            return confirmed.positions, confirmed.pending
        pending = self.read.get("pending")
        return parse_offsets(self.read["positions"]), parse_offsets(pending) if pending else None

    def _is_checkpoint_lost(self, control: UPath | None) -> bool:
        """Tell whether the positions stand that were read: the checkpoint is lost since.

        In a disaster a fence proves that the job has not run; else the user's word counts.
        """
        is_fenced = control is not None and self.mode == FailoverMode.DISASTER
        if not is_fenced and not is_true(self, "source_is_gone"):
            return False
        lost = why_lost(storage_path(self.checkpoint))
        if lost:
            self.log.warning("The positions are not compared with the checkpoint: %s", lost)
        return lost is not None

    def _earlier_start(self, control: UPath | None) -> str | None:
        """Return what an earlier try of this task may have started, if anything."""
        target = storage_path(self.target_checkpoint)
        return self.name_start() if may_have_started(control, target, self.request_id) else None

    def _prepare_home(self, positions: Positions) -> tuple[UPath, UPath] | None:
        """Free the folder that the job comes home to; return checkpoint and control location."""
        if parse_mode(self.task_id, self.mode) is not FailoverMode.FAILBACK:
            return None
        if not self.from_folder or not self.target_control:
            raise ConfigurationError(
                f"task {self.task_id}: a failback needs from_folder and target_control; give both"
            )
        home = storage_path(self.target_checkpoint), storage_path(self.target_control)
        prepare_home(
            *home,
            request_id=self.request_id,
            from_folder=self.from_folder,
            positions=positions,
        )
        return home

    def _check_plan(self, positions: Positions, pending: Positions | None) -> FailoverPlan:
        return read_checked_plan(
            storage_path(self.plan_path),
            pair_of(self),
            positions=positions,
            pending=pending,
            noted_ids=self.read.get("clusters"),
            approval=self.approval,
            offsets=self.planned_offsets(),
        )

    def _check_target(self, context: Context, earlier_start: str | None) -> None:
        """Raise where the job can't be started, or something is in the way of a fresh job."""
        problems = self.find_start_problems(context)
        if not earlier_start and (names := self._files_at_target()):
            problems.append(f"{self.target_checkpoint} holds {', '.join(names)} already")
        if problems:
            raise NotReadyError(f"{describe_start(earlier_start)}: {'; '.join(problems)}")
        if not earlier_start:
            self.check_not_started(context)

    def _skip_if_begun(self, earlier_start: str) -> None:
        """Skip the task if the job has begun on the target, even if its run was deleted.

        Raises:
            AirflowSkipException: The job has begun on the target.
        """
        if self._files_at_target():
            raise AirflowSkipException(
                f"{self.target_checkpoint} is there, and {describe_start(earlier_start)}: the "
                f"target job has begun, and is not started twice. If it does not run, "
                f"{self.how_to_start()}"
            )

    def _files_at_target(self) -> list[str]:
        is_home = parse_mode(self.task_id, self.mode) is FailoverMode.FAILBACK
        return files_at_target(storage_path(self.target_checkpoint), is_home=is_home)
