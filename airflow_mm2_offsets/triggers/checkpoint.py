"""Waits until a Spark job has begun where it was told to."""

from typing import Any

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import (
    CheckpointError,
    CheckpointNotBegunError,
    TargetJobError,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger

_QUEUED = (
    ". Where its DAG run is still queued (the DAG is paused, or has no slot), delete that run "
    "before the failover is given up: it would start the job whenever it can"
)


class SparkStartedTrigger(PollingTrigger):
    """Waits for the first committed batch of a checkpoint.

    Args:
        checkpoint: The job's checkpoint location.
        starting_offsets: Where the first batch must have begun, as Spark's JSON text; None where
            any place will do.
        after_batch: The last committed batch of a checkpoint that was migrated: the job must
            commit a later one.
    """

    wait_for = "the Spark job to commit its first batch"

    def __init__(
        self,
        *,
        checkpoint: str,
        starting_offsets: str | None,
        after_batch: int | None = None,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.checkpoint = checkpoint
        self.starting_offsets = starting_offsets
        self.after_batch = after_batch
        self._damage: str | None = None

    def settings(self) -> dict[str, Any]:
        """Return the arguments for Airflow's database."""
        return {
            "checkpoint": self.checkpoint,
            "starting_offsets": self.starting_offsets,
            "after_batch": self.after_batch,
        }

    def poll(self) -> Done | NotYet:
        """Read the checkpoint."""
        try:
            found = read_checkpoint(storage_path(self.checkpoint))
        except CheckpointError as error:
            return self._unreadable(error)
        self._damage = None
        if self.starting_offsets:
            _check_start(found, parse_offsets(self.starting_offsets))
        if found.committed_batch is None:
            return NotYet(reason=f"{self.checkpoint} has no committed batch")
        if self.after_batch is not None and found.committed_batch <= self.after_batch:
            return NotYet(
                reason=f"{self.checkpoint} has no committed batch after {self.after_batch}"
            )
        return Done(
            result={
                "batch_id": found.committed_batch,
                "query_id": found.query_id,
                "positions": format_offsets(found.positions),
            }
        )

    def _unreadable(self, error: CheckpointError) -> NotYet:
        """Wait for a job that has just begun, and for no other: half a file does not stay half."""
        damage = None if error.retryable else str(error)
        if damage is not None and damage == self._damage:
            raise TargetJobError(
                f"the target job's checkpoint can't be gone on from: {damage}. Look into the "
                f"job's log; stop it before its checkpoint is mended or another is given"
            ) from error
        self._damage = damage
        return NotYet(
            reason=f"{error}{_QUEUED if isinstance(error, CheckpointNotBegunError) else ''}"
        )


def _check_start(found: Checkpoint, wanted: Positions) -> None:
    if found.start != wanted:
        began = format_offsets(found.start) if found.start else "a place it no longer names"
        raise TargetJobError(
            f"the job of {found.location} began at {began} and not at "
            f"{format_offsets(wanted)}; stop it, and see whether its checkpoint is older than "
            f"this failover: Spark takes startingOffsets with a new checkpoint only"
        )
