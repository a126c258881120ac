"""The step that reads where a Spark job stands."""

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.offsets import format_offsets


class ReadSparkCheckpointOperator(BaseOperator):
    """Reads the committed Kafka positions of a Spark streaming job.

    Args:
        checkpoint: The job's checkpoint location.
        control: Its control location; None where it has none.

    Returns:
        ``positions`` and ``pending`` (where the batch ends that was begun and not committed, or
        None) as Spark's JSON text; ``read_until``, the later of the two: what MirrorMaker 2 must
        have copied before a migration; ``committed_batch``, ``pending_batch``, ``reread`` (records
        of the pending batch), ``query_id``, and of the driver that ran last ``driver_run_id`` and
        ``heartbeat``: who finds the same again knows that none has run since.

    Raises:
        CheckpointError: The checkpoint is missing, damaged, or not of a Kafka source.
        StopError: The control location can't be read.
    """

    template_fields: Sequence[str] = ("checkpoint", "control")

    def __init__(self, *, checkpoint: str, control: str | None = None, **kwargs: Any) -> None:
        """Keep the settings."""
        # Each result is an XCom of its own: ``read.output["positions"]`` is what others take.
        super().__init__(multiple_outputs=True, **kwargs)
        self.checkpoint = checkpoint
        self.control = control

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read the checkpoint."""
        # The driver first: one that starts in between then shows.
        driver = read_driver(storage_path(self.control)) if self.control else None
        found = read_checkpoint(storage_path(self.checkpoint))
        return {
            "positions": format_offsets(found.positions),
            "pending": format_offsets(found.pending) if found.pending else None,
            "read_until": format_offsets(found.read_until),
            "committed_batch": found.committed_batch,
            "pending_batch": found.pending_batch,
            "reread": found.reread,
            "query_id": found.query_id,
            "driver_run_id": driver and driver.run_id,
            "heartbeat": driver and driver.heartbeat,
        }
