"""The plan that a hand-over starts the job from: read from its file, and compared once more."""

from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import HandoverError, PlanError
from airflow_mm2_offsets.planning.ids import read_known_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.plan_file import read_plan
from airflow_mm2_offsets.spark.job_positions import JobPositions
from airflow_mm2_offsets.spark.position_ids import check_ids


def read_checked_plan(
    path: UPath,
    pair: ClusterPair,
    *,
    stopped: JobPositions,
    approval: Mapping[str, Any] | None,
) -> FailoverPlan:
    """Return the kept plan, if the job may still be started from it.

    Args:
        path: The plan's file.
        pair: The clusters that the job moves between.
        stopped: Where the source job has stopped.
        approval: What ``ApproveFailoverOperator`` returned, if anything.

    Raises:
        HandoverError: The failover was rejected, or a cluster or topic has another id than noted.
        PlanError: The plan is gone, damaged, edited, of other clusters, topics or positions,
            contradicts what the clusters say now, or is not the one that was approved.
    """
    plan = read_plan(path)
    if plan is None:
        raise PlanError(
            f"{path} is gone, and the target job is to start from it: clear the task that "
            f"translates, with all after it"
        )
    ids = read_known_ids(pair, stopped.positions)
    if stopped.clusters:
        check_ids(PairIds.from_json(stopped.clusters), ids)
    check_kept_plan(plan, path, pair, positions=stopped.positions, pending=stopped.pending, ids=ids)
    _check_approval(approval, plan, path)
    return plan


def _check_approval(approval: Mapping[str, Any] | None, plan: FailoverPlan, path: UPath) -> None:
    """Raise where it was rejected, or another plan was approved.

    A cleared translation may have made a new plan. A user may have marked a rejected ``approve`` as
    success: the answer stands.
    """
    if approval and approval.get("approved") is False:
        raise HandoverError(
            f"the failover was rejected: {approval.get('why')}: nothing was started by "
            f"this try. Clear the task that approves, with all after it, to ask again"
        )
    approved = approval.get("plan_digest") if approval else None
    if approved is not None and approved != (digest := plan.to_json()["digest"]):
        raise PlanError(
            f"the plan in {path} has the digest {digest}, and {approved} was approved: nothing "
            f"was started by this try. Clear the task that approves, with all after it"
        )
