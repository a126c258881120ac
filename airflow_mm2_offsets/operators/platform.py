"""What runs around a user's own operators in a move: those that cancel and submit the job.

``failover_tasks`` gives these to the operators as ``pre_execute`` and ``post_execute``. Airflow
calls ``pre_execute`` again when a deferred task goes on.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, Context

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.handover import confirm_stopped
from airflow_mm2_offsets.moves.jobs import settle_command
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.moving import (
    INTENT,
    ask,
    find_users_word,
    mover_for,
    skip_if_handed_over,
)
from airflow_mm2_offsets.storage import list_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformStep:
    """A hook around an operator of the user's own, as a step of a move."""

    move: Mapping[str, Any]
    """What is moved, and how. May have templates."""

    def request(self, context: Context) -> MoveRequest:
        """Return what is asked for, with its templates rendered."""
        task: Any = context["task"]
        return MoveRequest.from_json(task.render_template(dict(self.move), context))

    def skip_in_dry_run(self, context: Context, request: MoveRequest, intent: str) -> None:
        """Skip the task where the move only says what it would do."""
        if request.is_dry_run:
            context["ti"].xcom_push(key=INTENT, value=intent)
            raise AirflowSkipException(f"dry run: it would {intent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeCancel(PlatformStep):
    """Begins the move before a platform cancels the job: no other run moves it from now on."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Ask in the job's journal.

        Raises:
            LockedError: Another run moves the job.
            HandoverError: This run has handed it over before.
            AirflowSkipException: The source is lost, and the user says that no driver runs.
        """
        task: Any = context["task"]
        request = self.request(context)
        self.skip_in_dry_run(context, request, f"run {task.task_type}, which cancels the job")
        mover = mover_for(request, context)
        skip_if_handed_over(mover.find())
        move = ask(mover)
        if by_word := find_users_word(request, move):
            raise AirflowSkipException(f"nothing was cancelled: {by_word}")
        if not move.noted("has_ended"):
            mover.record(move, Event.NOTE, ended_by=f"The cancel by the task {task.task_id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterCancel(PlatformStep):
    """Notes what has cancelled the job, and when: a task that was marked as success has not."""

    @fails_at_once()
    def __call__(self, context: Context, result: object = None) -> None:  # noqa: ARG002 - Airflow's
        """Note it in the job's journal."""
        task: Any = context["task"]
        cancel = {"by": f"{task.task_type} ({task.task_id})", "at": time.time()}
        mover = mover_for(self.request(context), context)
        mover.record(mover.find(), Event.NOTE, cancel=cancel, has_ended=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeSubmit(PlatformStep):
    """Lets a platform start the job once: after the hand-over, and in one try.

    The journal has the try before the platform is called. A later try finds it, and the job's
    checkpoint once that has begun.
    """

    is_idempotent: bool
    """Whether the platform starts one job of several submits of this move, as the user says."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Look, and record the try.

        Raises:
            AirflowSkipException: The job has begun there.
            HandoverError: The job is not handed over by this run, was started where it was, or an
                earlier try may have submitted it.
        """
        task: Any = context["task"]
        request = self.request(context)
        self.skip_in_dry_run(context, request, f"run {task.task_type}, which submits the job")
        mover = mover_for(request, context)
        move = mover.find()
        if move.entry(Event.HAND_OVER) is None or move.there is None:
            raise HandoverError(
                f"{move.run!r} has not handed job {move.job.name} over, so nothing was submitted: "
                f"a task that was marked as success by hand hands nothing over. Clear the task "
                f"before this one, with all after it"
            )
        # The same for a deferred task that goes on, and another one for each try.
        this_try = str(context["ti"].id)
        tries = [each.facts["try"] for each in move.entries_of(Event.SUBMIT)]
        if this_try in tries:
            return
        checkpoint = storage_path(move.there.checkpoint)
        if move.has_begun_there or list_directory(checkpoint, HandoverError):
            raise AirflowSkipException(
                f"the job has begun at {move.there}, and is not submitted again"
            )
        confirm_stopped(move, storage_path)
        move = mover.record(move, Event.SUBMIT, **{"try": this_try})
        is_first = move.entries_of(Event.SUBMIT)[0].facts["try"] == this_try
        if not is_first and not self.is_idempotent:
            raise HandoverError(
                f"an earlier try of this task may have submitted the job, which has begun nothing "
                f"at {move.there} yet: nothing was submitted by this try. Look on the platform: if "
                f"the job is there, mark this task as success and wait for its first batch; if "
                f"not, say where it runs ({settle_command(move.job.journal, move.here.folder)}) "
                f"and start a new run. A submit with a token of the platform needs no look: give "
                f"it one, and submit_is_idempotent=True"
            )
