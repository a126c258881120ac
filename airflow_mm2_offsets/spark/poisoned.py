"""Finds a checkpoint that a start against another cluster or subscription has poisoned."""

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import CheckpointError

_CAUSES = {
    True: "the job was started against another cluster, or with another subscription",
    False: "the job was started against another cluster, or the topic was made again",
}
"""What may have poisoned a checkpoint, by whether its pending batch lacks a partition."""


def check_follows(start: Positions, end: Positions, *, batch: int, file: str) -> None:
    """Raise where a pending batch of a source can't follow what was done before.

    Args:
        start: Where the batch starts.
        end: Where it ends.
        batch: Its number.
        file: Where its end is written.

    Raises:
        CheckpointError: A partition has no end, or one below its start.
    """
    ends = by_topic_partition(end)
    for partition, position in by_topic_partition(start).items():
        stop = ends.get(partition)
        if stop is None or stop < position:
            found = "no end" if stop is None else f"its end {stop}"
            raise CheckpointError(
                f"poisoned: {partition} has {found}, and batch {batch} starts at {position}: "
                f"{_CAUSES[stop is None]}. Where that batch did nothing, a copy of the checkpoint "
                f"without this file stands where it was",
                file=file,
            )
