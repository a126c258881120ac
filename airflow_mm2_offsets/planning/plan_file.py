"""Keeps a plan in a file, so that a retry moves no position and an auditor finds it later.

Operators and ``plan --out`` write it; the tasks that go by a plan read it.
"""

from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan, Positions
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.partition_plan import pending_records
from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.planning.kept_file import read_kept_file, write_kept_file

_STEP = (
    "delete the file to have a new plan made, if no job was started from it; or give another plan "
    "path"
)
_RECREATED_STEP = (
    "the positions are of the old topic, and a new plan of them would lose records: start a new "
    "run of the failover once the job has committed a batch of the topic that exists now"
)


def read_plan(path: UPath) -> FailoverPlan | None:
    """Return the plan in a file, as whole as it was made; None when there is no such file.

    Raises:
        PlanError: The file can't be read, was not made by this release, or was changed since.
    """
    return read_kept_file(path, FailoverPlan.from_json, kind="plan", step=_STEP)


def check_plan(
    plan: FailoverPlan, path: UPath, positions: Positions, pending: Positions | None, ids: PairIds
) -> None:
    """Raise unless a kept plan is of these positions, clusters and topics.

    For the arguments see ``check_kept_plan``.

    Raises:
        PlanError: The field that differs and both values are named.
    """
    for change in plan.ids.changes(ids):
        is_source_topic = change.field.startswith("clusters.source.topic_ids")
        raise PlanError(
            f"{change.field} is {change.planned!r} in the plan of {plan.created_at}, and "
            f"{change.now!r} now: it is of another cluster or topic; "
            f"{_RECREATED_STEP if is_source_topic else _STEP}",
            file=str(path),
        )
    if plan.source_positions() != positions:
        raise PlanError(
            f"holds a plan of {plan.created_at} for other positions ({plan.source_positions()}) "
            f"than these ({positions}); {_STEP}",
            file=str(path),
        )
    for planned in plan.partitions:
        answer = planned.translation
        if planned.pending != (pending_now := pending_records(answer, pending)):
            raise PlanError(
                f"{planned.pending} pending records in the plan of {plan.created_at}, and "
                f"{pending_now} now; {_STEP}",
                file=str(path),
                topic=answer.topic,
                partition=answer.partition,
            )


def save_plan(path: UPath, plan: FailoverPlan) -> None:
    """Write the plan to a file, whole or not at all.

    Raises:
        PlanError: The file can't be written.
    """
    write_kept_file(path, plan.to_json())
