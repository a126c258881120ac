"""Finds a pending batch that a start against another cluster or subscription has written."""

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import CheckpointError

_CAUSES = {
    True: "the job was started against another cluster, or with another subscription",
    False: "the job was started against another cluster, or the topic was recreated",
}
"""What may have poisoned a checkpoint, by whether the pending batch lacks a partition."""


def check_follows(start: Positions, end: Positions, *, batch: int, file: str) -> None:
    """Raise if a source's pending batch can't follow the batch before it.

    Raises:
        CheckpointError: A partition has no end, or one below its start.
    """
    ends = by_topic_partition(end)
    for partition, position in by_topic_partition(start).items():
        stop = ends.get(partition)
        if stop is None or stop < position:
            reached = "no end" if stop is None else f"its end {stop}"
            raise CheckpointError(
                f"poisoned: {partition} has {reached}, and batch {batch} starts at {position}: "
                f"{_CAUSES[stop is None]}. If that batch wrote nothing, a copy of the checkpoint "
                f"without this file is still valid",
                file=file,
            )
