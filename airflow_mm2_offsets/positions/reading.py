"""Reads where a Spark job stands, and in a disaster what stands in for a lost checkpoint.

The stop of a move and ``ReadSparkCheckpointOperator`` call it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    Mm2OffsetsError,
    StopError,
)
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.job_positions import JobPositions
from airflow_mm2_offsets.spark.lost_checkpoint import LostCheckpoint, Substitute
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets
from airflow_mm2_offsets.spark.position_ids import check_ids, note_ids

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsReader:
    """Where a job's positions are, and what stands in for them."""

    checkpoint: str
    open_path: Callable[[str], UPath]
    control: str | None = None
    """The job's control location; None: it has none."""
    pair: ClusterPair | None = None
    """The clusters, as the job moves between them; None: no ids are read."""
    request_id: str = ""
    """The failover that the ids are noted for."""
    notes_ids: bool = True
    """Whether the ids are noted beside the checkpoint."""
    may_be_lost: bool = False
    """In a disaster: what was saved of a lost checkpoint, or was given, counts."""
    saved_positions: str | None = None
    """The folder that ``SaveSparkPositionsOperator`` saves to."""
    positions: JobPositions | None = None
    """Where the user says that the job stands."""
    start: Positions | None = None
    """Where a job was to start that has not begun; None: it has a checkpoint."""

    def read(self) -> dict[str, Any]:
        """Return positions, ids and driver as plain JSON; see ``ReadSparkCheckpointOperator``.

        Raises:
            CheckpointError: The checkpoint is lost and nothing stands in for it, or damaged.
            ConfigurationError: Its storage can't be opened, likewise.
            ForeignPositionsError: It is of another cluster, or of a topic that was recreated.
            HandoverError: A cluster or topic has another id than was noted or saved.
            StopError: The control location can't be read.
            ClusterUnreachableError: The target does not answer.
        """
        # The driver first: a driver that starts before the checkpoint is read is then noticed.
        driver = self._read_driver()
        try:
            if self.start is not None:
                positions = self._of_start(self.start)
            else:
                positions = self._of_checkpoint(self._read_checkpoint())
        except (CheckpointError, ConfigurationError) as error:
            positions = self._of_substitute(self._substitute(error, driver))
        return {
            **positions,
            "topics": ",".join(sorted(parse_offsets(positions["positions"]))),
            "driver_run_id": driver and driver.run_id,
            "heartbeat": driver and driver.heartbeat,
        }

    def _read_checkpoint(self) -> Checkpoint:
        location = self.open_path(self.checkpoint)
        if self.pair is None:
            return read_checkpoint(location)
        return read_checkpoint_of(
            self.pair,
            location,
            open_path=self.open_path,
            control=self._reachable_control(),
            compare_topics=False,  # ``clusters`` has their ids, and later steps compare them.
        )

    def _of_start(self, start: Positions) -> dict[str, Any]:
        ids = None if self.pair is None else read_known_ids(self.pair, start)
        return {
            "positions": format_offsets(start),
            "pending": None,
            "read_until": format_offsets(start),
            "committed_batch": None,
            "pending_batch": None,
            "reread": 0,
            "query_id": None,
            "clusters": ids and ids.to_json(),
            "as_of": None,
            "origin": "hand-over",
        }

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

    def _note_ids(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        if self.pair is None:
            return None
        ids = read_known_ids(self.pair, checkpoint.positions)
        location = self.open_path(self.checkpoint)
        noted = note_ids(location, checkpoint, self.request_id, ids, is_kept=self.notes_ids)
        return noted.to_json()

    def _reachable_control(self) -> UPath | None:
        """Return the control location; None in a disaster that has lost it."""
        try:
            return self.open_path(self.control) if self.control else None
        except ConfigurationError:
            if not self.may_be_lost:
                raise
            return None

    def _read_driver(self) -> Driver | None:
        if not self.control:
            return None
        try:
            return read_driver(self.open_path(self.control))
        except (StopError, ConfigurationError) as error:
            if not self.may_be_lost:
                raise
            log.warning("The last driver is unknown: %s", error)
            return None

    def _substitute(self, error: Mm2OffsetsError, driver: Driver | None) -> Substitute:
        """Return what stands in for a lost checkpoint; raise ``error`` where nothing may."""
        if not self.may_be_lost:
            raise error
        is_open = not isinstance(error, ConfigurationError)
        return LostCheckpoint(
            error=error,
            location=self.open_path(self.checkpoint) if is_open else None,
            saved_positions=self.open_path(self.saved_positions) if self.saved_positions else None,
            positions=self.positions.positions if self.positions else None,
            driver=driver,
        ).find_substitute()

    def _of_substitute(self, substitute: Substitute) -> dict[str, Any]:
        saved = substitute.saved
        ids = self._substitute_ids(substitute)
        log.warning(
            "Took %s positions%s", substitute.origin, f" of {saved.saved_at}" if saved else ""
        )
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {
            "positions": format_offsets(substitute.positions),
            "pending": None,
            "read_until": format_offsets(substitute.positions),
            "committed_batch": saved and saved.committed_batch,
            "pending_batch": None,
            "reread": 0,
            "query_id": saved and saved.query_id,
            "clusters": ids and ids.to_json(),
            "as_of": substitute.as_of or (self.positions and self.positions.as_of) or now,
            "origin": substitute.origin,
        }

    def _substitute_ids(self, substitute: Substitute) -> PairIds | None:
        """Return the ids that the positions belong to; those that can be read must be the same."""
        noted = substitute.saved.clusters if substitute.saved else self._given_ids()
        if self.pair is None:
            return noted
        now = read_known_ids(self.pair, substitute.positions)
        if noted is None:
            return now
        check_ids(noted, now)
        return noted.completed_by(now)

    def _given_ids(self) -> PairIds | None:
        clusters = self.positions and self.positions.clusters
        return PairIds.from_json(clusters) if clusters else None
