"""The wait for a Spark job's first batch."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, TargetJobError
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    MoveArgument,
    mover_of,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.settings import given, whole_number
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.triggers.checkpoint import SparkStartedTrigger


class SparkStartedSensor(PollingSensor):
    """Waits until a Spark job has committed a batch, and checks where its first one began.

    Give ``move`` as the last step of a move, or ``checkpoint``.

    Args:
        move: What is moved, and how.
        checkpoint: The job's checkpoint location.
        starting_offsets: With ``checkpoint``: where the first batch must have begun, as Spark's
            JSON text; None if it may begin anywhere.
        after_batch: The last committed batch of a checkpoint that was migrated
            (``migrate.output["committed_batch"]``): the job must commit a later one.
        min_records: How many records the job must have read since its start, of all partitions
            together. A drill needs some: of none, nothing can be compared. May be a templated
            string.
        timeout: Seconds to wait at most; 600 by default.
        poke_interval: Seconds between two looks; 2 by default.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
        kwargs: ``mode``, ``soft_fail`` and all other arguments of Airflow's sensors.

    Returns:
        ``batch_id``, ``query_id`` and ``positions`` (Spark's JSON text) of the last committed
        batch.

    Raises:
        TargetJobError: The time has passed without a batch (an ``AirflowSensorTimeout`` too), the
            first batch began elsewhere, or the checkpoint is damaged.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        "move",
        "checkpoint",
        "starting_offsets",
        "after_batch",
        "min_records",
    )
    wait_for = SparkStartedTrigger.wait_for
    error = TargetJobError

    def __init__(
        self,
        *,
        move: MoveArgument | None = None,
        checkpoint: str | None = None,
        starting_offsets: str | None = None,
        after_batch: int | None = None,
        min_records: int | str = 0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.checkpoint = checkpoint
        self.starting_offsets = starting_offsets
        self.after_batch = after_batch
        self.min_records = min_records

    @fails_at_once()
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's signature
        """Wait for the job of a move, or of a checkpoint."""
        if (self.move is None) == (self.checkpoint is None):
            both = "neither is given" if self.move is None else "both are given"
            raise ConfigurationError(
                f"task {self.task_id}: move or checkpoint: {both}; give one of them"
            )
        if self.move is not None:
            there = mover_of(self, context).find().there
            skip_in_dry_run(self, context, f"wait for the first batch at {there}")
        return super().execute(context)

    def execute_complete(self, context: AnyContext, event: Mapping[str, Any]) -> dict[str, Any]:
        """Record that the job of a move has arrived, and return its first batch."""
        result = super().execute_complete(context, event)
        if self.move is not None:
            mover = mover_of(self, context)
            move = mover.record(mover.find(), Event.ARRIVE, **result)
            self.log.info("Job %s runs at %s: batch %s", move.job.name, move.there, result)
        return result

    def new_trigger(self, context: Context, **times: float) -> SparkStartedTrigger:
        """Return the trigger that reads the checkpoint."""
        after_batch, min_records = self.parse_settings()
        checkpoint, starting_offsets = str(self.checkpoint), self.starting_offsets
        if self.move is not None:
            move = mover_of(self, context).find()
            handed = move.facts(Event.HAND_OVER)
            if move.there is None or not handed:
                raise HandoverError(
                    f"job {move.job.name} was not handed over by {move.run!r}: clear the task that "
                    f"starts it"
                )
            checkpoint, starting_offsets = move.there.checkpoint, handed["starting_offsets"]
        return SparkStartedTrigger(
            checkpoint=checkpoint,
            starting_offsets=starting_offsets,
            after_batch=after_batch,
            min_records=min_records,
            **times,
        )

    def parse_settings(self) -> tuple[int | None, int]:
        """Return ``after_batch`` and ``min_records``.

        Raises:
            ConfigurationError: One is not a whole number.
        """
        has_batch = given(self.after_batch) is not None
        after_batch = whole_number(self, "after_batch") if has_batch else None
        return after_batch, whole_number(self, "min_records")
