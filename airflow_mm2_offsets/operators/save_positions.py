"""The step that saves a job's positions for the night when its checkpoint's storage is gone."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.journal import FenceState
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import job_of, pair_of_move
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.saved_positions import save_positions, saved_positions_path


class SaveSparkPositionsOperator(BaseOperator):
    """Saves the committed positions of a Spark job in a storage that outlives the checkpoint's.

    ``ReadSparkCheckpointOperator(policy="disaster", saved_positions=...)`` reads them where the
    checkpoint is lost. Run it on a schedule: the job reads again what it processed since. Give
    ``job``, or ``checkpoint`` and ``save_to``.

    Args:
        job: A job, or its name in the file of jobs: it is read where its journal says that it is,
            and saved where it is declared.
        checkpoint: The job's checkpoint location.
        save_to: A folder for the positions of all jobs, one file for each checkpoint.
        control: The job's control location: positions of a job that was moved are not saved.
        mm2_conn_id: Id of a connection of type ``mm2``, to save the ids of clusters and topics with
            the positions; None saves no ids, so that a recreated topic is not noticed.

    Returns:
        What the file holds (``spark.saved_positions``), and its ``path``.

    Raises:
        AirflowSkipException: The job saves no positions, or was moved to another cluster.
        ConfigurationError: Neither job nor checkpoint is given, or both; or there is no such job.
        HandoverError: The job's journal can't be read.
        CheckpointError: The checkpoint or the folder can't be read.
        ForeignPositionsError: The job of the checkpoint reads another cluster than the source.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("job", "checkpoint", "save_to", "control", "mm2_conn_id")

    def __init__(
        self,
        *,
        job: SparkJob | Mapping[str, Any] | str | None = None,
        checkpoint: str | None = None,
        save_to: str = "",
        control: str | None = None,
        mm2_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.job = job.to_json() if isinstance(job, SparkJob) else job
        self.checkpoint = checkpoint
        self.save_to = save_to
        self.control = control
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read the checkpoint, and save its positions."""
        pair = self._pair_of_job() if self.job is not None else self._own_pair()
        location, folder = storage_path(str(self.checkpoint)), storage_path(self.save_to)
        self._check_wanted()
        read_at = datetime.now(UTC)
        checkpoint = self._read(location, pair)
        topics = list(checkpoint.positions)
        ids = read_known_ids(pair, topics) if pair else PairIds()
        saved = save_positions(folder, location, checkpoint, ids, read_at)
        self.log.info("Saved the positions of batch %s", saved.committed_batch)
        return {**saved.to_json(), "path": str(saved_positions_path(folder, location))}

    def _pair_of_job(self) -> ClusterPair:
        """Take the job's folders from where its journal says that it is; return its clusters."""
        if self.checkpoint is not None:
            raise ConfigurationError(
                f"task {self.task_id}: job and checkpoint: both are given; give one of them"
            )
        job = job_of(MoveRequest.from_json({"job": self.job}))
        if job.saved_positions is None:
            raise AirflowSkipException(f"job {job.name} names no saved_positions: none are saved")
        move = Mover(job, "", PLANNED, storage_path).find()
        self.checkpoint, self.save_to = move.here.checkpoint, job.saved_positions
        self.control = move.here.control if job.is_controlled else None
        return pair_of_move(move)

    def _own_pair(self) -> ClusterPair | None:
        if not self.checkpoint:
            raise ConfigurationError(
                f"task {self.task_id}: job or checkpoint: neither is given; give one of them"
            )
        return Mm2OffsetHook(self.mm2_conn_id).get_conn() if self.mm2_conn_id else None

    def _read(self, location: UPath, pair: ClusterPair | None) -> Checkpoint:
        if pair is None:
            return read_checkpoint(location)
        control = storage_path(self.control) if self.control else None
        return read_checkpoint_of(pair, location, open_path=storage_path, control=control)

    def _check_wanted(self) -> None:
        fence = read_fence(storage_path(self.control)) if self.control else None
        if fence is not None and fence.state is FenceState.MOVED:
            raise AirflowSkipException(f"{fence}: its positions here count no more")
