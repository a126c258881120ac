"""The wait for a Spark job's first batch; ``SparkStartedSensor`` polls with its trigger."""

import time

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import (
    CheckpointError,
    CheckpointNotBegunError,
    PlanError,
    TargetJobError,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets, shown_offsets
from airflow_mm2_offsets.spark.offsets_file import read_offsets
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger

_QUEUED = (
    ". Where its DAG run is still queued (the DAG is paused, or has no slot), delete that run "
    "before the failover is given up: it would start the job whenever it can"
)

WRITE_SECONDS = 5.0
"""The longest wait before a damaged checkpoint is read again; ``poll_interval`` may be shorter."""


class SparkStartedTrigger(PollingTrigger):
    """Waits for the first committed batch of a checkpoint.

    Args:
        checkpoint: The job's checkpoint location.
        starting_offsets: Where the first batch must have begun, as Spark's JSON text, or ``@`` and
            the location of a file with it; None if it may begin anywhere.
        after_batch: The last committed batch of a checkpoint that was migrated: the job must
            commit a later one.
        min_records: How many records the job must have read since its start, of all partitions
            together; offsets without a record count, too.
    """

    wait_for = "the Spark job to commit its first batch"
    settings = ("checkpoint", "starting_offsets", "after_batch", "min_records")

    def __init__(
        self,
        *,
        checkpoint: str,
        starting_offsets: str | None,
        after_batch: int | None = None,
        min_records: int = 0,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.checkpoint = checkpoint
        self.starting_offsets = starting_offsets
        self.after_batch = after_batch
        self.min_records = min_records
        self._expected: Positions | None = None

    def poll(self) -> Done | NotYet:
        """Read the checkpoint."""
        try:
            checkpoint = self._read()
        except CheckpointError as error:
            queued = _QUEUED if isinstance(error, CheckpointNotBegunError) else ""
            return NotYet(reason=f"{error}{queued}")
        if self.starting_offsets:
            try:
                expected = self._read_start(self.starting_offsets)
            except PlanError as error:
                if not error.retryable:
                    raise
                return NotYet(reason=str(error))
            _check_start(checkpoint, expected)
        batch = checkpoint.committed_batch
        if batch is None:
            return NotYet(reason=f"{self.checkpoint} has no committed batch")
        if self.after_batch is not None and batch <= self.after_batch:
            return NotYet(
                reason=f"{self.checkpoint} has no committed batch after {self.after_batch}"
            )
        if (count := _records_read(checkpoint)) < self.min_records:
            return NotYet(
                reason=f"{self.checkpoint}: the job has read {count} of {self.min_records} records "
                f"since its start"
            )
        return Done(
            result={
                "batch_id": batch,
                "query_id": checkpoint.query_id,
                "positions": format_offsets(checkpoint.positions),
            }
        )

    def _read_start(self, starting_offsets: str) -> Positions:
        """Return where the job must have begun; a file with that is read once.

        Raises:
            PlanError: It can't be read; retryable where the storage may answer again.
        """
        if self._expected is None:
            self._expected = parse_offsets(read_offsets(starting_offsets, storage_path))
        return self._expected

    def _read(self) -> Checkpoint:
        """Read the checkpoint, twice if it seems damaged: the job may be writing a file.

        Raises:
            CheckpointError: There is no whole checkpoint yet.
            TargetJobError: It is damaged, and stays so.
        """
        location = storage_path(self.checkpoint)
        try:
            return read_checkpoint(location)
        except CheckpointError as error:
            if error.retryable:
                raise
            damage = str(error)
        time.sleep(min(self.poll_interval, WRITE_SECONDS))
        try:
            return read_checkpoint(location)
        except CheckpointError as error:
            if str(error) != damage:
                raise
            raise TargetJobError(
                f"the target job can't go on from its checkpoint: {damage}. Look into the job's "
                f"log; stop it before you mend its checkpoint or give another"
            ) from error


def _records_read(checkpoint: Checkpoint) -> int:
    """Return how far all partitions together are from where the first batch began."""
    starts = by_topic_partition(checkpoint.start)
    ends = by_topic_partition(checkpoint.positions)
    return sum(end - starts.get(partition, 0) for partition, end in ends.items())


def _check_start(checkpoint: Checkpoint, expected: Positions) -> None:
    if checkpoint.start != expected:
        start = checkpoint.start
        began = (
            shown_offsets(format_offsets(start)) if start else "a position that it no longer names"
        )
        raise TargetJobError(
            f"the job of {checkpoint.location} began at {began} and not at "
            f"{_shown(expected)}; stop it, and see whether its checkpoint is older than "
            f"this failover: Spark takes startingOffsets with a new checkpoint only"
        )


def _shown(positions: Positions) -> str:
    return shown_offsets(format_offsets(positions))
