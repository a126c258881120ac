"""What runs around a user's own operators in a failover: those that cancel and submit the job.

``failover_tasks`` gives these to the operators as ``pre_execute`` and ``post_execute``. Airflow
calls ``pre_execute`` again when a deferred task goes on.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.locking import forget_roll_back, take_lock
from airflow_mm2_offsets.operators.settings import given, parse_mode, parse_truth
from airflow_mm2_offsets.spark.claim import has_claimed
from airflow_mm2_offsets.spark.fence import FenceState
from airflow_mm2_offsets.spark.homecoming import files_at_target
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.rollback import FailoverRun
from airflow_mm2_offsets.spark.stop_proof import find_missing_proof
from airflow_mm2_offsets.spark.submission import note_submission, submission_file, submitted_by

CANCELLED = "cancelled_by"
"""The XCom in which a task that has cancelled the job names its operator."""
CANCELLED_AT = "cancelled_at"
"""The XCom in which it says when that was, in seconds since 1970."""

HANDED_OVER = ("starting_offsets", "topic", "token")
"""The XComs of the hand-over, which the task that submits the job pulls."""


@dataclass(kw_only=True)
class _Settings:
    """The settings of a failover, rendered."""

    task_id: str
    checkpoint: str
    target_checkpoint: str
    request_id: str
    mode: str
    source_is_gone: str
    control: str | None = None
    locks: str | None = None

    @property
    def target(self) -> UPath:
        return storage_path(self.target_checkpoint)

    @property
    def is_gone(self) -> bool:
        return parse_truth(self.task_id, "source_is_gone", self.source_is_gone)

    @property
    def run(self) -> FailoverRun:
        control = given(self.control)
        return FailoverRun(
            request_id=self.request_id,
            control=storage_path(control) if control else None,
            target_checkpoint=self.target,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeCancel:
    """Locks the job for the run before a platform cancels it; a job has one failover at a time."""

    settings: Mapping[str, Any]
    """Of the group: ``checkpoint``, ``target_checkpoint``, ``request_id``, ``mode``,
    ``source_is_gone``, ``locks``. May be templates."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Lock the job.

        Raises:
            LockedError: Another run works on the job, or has moved it.
            HandoverError: This run has moved it before.
            AirflowSkipException: The source is lost, by the user's word.
        """
        task: Any = context["task"]
        own = _render(task, self.settings, context)
        lost = why_lost(storage_path(own.checkpoint)) if own.is_gone else None
        if has_claimed(own.target, own.request_id):
            raise HandoverError(
                f"{own.request_id!r} has handed the job over before, to {own.target_checkpoint}, "
                f"and the job may have come home since: nothing was cancelled by this try. If the "
                f"target job has not begun, clear submit_target; to move the job once more, start "
                f"a new run of the failover"
            )
        for problem in take_lock(own, source_may_be_gone=own.is_gone):
            task.log.warning("%s", problem)
        forget_roll_back(own.target_checkpoint, own.request_id)
        if lost:
            raise AirflowSkipException(
                f"nothing was cancelled: by your word (source_is_gone) no driver runs: {lost}"
            )


def note_cancel(context: Context, result: object = None) -> None:  # noqa: ARG001 - Airflow's signature
    """Say what has cancelled the job, and when: a task that was marked as success by hand has not.

    A ``post_execute``: Airflow calls it after an operator that has succeeded.
    """
    task: Any = context["task"]
    context["ti"].xcom_push(key=CANCELLED, value=f"{task.task_type} ({task.task_id})")
    context["ti"].xcom_push(key=CANCELLED_AT, value=time.time())


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeSubmit:
    """Lets a platform start the target job once: after the hand-over, and in one try.

    Directly before the platform is called, it notes the try beside the target's claims. A later
    try finds the note, and the job's checkpoint once that has begun.
    """

    settings: Mapping[str, Any]
    """Of the group, as for ``BeforeCancel``, with ``control``."""
    stop_task_id: str
    """The task that returns the proof of the stop."""
    hand_over_task_id: str
    """The task whose XComs the submit pulls."""
    is_idempotent: bool
    """The user's word that the platform starts one job of several submits by this run."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Look, and note the try.

        Raises:
            AirflowSkipException: The target job has begun.
            HandoverError: The job is not handed over by this run, its fence was lifted since, it
                was started on the source since, the hand-over has left no XComs, or an earlier try
                may have submitted it.
            StopError: The control location can't be read, and is not lost.
        """
        task: Any = context["task"]
        own = _render(task, self.settings, context)
        # The same for a deferred task that goes on, and another one for each try.
        this_try = str(context["ti"].id)
        earlier = submitted_by(own.target, own.request_id)
        if earlier == this_try:
            return
        is_home = parse_mode(task.task_id, own.mode) is FailoverMode.FAILBACK
        if files_at_target(own.target, is_home=is_home):
            raise AirflowSkipException(
                f"{own.target_checkpoint} is there: the target job has begun, and is not submitted "
                f"again"
            )
        _check_handed_over(own)
        if earlier is not None and not self.is_idempotent:
            raise HandoverError(_second_try(own))
        self._check_stopped(own, context)
        self._check_arguments(own, context)
        note_submission(own.target, own.request_id, this_try)

    def _check_arguments(self, own: _Settings, context: Context) -> None:
        """Raise where the hand-over has failed after its mark, or its XComs were deleted.

        Templates render what is absent as None, and the job would be submitted with that.
        """
        instance: Any = context["ti"]
        absent = [
            name
            for name in HANDED_OVER
            if not given(
                instance.xcom_pull(
                    task_ids=self.hand_over_task_id, key=name, map_indexes=instance.map_index
                )
            )
        ]
        if absent:
            raise HandoverError(
                f"{self.hand_over_task_id} has left no {' and no '.join(absent)} for "
                f"{own.request_id!r}, so nothing was submitted by this try: it has not ended by "
                f"itself, or its XComs were deleted. Clear it with all after it: it hands the same "
                f"over once more"
            )

    def _check_stopped(self, own: _Settings, context: Context) -> None:
        """Raise where a job without a fence was started since the hand-over: hours may lie between.

        A fence keeps other drivers away by itself.
        """
        if given(own.control) is not None:
            return
        checkpoint = storage_path(own.checkpoint)
        is_lost = own.is_gone and why_lost(checkpoint) is not None
        instance: Any = context["ti"]
        stopped = instance.xcom_pull(task_ids=self.stop_task_id, map_indexes=instance.map_index)
        problem = find_missing_proof(stopped, own.request_id, checkpoint, is_lost=is_lost)
        if problem:
            raise HandoverError(
                f"nothing was submitted by this try: {problem}. See that one job runs: the one on "
                f"the source, or one that an earlier try has submitted. Then clear the task that "
                f"cancels, with all after it, or start a new run of the failover"
            )


def _check_handed_over(own: _Settings) -> None:
    """Raise unless this run has handed the job over, and the source is kept from running since."""
    run = own.run
    if run.control is None or _is_lost(own, run.control):
        is_handed_over, is_lifted = has_claimed(own.target, own.request_id), False
    else:
        fence = run.fence()
        is_handed_over = fence is not None and fence.state is FenceState.MOVED
        # The claim that knows of no fence was made while the fence's storage was lost.
        is_handed_over |= has_claimed(own.target, own.request_id, without_fence=True)
        is_lifted = fence is None and has_claimed(own.target, own.request_id)
    if is_handed_over:
        return
    if is_lifted:
        raise HandoverError(
            f"{own.control}: the fence of {own.request_id!r} was lifted since the hand-over, so "
            f"the job may run there again: nothing was submitted by this try. Start a new run of "
            f"the failover"
        )
    raise HandoverError(
        f"{own.request_id!r} has not handed the job over, so nothing was submitted: a task "
        f"that was marked as success by hand hands nothing over. Clear the task before this "
        f"one, with all after it"
    )


def _is_lost(own: _Settings, control: UPath) -> bool:
    """Tell whether no fence can be looked at, as in a disaster, or by the user's word."""
    is_disaster = parse_mode(own.task_id, own.mode) is FailoverMode.DISASTER
    return (own.is_gone or is_disaster) and why_lost(control) is not None


def _second_try(own: _Settings) -> str:
    return (
        f"an earlier try of this task may have submitted the job, which has begun nothing in "
        f"{own.target_checkpoint} yet: nothing was submitted by this try. Look on the platform: if "
        f"the job is there, mark this task as success and wait for its first batch; if not, delete "
        f"{submission_file(own.target, own.request_id)} and clear this task. A submit with a token "
        f"of the platform needs no look: give it one, and submit_is_idempotent=True"
    )


def _render(task: BaseOperator, settings: Mapping[str, Any], context: Context) -> _Settings:
    names = _Settings.__dataclass_fields__.keys() & settings.keys()
    rendered = {name: task.render_template(settings[name], context) for name in names}
    return _Settings(task_id=task.task_id, **rendered)
