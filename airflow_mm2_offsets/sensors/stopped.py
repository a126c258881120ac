"""The wait after a platform's own cancel: the checkpoint of the job must stand still."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    MoveArgument,
    find_users_word,
    mover_of,
    record_proof,
    request_of,
    run_name,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.spark.control import StopProof
from airflow_mm2_offsets.triggers.cancelled import CancelledJobTrigger


class SparkStoppedSensor(PollingSensor):
    """Waits until the checkpoint of a job that its platform has cancelled stands still.

    Use it after the platform's own cancel, for a job without ``StopControl``. It returns what
    ``StopSparkStreamingOperator`` returns for such a job, so that the hand-over can compare the
    checkpoint again.

    Silence alone can't tell a stopped job from an idle one. So it counts only after a cancel that
    has succeeded, and lasts at least three times the longest of the last gaps between two batches.
    A platform that starts the driver again (attempts of YARN, a restart policy, a continuous job)
    is seen by the hand-over, if the job has begun a batch by then, and not afterwards: switch the
    restarts off.

    Give ``move`` as a step of a move, or ``checkpoint``.

    Args:
        quiet_period: Seconds, more than 0, for which its files must not change. Give more than the
            job's trigger interval and the platform's time to end a driver. May be a templated
            string.
        move: What is moved, and how; the journal says what has cancelled the job.
        checkpoint: The job's checkpoint location.
        trigger_interval: The longest time between two batches while the job has records to read, in
            seconds. It counts in place of the longest gap, for a job whose topics were idle; a gap
            that no recent batch has undercut counts all the same. May be a templated string.
        cancel: With ``checkpoint``: ``by``, what has cancelled the job, for the proof (by default
            the tasks directly before this one), and ``at``, when that was, in seconds since 1970,
            by Airflow's clock: a batch that was begun later than ``quiet_period`` after it is of
            another driver (by default not compared).
        timeout: Seconds to wait at most; 3600 by default.
        poke_interval: Seconds between two looks; 2 by default.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
        kwargs: ``soft_fail`` and all other arguments of Airflow's sensors.

    Returns:
        What ``StopSparkStreamingOperator`` returns without ``control``: its ``proof`` is
        ``silent``; with ``basis``, ``quiet_seconds`` and ``longest_gap``.

    Raises:
        StopError: The time has passed, and the checkpoint still changes (the file that changed last
            is named; it is an ``AirflowSensorTimeout`` too); no task has cancelled the job; or it
            has run since the cancel.
        ConfigurationError: A time is invalid or too short, ``mode`` is ``reschedule`` without
            ``deferrable``, or the checkpoint holds no batch.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *("move", "checkpoint", "quiet_period", "trigger_interval", "cancel"),
    )
    wait_for = CancelledJobTrigger.wait_for
    error = StopError
    default_timeout = 3600.0
    ends_with = Event.PROVE

    def __init__(
        self,
        *,
        quiet_period: float | str,
        move: MoveArgument | None = None,
        checkpoint: str | None = None,
        trigger_interval: float | str | None = None,
        cancel: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.checkpoint = checkpoint
        self.quiet_period = quiet_period
        self.trigger_interval = trigger_interval
        self.cancel = cancel

    @fails_at_once()
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's signature
        """Wait for the silence; a lost source has none, and the user's word counts."""
        self.parse_settings()
        if (self.move is None) == (self.checkpoint is None):
            both = "neither is given" if self.move is None else "both are given"
            raise ConfigurationError(
                f"task {self.task_id}: move or checkpoint: {both}; give one of them"
            )
        if self.move is not None:
            mover = mover_of(self, context)
            move = mover.find()
            here = move.here
            skip_in_dry_run(self, context, f"wait until {here.checkpoint} does not change")
            if move.is_handed_over:
                self.log.info("This run has handed %s over to %s", move.job.name, move.there)
                return dict(move.facts(Event.PROVE))
            if by_word := find_users_word(request_of(self), move):
                self.log.warning("%s", by_word)
                asserted = {"proof": StopProof.ASSERTED.value, "error": by_word}
                return record_proof(mover, move, asserted)
        return super().execute(context)

    def execute_complete(self, context: AnyContext, event: Mapping[str, Any]) -> dict[str, Any]:
        """Record the proof of a move, with the job's positions, and return it."""
        proof = super().execute_complete(context, event)
        if self.move is None:
            return proof
        mover = mover_of(self, context)
        return record_proof(mover, mover.find(), proof)

    def new_trigger(self, context: Context, **times: float) -> CancelledJobTrigger:
        """Return the trigger that lists the checkpoint."""
        quiet_period, trigger_interval = self.parse_settings()
        checkpoint, request_id, cancel = str(self.checkpoint), run_name(context), self._own_cancel()
        if self.move is not None:
            move = mover_of(self, context).find()
            checkpoint, request_id = move.here.checkpoint, move.request_id
            cancel = move.noted("cancel") or {"by": "", "at": None}
        return CancelledJobTrigger(
            checkpoint=checkpoint,
            quiet_period=quiet_period,
            request_id=request_id,
            cancelled_by=self._cancelled_by(cancel.get("by")),
            cancelled_at=self.parse_seconds("cancel: at", cancel.get("at")),
            trigger_interval=trigger_interval,
            **times,
        )

    def _own_cancel(self) -> Mapping[str, Any]:
        """Return what a user says of the cancel; without it, nothing."""
        cancel = {} if self.cancel is None else self.cancel
        if not isinstance(cancel, Mapping) or set(cancel) - {"by", "at"}:
            raise ConfigurationError(
                f"task {self.task_id}: cancel is {cancel!r}; give a mapping of by and at"
            )
        return cancel

    def parse_settings(self) -> tuple[float, float | None]:
        """Return ``quiet_period`` and ``trigger_interval`` in seconds.

        Raises:
            ConfigurationError: One is invalid, or ``mode`` is ``reschedule`` without
                ``deferrable``.
        """
        quiet_period = self.seconds("quiet_period")
        if not quiet_period:
            raise ConfigurationError(
                f"task {self.task_id}: quiet_period is {self.quiet_period!r}; give seconds, more "
                f"than 0"
            )
        if self.reschedule and not self.deferrable:
            raise ConfigurationError(
                f"task {self.task_id}: a quiet_period compares the checkpoint with that of the "
                f"look before, and mode='reschedule' ends the process between two looks; give "
                f"deferrable=True or mode='poke'"
            )
        return quiet_period, self.seconds("trigger_interval")

    def _cancelled_by(self, name: str | None) -> str:
        if name is not None:
            if told := given(name):
                return told
            raise StopError(
                f"task {self.task_id}: no task has cancelled the job in this run (one that was "
                f"marked as success by hand has not), and silence alone does not tell a stopped "
                f"job from an idle one: clear the task that cancels, with all after it"
            )
        names = [
            f"{getattr(task, 'task_type', 'a task')} ({task.task_id})"
            for task in self.upstream_list
        ]
        if not names:
            raise ConfigurationError(
                f"task {self.task_id}: no task before this one cancels the job, and silence alone "
                f"does not tell a stopped job from an idle one: put the platform's cancel before "
                f"it, or name in cancel, as by, what has cancelled the job"
            )
        return ", ".join(sorted(names))
