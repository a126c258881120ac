"""The step that reads the positions of a Spark job."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context
from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    Mm2OffsetsError,
    StopError,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.pairs import pair_of
from airflow_mm2_offsets.operators.settings import check_location, given, leaves_job_alone
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.fence import Fence, read_fence
from airflow_mm2_offsets.spark.lost_checkpoint import LostCheckpoint, Substitute
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets, to_positions
from airflow_mm2_offsets.spark.position_ids import check_ids, note_ids


class ReadSparkCheckpointOperator(BaseOperator):
    """Reads the committed Kafka positions of a Spark streaming job.

    Args:
        checkpoint: The job's checkpoint location.
        control: Its control location; None where it has none.
        mm2_conn_id: Id of a connection of type ``mm2``, to read the ids of clusters and topics;
            None reads no ids. The ids of a lost source are unknown.
        request_id: The failover, as ``StopSparkStreamingOperator`` has it.
        mode: ``disaster``: where the checkpoint's storage is out of reach, or the checkpoint is
            gone, the saved positions count, else ``positions``. A damaged checkpoint is an error
            in every mode.
        saved_positions: The folder that ``SaveSparkPositionsOperator`` saves to.
        positions: Your word where the job stands, if nothing else says so: topic to partition to
            next offset, as a dict or as Spark's JSON text.
        positions_as_of: When the job stood at ``positions``: ISO 8601 with a zone. By default the
            time of this task.
        exchanged: See ``TranslateOffsetsOperator``. May be a templated string.
        is_dry_run: Note no ids; neither does a drill. May be a templated string.

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
        "checkpoint",
        "control",
        "mm2_conn_id",
        "request_id",
        "mode",
        "saved_positions",
        "positions",
        "positions_as_of",
        "exchanged",
        "is_dry_run",
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        control: str | None = None,
        mm2_conn_id: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        mode: str = FailoverMode.PLANNED.value,
        saved_positions: str | None = None,
        positions: Mapping[str, Any] | str | None = None,
        positions_as_of: str | None = None,
        exchanged: bool | str = False,
        is_dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        # Each result becomes an XCom, so that other tasks take ``read.output["positions"]``.
        super().__init__(multiple_outputs=True, **kwargs)
        self.checkpoint = checkpoint
        self.control = control
        self.mm2_conn_id = mm2_conn_id
        self.request_id = request_id
        self.mode = mode
        self.saved_positions = saved_positions
        self.positions = positions
        self.positions_as_of = positions_as_of
        self.exchanged = exchanged
        self.is_dry_run = is_dry_run

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read the checkpoint; in a disaster, where it is lost, what was saved of it."""
        # The driver first: a driver that starts before the checkpoint is read is then noticed.
        driver = self._read_driver()
        try:
            positions = self._of_checkpoint(self._read_checkpoint())
        except (CheckpointError, ConfigurationError) as error:
            positions = self._of_substitute(self._substitute(error, driver))
        return {
            **positions,
            "topics": ",".join(sorted(parse_offsets(positions["positions"]))),
            "driver_run_id": driver and driver.run_id,
            "heartbeat": driver and driver.heartbeat,
        }

    def parse_settings(self) -> Positions | None:
        """Return the given positions, and check what else stands in for a lost checkpoint.

        Raises:
            Mm2OffsetsError: A setting is invalid.
        """
        self._parse_as_of()
        if self._is_disaster:
            check_location(self, "saved_positions")
        return parse_positions(self, "positions")

    def _of_checkpoint(self, checkpoint: Checkpoint) -> dict[str, Any]:
        return {
            "positions": format_offsets(checkpoint.positions),
            "pending": format_offsets(checkpoint.pending) if checkpoint.pending else None,
            "read_until": format_offsets(checkpoint.read_until),
            "committed_batch": checkpoint.committed_batch,
            "pending_batch": checkpoint.pending_batch,
            "reread": checkpoint.reread,
            "query_id": checkpoint.query_id,
            "clusters": self._note_ids(checkpoint),
            "as_of": None,
            "origin": "checkpoint",
        }

    def _read_checkpoint(self) -> Checkpoint:
        location = storage_path(self.checkpoint)
        if self.mm2_conn_id is None:
            return read_checkpoint(location)
        return read_checkpoint_of(
            pair_of(self),
            location,
            open_path=storage_path,
            control=self._reachable_control(),
            compare_topics=False,  # ``clusters`` has their ids, and later steps compare them.
        )

    def _reachable_control(self) -> UPath | None:
        """Return the control location; None in a disaster that has lost it."""
        try:
            return storage_path(self.control) if self.control else None
        except ConfigurationError:
            if not self._is_disaster:
                raise
            return None

    @property
    def _is_disaster(self) -> bool:
        return self.mode == FailoverMode.DISASTER

    def _read_driver(self) -> Driver | None:
        if not self.control:
            return None
        try:
            return read_driver(storage_path(self.control))
        except (StopError, ConfigurationError) as error:
            if not self._is_disaster:
                raise
            self.log.warning("The last driver is unknown: %s", error)
            return None

    def _substitute(self, error: Mm2OffsetsError, driver: Driver | None) -> Substitute:
        """Return what stands in for a lost checkpoint; raise ``error`` where nothing may."""
        if not self._is_disaster:
            raise error
        is_open = not isinstance(error, ConfigurationError)
        return LostCheckpoint(
            error=error,
            location=storage_path(self.checkpoint) if is_open else None,
            saved_positions=storage_path(self.saved_positions) if self.saved_positions else None,
            positions=self.parse_settings(),
            driver=driver,
            fence=self._fence_of_other_run() if driver else None,
        ).find_substitute()

    def _fence_of_other_run(self) -> Fence | None:
        fence = read_fence(storage_path(self.control)) if self.control else None
        return None if fence is None or fence.request_id == self.request_id else fence

    def _of_substitute(self, substitute: Substitute) -> dict[str, Any]:
        saved = substitute.saved
        ids = self._substitute_ids(substitute)
        self.log.warning(
            "Took %s positions%s", substitute.origin, f" of {saved.saved_at}" if saved else ""
        )
        return {
            "positions": format_offsets(substitute.positions),
            "pending": None,
            "read_until": format_offsets(substitute.positions),
            "committed_batch": saved and saved.committed_batch,
            "pending_batch": None,
            "reread": 0,
            "query_id": saved and saved.query_id,
            "clusters": ids and ids.to_json(),
            "as_of": substitute.as_of or self._given_as_of(),
            "origin": substitute.origin,
        }

    def _given_as_of(self) -> str:
        """Return when given positions were right; without your word, when they were read."""
        return self._parse_as_of() or datetime.now(UTC).isoformat(timespec="milliseconds")

    def _parse_as_of(self) -> str | None:
        as_of = given(self.positions_as_of)
        if as_of is not None and parse_zoned(as_of) is None:
            raise ConfigurationError(
                f"task {self.task_id}: positions_as_of is {as_of!r}; give a time with its zone"
            )
        return as_of

    def _substitute_ids(self, substitute: Substitute) -> PairIds | None:
        """Return the ids that the positions belong to; those that can be read must be the same."""
        if self.mm2_conn_id is None:
            return None if substitute.saved is None else substitute.saved.clusters
        now = self._read_ids(substitute.positions)
        if substitute.saved is None:
            return now
        check_ids(substitute.saved.clusters, now)
        return substitute.saved.clusters.completed_by(now)

    def _note_ids(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        if self.mm2_conn_id is None:
            return None
        ids, location = self._read_ids(checkpoint.positions), storage_path(self.checkpoint)
        is_kept = not leaves_job_alone(self)
        return note_ids(location, checkpoint, self.request_id, ids, is_kept=is_kept).to_json()

    def _read_ids(self, positions: Positions) -> PairIds:
        return read_known_ids(pair_of(self), positions)


def parse_positions(task: BaseOperator, field: str) -> Positions | None:
    """Return positions that a user may have given, as a dict or as Spark's JSON text.

    Raises:
        ConfigurationError: They are something else.
    """
    positions = getattr(task, field)
    if positions in (None, "", "None"):
        return None
    try:
        return to_positions(positions)
    except (Mm2OffsetsError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"task {task.task_id}: {field} is {positions!r}; give topic to partition to next "
            f"offset, as a dict or as Spark's JSON text: {error}"
        ) from error
