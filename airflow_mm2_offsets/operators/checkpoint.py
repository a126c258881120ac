"""The step that reads the positions of a Spark job."""

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.spark.position_ids import note_ids


class ReadSparkCheckpointOperator(BaseOperator):
    """Reads the committed Kafka positions of a Spark streaming job.

    Args:
        checkpoint: The job's checkpoint location.
        control: Its control location; None where it has none.
        mm2_conn_id: Id of a connection of type ``mm2``, to read the ids of clusters and topics;
            None reads no ids. The ids of a lost source are unknown.
        request_id: The failover, as ``StopSparkStreamingOperator`` has it.

    Returns:
        ``positions`` and ``pending`` (where the batch ends that was begun and not committed, or
        None) as Spark's JSON text; ``read_until``, the later of the two: what MirrorMaker 2 must
        have copied before a migration; ``committed_batch``, ``pending_batch``, ``reread`` (records
        of the pending batch), ``query_id``, and of the last driver ``driver_run_id`` and
        ``heartbeat``: unchanged, they prove that no driver has run since. ``clusters``: the ids of
        clusters and topics when the positions were first read, or None. They are noted beside the
        checkpoint, in ``<checkpoint>.clusters.json``, and apply until the job begins another batch.

    Raises:
        CheckpointError: The checkpoint is missing, damaged, or not of a Kafka source.
        StopError: The control location can't be read.
        ClusterUnreachableError: The target does not answer.
    """

    template_fields: Sequence[str] = ("checkpoint", "control", "mm2_conn_id", "request_id")

    def __init__(
        self,
        *,
        checkpoint: str,
        control: str | None = None,
        mm2_conn_id: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        # Each result becomes an XCom, so that other tasks take ``read.output["positions"]``.
        super().__init__(multiple_outputs=True, **kwargs)
        self.checkpoint = checkpoint
        self.control = control
        self.mm2_conn_id = mm2_conn_id
        self.request_id = request_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read the checkpoint."""
        # The driver first: a driver that starts before the checkpoint is read is then noticed.
        driver = read_driver(storage_path(self.control)) if self.control else None
        checkpoint = read_checkpoint(storage_path(self.checkpoint))
        return {
            "positions": format_offsets(checkpoint.positions),
            "pending": format_offsets(checkpoint.pending) if checkpoint.pending else None,
            "read_until": format_offsets(checkpoint.read_until),
            "committed_batch": checkpoint.committed_batch,
            "pending_batch": checkpoint.pending_batch,
            "reread": checkpoint.reread,
            "query_id": checkpoint.query_id,
            "driver_run_id": driver and driver.run_id,
            "heartbeat": driver and driver.heartbeat,
            "clusters": self._note_ids(checkpoint),
        }

    def _note_ids(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        if self.mm2_conn_id is None:
            return None
        ids = read_known_ids(Mm2OffsetHook(self.mm2_conn_id).get_conn(), checkpoint.positions)
        return note_ids(storage_path(self.checkpoint), checkpoint, self.request_id, ids).to_json()
