"""Reads the Kafka positions of a Spark checkpoint; operators, triggers and CLI call it."""

from dataclasses import dataclass
from typing import NamedTuple

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark import offset_log
from airflow_mm2_offsets.spark.logs import CheckpointLogs, read_logs
from airflow_mm2_offsets.storage import change_mark, list_directory, open_location


class ListedFile(NamedTuple):
    """One file of a checkpoint's logs, as its storage lists it."""

    path: str
    size: int
    mark: str
    """Entity tag, time of change, or both, as the storage has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The Kafka positions in a checkpoint."""

    location: str
    query_id: str
    committed_batch: int | None
    """The last committed batch; None if no batch was committed."""
    positions: Positions
    """Where the committed batches end. Partitions that only the pending batch reads are missing."""
    pending_batch: int | None
    """The batch that was begun and not committed, if any."""
    pending: Positions | None
    """Where the pending batch ends."""
    start: Positions
    """Where the first batch began; empty if the checkpoint no longer says so."""

    @property
    def reread(self) -> int:
        """The most records that are processed again because their batch is pending."""
        return sum(
            max(0, end - self.positions.get(topic, {}).get(partition, 0))
            for topic, ends in (self.pending or {}).items()
            for partition, end in ends.items()
        )

    @property
    def read_until(self) -> Positions:
        """The positions up to which records may have been read: the pending batch's end, if any."""
        return self.pending or self.positions


def read_checkpoint(location: UPath | str) -> Checkpoint:
    """Read the committed positions of a streaming query, and its pending batch.

    Raises:
        CheckpointError: It is missing, half-written, contradicts itself, has no Kafka source, or
            can't be read.
    """
    logs = read_logs(location)
    # A source that was renamed since keeps its start on storage.
    newest = logs.sources(logs.newest)
    start = offset_log.kafka_positions(
        [text for name, text in logs.starts.items() if name in newest], f"{logs.root}/sources"
    )
    if logs.base is None and not start:
        raise CheckpointError(
            "no batch was committed, and sources/ does not say where a Kafka source began; start "
            "the job with startingOffsets and a new checkpoint",
            file=str(logs.root),
        )
    return Checkpoint(
        location=str(location),
        query_id=logs.query_id,
        committed_batch=logs.committed,
        positions=start if logs.base is None else _ends(logs, logs.base),
        pending_batch=logs.pending,
        pending=None if logs.pending is None else _ends(logs, logs.pending),
        start=start,
    )


def listing(location: UPath | str) -> frozenset[ListedFile]:
    """List the files of the offset log and the commit log, temporary files too.

    If two listings are equal, no job wrote to these logs between the two.

    Raises:
        CheckpointError: The storage can't be read.
    """
    root = open_location(location, CheckpointError)
    return frozenset(
        ListedFile(entry["name"], entry["size"] or 0, change_mark(entry))
        for log in ("offsets", "commits")
        for entry in list_directory(root / log, CheckpointError).values()
        if entry["type"] == "file"
    )


def _ends(logs: CheckpointLogs, batch: int) -> Positions:
    sources = logs.sources(batch)
    positions = offset_log.kafka_positions(sources.values(), logs.path(batch))
    if not positions:
        raise CheckpointError(
            f"none of its {len(sources)} sources is Kafka, so there's nothing to translate",
            file=logs.path(batch),
        )
    return positions
