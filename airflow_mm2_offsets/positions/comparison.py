"""Compares positions that were read twice: a job may run on in between."""

from airflow_mm2_offsets.core.positions import Positions, by_topic_partition
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.offsets import to_positions


def check_unchanged(first: Positions | str, now: Positions | str) -> None:
    """Raise if a job has moved since its positions were first read.

    Call it directly before the job is started on the target.

    Args:
        first: The positions that were translated, as a mapping or as Spark's JSON text.
        now: What the same reader returns now, likewise.

    Raises:
        HandoverError: A position differs, is new, or is gone; each is named with both values.
        PositionError: One of them is not positions.
    """
    then, later = by_topic_partition(to_positions(first)), by_topic_partition(to_positions(now))
    changes = [
        f"{each}: {later.get(each, 'none')} now, {then.get(each, 'none')} then"
        for each in sorted(then.keys() | later.keys())
        if then.get(each) != later.get(each)
    ]
    if changes:
        raise HandoverError(
            f"the job has run since its positions were read, so nothing was started on the "
            f"target: {'; '.join(changes)}. Stop the job, then read, translate and compare again"
        )
