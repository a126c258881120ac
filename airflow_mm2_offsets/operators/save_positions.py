"""The step that saves a job's positions for the night when its checkpoint's storage is gone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    JobArgument,
    job_of_task,
    job_to_template,
    pair_of_move,
)
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.saved_positions import save_positions, saved_positions_path


class SaveSparkPositionsOperator(BaseOperator):
    """Saves the committed positions of a Spark job in a storage that outlives the checkpoint's.

    A disaster's stop, and ``ReadSparkCheckpointOperator(policy="disaster", saved_positions=...)``,
    read them where the checkpoint is lost. Run it on a schedule: the job reads again what it
    processed since. With them it saves the ids of clusters and topics, so that a recreated topic is
    noticed; those of a job with one home are not known.

    Args:
        job: A job, or its name in the file of jobs: it is read where its journal says that it is,
            and saved in the folder that its ``saved_positions`` names, one file for each
            checkpoint.

    Returns:
        What the file holds (``spark.saved_positions``), and its ``path``.

    Raises:
        AirflowSkipException: The job names no ``saved_positions``.
        ConfigurationError: There is no such job, or it is wrong.
        HandoverError: The job's journal can't be read, or was lost.
        CheckpointError: The checkpoint or the folder can't be read.
        ForeignPositionsError: The job of the checkpoint reads another cluster than the source.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("job",)

    def __init__(self, *, job: JobArgument, **kwargs: Any) -> None:
        """Keep the setting."""
        super().__init__(**kwargs)
        self.job = job_to_template(job)

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read the checkpoint, and save its positions."""
        job = job_of_task(self)
        if job.saved_positions is None:
            raise AirflowSkipException(f"job {job.name} names no saved_positions: none are saved")
        move = Mover(job, "", PLANNED, storage_path).find()
        pair = pair_of_move(move) if move.there else None
        location, folder = storage_path(move.here.checkpoint), storage_path(job.saved_positions)
        read_at = datetime.now(UTC)
        checkpoint = _read(move, location, pair)
        ids = read_known_ids(pair, list(checkpoint.positions)) if pair else PairIds()
        saved = save_positions(folder, location, checkpoint, ids, read_at)
        self.log.info("Saved the positions of batch %s", saved.committed_batch)
        return {**saved.to_json(), "path": str(saved_positions_path(folder, location))}


def _read(move: Move, location: UPath, pair: ClusterPair | None) -> Checkpoint:
    if pair is None:
        return read_checkpoint(location)
    control = storage_path(move.here.control) if move.job.is_controlled else None
    return read_checkpoint_of(pair, location, open_path=storage_path, control=control)
