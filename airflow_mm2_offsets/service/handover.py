"""The last look before a job is started on the target: what was read earlier must still hold."""

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.spark.offsets import format_offsets

_STEP = (
    "the job has run since its positions were read: stop it again with a new run of the failover, "
    "or clear this one from the task that reads the positions on"
)


def check_unmoved(found: Checkpoint, positions: Positions, pending: Positions | None) -> None:
    """Raise unless a checkpoint still stands where it was read.

    Args:
        found: The checkpoint now.
        positions: Where it stood.
        pending: Where the batch ended that was begun and not committed then, if any.

    Raises:
        HandoverError: A batch was begun or committed since; both values are named.
    """
    for what, now, then in (
        ("positions", found.positions, positions),
        ("pending batch", found.pending, pending),
    ):
        if now != then:
            raise HandoverError(
                f"{found.location}: its {what} is {_text(now)} now, and was {_text(then)} when it "
                f"was read; {_STEP}"
            )


def _text(positions: Positions | None) -> str:
    return format_offsets(positions) if positions else "none"
