"""The step that reads where a Spark job stands."""

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
        mm2_conn_id: Id of a connection of type ``mm2``, to read which clusters and topics the
            positions are of; None reads no ids. The source may be lost: its ids are unknown then.
        request_id: The failover, as ``StopSparkStreamingOperator`` has it.

    Returns:
        ``positions`` and ``pending`` (where the batch ends that was begun and not committed, or
        None) as Spark's JSON text; ``read_until``, the later of the two: what MirrorMaker 2 must
        have copied before a migration; ``committed_batch``, ``pending_batch``, ``reread`` (records
        of the pending batch), ``query_id``, and of the driver that ran last ``driver_run_id`` and
        ``heartbeat``: who finds the same again knows that no driver has run since. ``clusters``:
        the ids of clusters and topics when the positions were first read, or None. They are noted
        beside the checkpoint, in ``<checkpoint>.clusters.json``, and count again until the job has
        begun another batch.

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
        # Each result is an XCom of its own: ``read.output["positions"]`` is what others take.
        super().__init__(multiple_outputs=True, **kwargs)
        self.checkpoint = checkpoint
        self.control = control
        self.mm2_conn_id = mm2_conn_id
        self.request_id = request_id

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
            "clusters": self._first_ids(found),
        }

    def _first_ids(self, found: Checkpoint) -> dict[str, Any] | None:
        if self.mm2_conn_id is None:
            return None
        now = read_known_ids(Mm2OffsetHook(self.mm2_conn_id).get_conn(), found.positions)
        return note_ids(storage_path(self.checkpoint), found, self.request_id, now).to_json()
