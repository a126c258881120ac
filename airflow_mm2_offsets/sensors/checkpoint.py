"""The wait for a Spark job's first batch."""

from collections.abc import Sequence
from typing import Any

from airflow_mm2_offsets.errors import TargetJobError
from airflow_mm2_offsets.operators.links import STARTS, page_links
from airflow_mm2_offsets.operators.settings import given, whole_number
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.triggers.checkpoint import SparkStartedTrigger


class SparkStartedSensor(PollingSensor):
    """Waits until a Spark job has committed a batch, and checks where its first one began.

    Args:
        checkpoint: The job's checkpoint location.
        starting_offsets: Where the first batch must have begun, as Spark's JSON text, or ``@`` and
            the location of a file with it; None if it may begin anywhere.
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

    operator_extra_links = page_links("run", job=STARTS)
    template_fields: Sequence[str] = (
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
        checkpoint: str,
        starting_offsets: str | None = None,
        after_batch: int | None = None,
        min_records: int | str = 0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.checkpoint = checkpoint
        self.starting_offsets = starting_offsets
        self.after_batch = after_batch
        self.min_records = min_records

    def new_trigger(self, **times: float) -> SparkStartedTrigger:
        """Return the trigger that reads the checkpoint."""
        after_batch, min_records = self.parse_settings()
        return SparkStartedTrigger(
            checkpoint=self.checkpoint,
            starting_offsets=self.starting_offsets,
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
