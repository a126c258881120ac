"""What a failover's picture shows: the batches on both clusters, and the time between them.

All is read from what the run has left: each row of the sink has the partition and the offset that
it was read from, and each file has the time when its batch was written.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pyarrow.parquet as pq

from demo.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of the streaming job.

    Attributes:
        at: When the last of its files was written.
        rows: Its records in the sink, of all partitions.
        position: The next offset to read after it, of the partition that is shown; None if it has
            no record of that partition.
    """

    at: datetime
    rows: int
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A job's way from one cluster to the other.

    Attributes:
        partition: The topic-partition whose offsets are shown.
        source: The batches on the source, in order of time.
        target: Likewise on the target.
        stopped_at: The position on the source where the job stopped.
        started_at: The position on the target where it was started.
        triggered: When the failover was asked for.
        timeline: Whose the seconds were from there to the first record on the target.
        verdict: What came of it, in a sentence.
    """

    partition: str
    source: tuple[Batch, ...]
    target: tuple[Batch, ...]
    stopped_at: int
    started_at: int
    triggered: datetime
    timeline: Timeline
    verdict: str

    @property
    def is_complete(self) -> bool:
        """Whether the job wrote something on both sides."""
        return bool(self.source and self.target)

    @property
    def gap(self) -> float:
        """The seconds between the last batch on the source and the first one on the target."""
        return (self.target[0].at - self.source[-1].at).total_seconds()

    def seconds(self, at: datetime) -> float:
        """Return a time as seconds since the failover was asked for."""
        return (at - self.triggered).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One file of a batch."""

    at: datetime
    rows: int
    position: int | None

    @classmethod
    def read(cls, file: Path, partition: int) -> Self:
        """Read a Parquet file of the sink."""
        columns = pq.read_table(file, columns=["partition", "offset"]).to_pydict()
        offsets = zip(columns["partition"], columns["offset"], strict=True)
        positions = [offset + 1 for number, offset in offsets if number == partition]
        return cls(
            at=datetime.fromtimestamp(file.stat().st_mtime, UTC),
            rows=len(columns["offset"]),
            position=max(positions, default=None),
        )


def read_batches(output: Path, partition: int) -> tuple[Batch, ...]:
    """Read the batches that a job has written, in order of time; those without a row are left out.

    Args:
        output: The job's output on one cluster.
        partition: The number of the partition whose positions are shown.
    """
    folders = (folder.glob("part-*.parquet") for folder in output.glob("batch_id=*"))
    batches = (_batch(_Part.read(file, partition) for file in files) for files in folders)
    return tuple(sorted((each for each in batches if each), key=lambda batch: batch.at))


def _batch(parts: Iterable[_Part]) -> Batch | None:
    filled = [part for part in parts if part.rows]
    if not filled:
        return None
    return Batch(
        at=max(part.at for part in filled),
        rows=sum(part.rows for part in filled),
        position=max((part.position for part in filled if part.position), default=None),
    )
