"""``lock show`` and ``lock release``: which failover works on a job, and how to end its hold."""

from typing import TYPE_CHECKING, Annotated, Any

from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument, Option
from airflow_mm2_offsets.errors import HandoverError

if TYPE_CHECKING:
    from airflow_mm2_offsets.spark.lock import JobLock

SHOW_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets lock show s3://bucket/orders/checkpoint"""
RELEASE_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets lock release s3://bucket/orders/checkpoint \\
    --request-id 'mm2_failover:manual__2026-11-21T10:00:00+00:00'"""

Location = Annotated[
    str, Argument(metavar="URL", help="A job's checkpoint location, on any storage of fsspec.")
]


@grouped
@answering
def show(*, url: Location) -> Answer:
    """Show which failover works on the job of a checkpoint, and since when."""
    from airflow_mm2_offsets.spark.lock import read_lock
    from airflow_mm2_offsets.storage import open_location

    held = read_lock(open_location(url, HandoverError))
    if held is None:
        return Answer(text="There is no lock: no failover works on it", data={"lock": None})
    return Answer(text=f"Locked: {held}", data={"lock": _to_json(held)})


@grouped
@answering
def release(
    *,
    url: Location,
    request_id: Annotated[
        str, Option("--request-id", metavar="ID", help="The run, as `show` names it.")
    ],
) -> Answer:
    """Release a lock whose run has ended and will not be cleared: another run may begin.

    A run that still goes on finds this out, and starts nothing.
    """
    from airflow_mm2_offsets.spark.lock import break_lock
    from airflow_mm2_offsets.storage import open_location

    held = break_lock(open_location(url, HandoverError), request_id)
    return Answer(text=f"Released. Until now, {held}", data={"released": _to_json(held)})


def _to_json(held: "JobLock") -> dict[str, Any]:
    return {
        "request_id": held.request_id,
        "mode": held.mode,
        "at": held.at,
        "moved_to": held.moved_to,
    }
