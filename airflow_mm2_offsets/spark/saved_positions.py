"""Keeps a job's positions in a storage that outlives the checkpoint's, for the night it is gone.

One small file for each checkpoint. The operators that save and read positions call it. Saved
positions are older than the job: it may have processed more, and a job that starts from them reads
that again. They lose nothing.
"""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Positions, check_positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.plan import digest_of
from airflow_mm2_offsets.errors import (
    CheckpointError,
    CheckpointNotBegunError,
    ConfigurationError,
    Mm2OffsetsError,
)
from airflow_mm2_offsets.locations import folder_id
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.position_ids import ids_of_positions
from airflow_mm2_offsets.storage import list_directory, open_location, read_text, write_text

log = logging.getLogger(__name__)

SCHEMA_VERSION = 1
_CLOCKS = timedelta(minutes=10)
"""By more than this, no two workers' clocks disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPositions:
    """What a checkpoint said at a time."""

    saved_at: str
    """When the checkpoint was read: ISO 8601, UTC."""
    checkpoint: str
    """Its location, by ``folder_id``."""
    query_id: str
    committed_batch: int | None
    pending_batch: int | None
    positions: Positions
    pending: Positions | None
    clusters: PairIds
    """The ids of clusters and topics that the positions belong to, as far as they were known."""

    @property
    def read_until(self) -> Positions:
        """The positions up to which the job may have read then."""
        return self.pending or self.positions

    def age(self, now: datetime) -> float:
        """Return its age in seconds."""
        return max(0.0, (now - datetime.fromisoformat(self.saved_at)).total_seconds())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; offsets are text."""
        saved = {
            "schema_version": SCHEMA_VERSION,
            "saved_at": self.saved_at,
            "checkpoint": self.checkpoint,
            "query_id": self.query_id,
            "committed_batch": self.committed_batch,
            "pending_batch": self.pending_batch,
            "positions": _offsets(self.positions),
            "pending": None if self.pending is None else _offsets(self.pending),
            "clusters": self.clusters.to_json(),
        }
        return saved | {"digest": digest_of(saved)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "SavedPositions":
        """Return the positions that ``to_json`` wrote.

        Raises:
            ValueError: It has another schema version, or was changed since it was written.
        """
        if saved["schema_version"] != SCHEMA_VERSION:
            raise ValueError(
                f"schema version {saved['schema_version']!r}; this release reads {SCHEMA_VERSION}"
            )
        if saved["digest"] != digest_of(saved):
            raise ValueError("its digest is not that of its content: it was changed since")
        datetime.fromisoformat(saved["saved_at"])
        return cls(
            saved_at=saved["saved_at"],
            checkpoint=saved["checkpoint"],
            query_id=saved["query_id"],
            committed_batch=saved["committed_batch"],
            pending_batch=saved["pending_batch"],
            positions=check_positions(saved["positions"]),
            pending=None if saved["pending"] is None else check_positions(saved["pending"]),
            clusters=PairIds.from_json(saved["clusters"]),
        )


def saved_positions_path(folder: UPath, checkpoint: UPath) -> UPath:
    """Return the file of a checkpoint: all spellings of its location have one file."""
    location = folder_id(checkpoint)
    readable = re.sub(r"[^A-Za-z0-9]+", "-", location).strip("-")[-60:]
    return folder / f"{readable}-{sha256(location.encode()).hexdigest()[:16]}.json"


def save_positions(
    folder: UPath, location: UPath, checkpoint: Checkpoint, now: PairIds, read_at: datetime
) -> SavedPositions:
    """Save what was read of a checkpoint, unless a later read was saved already; return what is.

    A topic of which the job has read nothing since the last save keeps the ids from then.

    Args:
        folder: Holds one file for each checkpoint.
        location: The checkpoint's.
        checkpoint: What was read there.
        now: The ids of clusters and topics, read before the checkpoint.
        read_at: When the read began.

    Raises:
        CheckpointError: The folder is out of reach, or the file there is damaged.
    """
    path = saved_positions_path(folder, location)
    earlier = _read(path)
    saved = SavedPositions(
        saved_at=read_at.astimezone(UTC).isoformat(timespec="milliseconds"),
        checkpoint=folder_id(location),
        query_id=checkpoint.query_id,
        committed_batch=checkpoint.committed_batch,
        pending_batch=checkpoint.pending_batch,
        positions=checkpoint.positions,
        pending=checkpoint.pending,
        clusters=now,
    )
    if earlier is not None:
        ahead = datetime.fromisoformat(earlier.saved_at) - read_at
        if timedelta(0) < ahead < _CLOCKS:
            log.info("%s is of a later read, at %s: it stays", path, earlier.saved_at)
            return earlier
        if earlier.query_id == saved.query_id:
            clusters = ids_of_positions(earlier.clusters, earlier.read_until, saved.read_until, now)
            saved = replace(saved, clusters=clusters)
    write_text(path, json.dumps(saved.to_json(), indent=1), CheckpointError)
    return saved


def read_saved_positions(folder: UPath, location: UPath) -> SavedPositions:
    """Return the saved positions of a checkpoint.

    Raises:
        CheckpointError: There are none, or the file is damaged, changed, or of another checkpoint.
    """
    path = saved_positions_path(folder, location)
    saved = _read(path)
    if saved is None:
        raise CheckpointError(
            f"there are no saved positions of the checkpoint {location}: give the folder and the "
            f"location that SaveSparkPositionsOperator has, or the positions themselves",
            file=str(path),
        )
    if saved.checkpoint != folder_id(location):
        raise CheckpointError(
            f"holds the positions of {saved.checkpoint}, not those of {folder_id(location)}",
            file=str(path),
        )
    return saved


def is_lost(error: Mm2OffsetsError, location: UPath | None) -> bool:
    """Tell whether an error means that a checkpoint is out of reach or gone, and not damaged.

    Args:
        error: What reading it raised.
        location: The checkpoint's; None: it could not even be opened.
    """
    if location is None:
        return isinstance(error, ConfigurationError) and isinstance(error.__cause__, OSError)
    if not isinstance(error, CheckpointNotBegunError):
        return isinstance(error, CheckpointError) and error.retryable
    try:
        return not list_directory(open_location(location, CheckpointError), CheckpointError)
    except CheckpointError:
        return True


def _read(path: UPath) -> SavedPositions | None:
    text = read_text(path, CheckpointError)
    if text is None:
        return None
    try:
        return SavedPositions.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise CheckpointError(
            f"does not hold saved positions that can be used: {problem}; delete it, and the next "
            f"run saves them again",
            file=str(path),
        ) from error


def _offsets(positions: Positions) -> dict[str, dict[str, str]]:
    return {
        topic: {str(number): str(offset) for number, offset in partitions.items()}
        for topic, partitions in positions.items()
    }
