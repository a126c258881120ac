"""Finds the plan that a job was moved by: the way home translates by it, too."""

import logging

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.planning.plan_file import read_plan
from airflow_mm2_offsets.spark.fence import read_fence

log = logging.getLogger(__name__)


def read_named_plan(location: str) -> FailoverPlan:
    """Return the plan that the user names as the one that the job was moved by.

    Raises:
        PlanError: The file is not there, or holds no plan that can be used.
    """
    plan = read_plan(storage_path(location))
    if plan is None:
        raise PlanError(
            "there is no such file, and first_plan names it: give the plan that the job "
            "was moved by, or leave first_plan out",
            file=location,
        )
    return plan


def read_plan_of_fence(home_control: str | None) -> FailoverPlan | None:
    """Return the plan that the job was moved by, as the fence at home names it.

    None, with a warning in the log, where the file is gone.

    Raises:
        PlanError: The file holds no plan that can be used.
        StopError: The fence can't be read.
    """
    fence = read_fence(storage_path(home_control)) if home_control else None
    if fence is None or not fence.plan:
        return None
    plan = read_plan(storage_path(fence.plan))
    if plan is None:
        log.warning("The first plan is gone, more may be refused: %s", fence.plan)
    return plan
