"""How often a job has written to its checkpoint: how long silence must last to mean anything."""

import re
from dataclasses import dataclass
from itertools import pairwise

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.offset_log import parse_object, split_log
from airflow_mm2_offsets.storage import list_directory, open_location, read_text

RECENT_BATCHES = 10
"""How many of the newest batches are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """The times between the newest batches of a checkpoint, in seconds."""

    gaps: tuple[float, ...] = ()
    """Oldest first; empty where fewer than two batches have a time."""
    newest: float | None = None
    """When the newest of them began, in seconds since 1970; None where none has a time."""

    @property
    def longest(self) -> float:
        """The longest gap; 0 where none is known."""
        return max(self.gaps, default=0.0)

    @property
    def shortest(self) -> float:
        """The shortest gap; 0 where none is known."""
        return min(self.gaps, default=0.0)


def read_cadence(location: UPath | str) -> Cadence:
    """Read when the newest batches began: ``batchTimestampMs``, Spark's ``OffsetSeqMetadata``.

    A batch whose file has gone, is half-written or has no time is passed over.

    Raises:
        CheckpointError: The storage can't be read.
    """
    log = open_location(location, CheckpointError) / "offsets"
    numbers = sorted(
        int(name) for name in list_directory(log, CheckpointError) if re.fullmatch(r"\d+", name)
    )
    times = [_time(log / str(number)) for number in numbers[-RECENT_BATCHES:]]
    known = [each for each in times if each is not None]
    # A clock that was set back shows no gap.
    gaps = tuple(max(0.0, after - before) for before, after in pairwise(known))
    return Cadence(gaps=gaps, newest=known[-1] if known else None)


def _time(path: UPath) -> float | None:
    text = read_text(path, CheckpointError)
    metadata = split_log(text)[1] if text else ""
    try:
        value = parse_object(metadata, str(path)).get("batchTimestampMs") if metadata else None
    except CheckpointError:
        return None
    return value / 1000 if isinstance(value, (int, float)) and value > 0 else None
