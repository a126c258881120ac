"""``fence show``, ``raise`` and ``lift``: who moved a job away, and whether it may run again."""

from typing import TYPE_CHECKING, Annotated, Any

from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument, Option
from airflow_mm2_offsets.errors import StopError

if TYPE_CHECKING:
    from airflow_mm2_offsets.spark.fence import Fence

SHOW_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets fence show s3://bucket/control/orders"""
LIFT_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets fence lift s3://bucket/control/orders \\
    --request-id 'mm2_failover:manual__2026-11-21T10:00:00+00:00'"""

RAISE_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets fence raise s3://bucket/control/orders \\
    --request-id 'mm2_failover:manual__2026-11-21T10:00:00+00:00' \\
    --moved-to s3://other/orders"""

Location = Annotated[
    str, Argument(metavar="URL", help="The job's control location, on any storage of fsspec.")
]


@grouped
@answering
def show(*, url: Location) -> Answer:
    """Show who moved the job of a control location, where to and when."""
    from airflow_mm2_offsets.spark.fence import read_fence
    from airflow_mm2_offsets.spark.fence_hold import describe_hold, other_holds

    current_fence = read_fence(url)
    holds = other_holds(url, current_fence.request_id if current_fence else None)
    text = (
        f"No job runs here: {current_fence}"
        if current_fence
        else "There is no fence: a job may run here"
    )
    data: dict[str, Any] = {"fence": _to_json(current_fence) if current_fence else None}
    if holds:
        text = "; ".join([text, *(describe_hold(url, hold) for hold in holds)])
        data["held_by"] = [hold.request_id for hold in holds]
    return Answer(text=text, data=data, has_advice=False)


@grouped
@answering
def raise_(
    *,
    url: Location,
    request_id: Annotated[
        str, Option("--request-id", metavar="ID", help="The failover that moved the job.")
    ],
    moved_to: Annotated[
        str, Option("--moved-to", metavar="FOLDER", help="The job's folder on the target.")
    ],
    plan: Annotated[
        str | None,
        Option("--plan", metavar="FILE", help="The plan of the move: the way home needs it."),
    ] = None,
) -> Answer:
    """Raise the fence of a job that was moved while its storage was out of reach.

    From then on no driver of the job runs here; one that runs ends before its next batch.
    """
    from airflow_mm2_offsets.spark.control import read_driver
    from airflow_mm2_offsets.spark.fence import mark_moved, new_fence, raise_fence

    if read_driver(url) is None:
        raise StopError(f"{url}: no job has ever run with this control location; is it right?")
    raise_fence(url, new_fence(request_id, moved_to))
    standing = mark_moved(url, request_id, moved_to, plan=plan)
    return Answer(text=f"Raised: {standing}", data={"fence": _to_json(standing)})


@grouped
@answering
def lift(
    *,
    url: Location,
    request_id: Annotated[
        str,
        Option("--request-id", metavar="ID", help="The stop that raised it, as `show` names it."),
    ],
) -> Answer:
    """Lift a fence and forget its stop: the job may be started here again.

    Stop the job that runs in its place first, or both read the same records.
    """
    from airflow_mm2_offsets.spark.stopping import forget_stop

    old_fence = forget_stop(url, request_id)
    return Answer(
        text=f"Lifted: a job may run here again. Until now, {old_fence}",
        data={"lifted": _to_json(old_fence)},
    )


def _to_json(current_fence: "Fence") -> dict[str, object]:
    return {
        "request_id": current_fence.request_id,
        "moved_to": current_fence.moved_to,
        "at": current_fence.at.isoformat(),
        "state": str(current_fence.state),
    }
