"""The step that saves a job's positions for the night when its checkpoint's storage is gone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.journal import FenceState
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.saved_positions import save_positions, saved_positions_path


class SaveSparkPositionsOperator(BaseOperator):
    """Saves the committed positions of a Spark job in a storage that outlives the checkpoint's.

    ``ReadSparkCheckpointOperator(policy="disaster", saved_positions=...)`` reads them where the
    checkpoint is lost. Run it on a schedule: the job reads again what it processed since.

    Args:
        checkpoint: The job's checkpoint location; empty: the task is skipped.
        save_to: A folder for the positions of all jobs, one file for each checkpoint.
        control: The job's control location: positions of a job that was moved are not saved.
        mm2_conn_id: Id of a connection of type ``mm2``, to save the ids of clusters and topics with
            the positions; None saves no ids, so that a recreated topic is not noticed.

    Returns:
        What the file holds (``spark.saved_positions``), and its ``path``.

    Raises:
        AirflowSkipException: No checkpoint is named, or the job was moved to another cluster.
        CheckpointError: The checkpoint or the folder can't be read.
        ForeignPositionsError: The job of the checkpoint reads another cluster than the source.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("checkpoint", "save_to", "control", "mm2_conn_id")

    def __init__(
        self,
        *,
        checkpoint: str,
        save_to: str,
        control: str | None = None,
        mm2_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.checkpoint = checkpoint
        self.save_to = save_to
        self.control = control
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read the checkpoint, and save its positions."""
        self._check_wanted()
        location, folder = storage_path(self.checkpoint), storage_path(self.save_to)
        read_at = datetime.now(UTC)
        checkpoint = self._read(location)
        saved = save_positions(
            folder, location, checkpoint, self._ids(list(checkpoint.positions)), read_at
        )
        self.log.info("Saved the positions of batch %s", saved.committed_batch)
        return {**saved.to_json(), "path": str(saved_positions_path(folder, location))}

    def _read(self, location: UPath) -> Checkpoint:
        if not self.mm2_conn_id:
            return read_checkpoint(location)
        control = storage_path(self.control) if self.control else None
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        return read_checkpoint_of(pair, location, open_path=storage_path, control=control)

    def _check_wanted(self) -> None:
        if not self.checkpoint:
            raise AirflowSkipException("no checkpoint is named: no positions are saved")
        fence = read_fence(storage_path(self.control)) if self.control else None
        if fence is not None and fence.state is FenceState.MOVED:
            raise AirflowSkipException(f"{fence}: its positions here count no more")

    def _ids(self, topics: list[str]) -> PairIds:
        if not self.mm2_conn_id:
            return PairIds()
        return read_known_ids(Mm2OffsetHook(self.mm2_conn_id).get_conn(), topics)
