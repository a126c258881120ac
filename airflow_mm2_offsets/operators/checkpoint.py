"""The step that reads the positions of a Spark job."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.policy import PLANNED, parse_policy
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import run_name
from airflow_mm2_offsets.operators.settings import check_location, given, given_positions
from airflow_mm2_offsets.planning.lost_parts import quick
from airflow_mm2_offsets.positions.reading import PositionsReader
from airflow_mm2_offsets.spark.job_positions import JobPositions


class ReadSparkCheckpointOperator(BaseOperator):
    """Reads the committed Kafka positions of a Spark streaming job.

    Args:
        checkpoint: The job's checkpoint location.
        control: Its control location; None where it has none.
        mm2_conn_id: Id of a connection of type ``mm2``, to read the ids of clusters and topics;
            None reads no ids. The ids of a lost source are unknown.
        to: See ``TranslateOffsetsOperator``.
        policy: ``disaster``: where the checkpoint's storage is out of reach, or the checkpoint is
            gone, the saved positions count, else ``positions``. A damaged checkpoint is an error
            in every case.
        saved_positions: The folder that ``SaveSparkPositionsOperator`` saves to.
        positions: Where the job stands, if nothing else says so: topic to partition to next offset,
            as a mapping or as Spark's JSON text. Or a mapping of ``positions`` and ``as_of``, when
            the job stood there: ISO 8601 with a zone; by default the time of this task.

    Returns:
        ``positions`` and ``pending`` (where the batch ends that was begun and not committed, or
        None) as Spark's JSON text; ``read_until``, the later of the two: what MirrorMaker 2 must
        have copied before a migration; ``committed_batch``, ``pending_batch``, ``reread`` (records
        of the pending batch), ``query_id``, and of the last driver ``driver_run_id`` and
        ``heartbeat``: unchanged, they prove that no driver has run since. ``clusters``: the ids of
        clusters and topics when the positions were first read, or None. They are noted beside the
        checkpoint, in ``<checkpoint>.clusters.json``, and apply until the job begins another batch.
        ``topics``: their names, separated by commas. ``origin``: ``checkpoint``, ``saved`` or
        ``given``. ``as_of``: when saved or given positions were read (ISO 8601), else None. Of both
        nothing is pending, but the job may have gone on: give ``as_of`` to the
        forecast.

    Raises:
        CheckpointError: The checkpoint is missing, damaged, or not of a Kafka source; in a disaster
            nothing stands in for it, or the job was moved or recreated since its positions were
            saved.
        ForeignPositionsError: A file beside the checkpoint says that the job reads another cluster.
        HandoverError: A cluster or topic has another id than when the positions were saved.
        StopError: The control location can't be read.
        ClusterUnreachableError: The target does not answer.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *("checkpoint", "control", "mm2_conn_id", "to", "policy", "saved_positions"),
        "positions",
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        control: str | None = None,
        mm2_conn_id: str | None = None,
        to: str | None = None,
        policy: str = PLANNED.name,
        saved_positions: str | None = None,
        positions: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        # Each result becomes an XCom, so that other tasks take ``read.output["read_until"]``.
        super().__init__(multiple_outputs=True, **kwargs)
        self.checkpoint = checkpoint
        self.control = control
        self.mm2_conn_id = mm2_conn_id
        self.to = to
        self.policy = policy
        self.saved_positions = saved_positions
        self.positions = positions

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Read the checkpoint; in a disaster, where it is lost, what was saved of it."""
        may_be_lost = parse_policy(self.policy).source_may_be_lost
        positions = self.parse_settings()
        return PositionsReader(
            checkpoint=self.checkpoint,
            open_path=storage_path,
            control=given(self.control),
            pair=self._pair(),
            request_id=run_name(context),
            may_be_lost=may_be_lost,
            saved_positions=given(self.saved_positions),
            positions=positions if may_be_lost else None,
        ).read()

    def _pair(self) -> ClusterPair | None:
        if self.mm2_conn_id is None:
            return None
        pair = Mm2OffsetHook(self.mm2_conn_id, to=given(self.to)).get_conn()
        return quick(pair) if parse_policy(self.policy).source_may_be_lost else pair

    def parse_settings(self) -> JobPositions | None:
        """Return the given positions, and check what else stands in for a lost checkpoint.

        Raises:
            Mm2OffsetsError: A setting is invalid.
        """
        if parse_policy(self.policy).source_may_be_lost:
            check_location(self, "saved_positions")
        return given_positions(self)
