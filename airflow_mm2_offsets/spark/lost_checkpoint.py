"""Finds what stands in for a checkpoint that is lost; ``ReadSparkCheckpointOperator`` calls it."""

import logging
from dataclasses import dataclass

from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import CheckpointError, Mm2OffsetsError, as_class
from airflow_mm2_offsets.spark.control import Driver
from airflow_mm2_offsets.spark.saved_positions import (
    SavedPositions,
    is_lost,
    read_saved_positions,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """Positions that stand in for those of a checkpoint that is lost."""

    positions: Positions
    origin: str
    """``saved`` or ``given``."""
    saved: SavedPositions | None = None

    @property
    def as_of(self) -> str | None:
        """When saved positions were read."""
        return None if self.saved is None else self.saved.saved_at


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCheckpoint:
    """A checkpoint that can't be read, and what may stand in for it."""

    error: Mm2OffsetsError
    """What reading it raised."""
    location: UPath | None
    """None: it could not even be opened."""
    saved_positions: UPath | None
    """The folder that ``SaveSparkPositionsOperator`` saves to."""
    positions: Positions | None
    """The user's word."""
    driver: Driver | None = None
    """The last driver, if the control location still says."""

    def find_substitute(self) -> Substitute:
        """Return the saved positions, or those given.

        Raises:
            Mm2OffsetsError: ``error``, with the choice, where the checkpoint is damaged or nothing
                stands in for it.
            CheckpointError: The saved positions can't be used, and none are given.
        """
        if not is_lost(self.error, self.location):
            raise self._with_step(
                "the checkpoint is there and can't be used, so nothing stands in for it: restore "
                "it, or name a location that does not exist and give positions"
            )
        log.warning("The checkpoint is lost: %s", self.error)
        if self.saved_positions is not None and self.location is not None:
            try:
                return self._saved(self.saved_positions, self.location)
            except CheckpointError as unusable:
                if self.positions is None:
                    raise
                log.warning("The positions given count, and not the saved ones: %s", unusable)
        if self.positions is not None:
            return Substitute(positions=self.positions, origin="given")
        raise self._with_step(
            "give saved_positions, the folder that SaveSparkPositionsOperator saves to, or the "
            "job's positions"
        )

    def _saved(self, folder: UPath, location: UPath) -> Substitute:
        saved = read_saved_positions(folder, location)
        self._check_same_job(saved)
        return Substitute(positions=saved.positions, origin="saved", saved=saved)

    def _check_same_job(self, saved: SavedPositions) -> None:
        """Raise if the job was moved or recreated since, as far as its control location says."""
        queries = {self.driver.query_id, *self.driver.runs} - {""} if self.driver else set()
        if queries and saved.query_id not in queries:
            raise CheckpointError(
                f"the positions of {saved.saved_at} are of the query {saved.query_id}, and the "
                f"last driver ran {', '.join(sorted(queries))}: the job has another checkpoint "
                f"since; give its positions",
                setting="saved_positions",
            )

    def _with_step(self, step: str) -> Mm2OffsetsError:
        return as_class(type(self.error), self.error, f"{self.error}; {step}")
