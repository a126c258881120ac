"""Checks a kept plan against the clusters of now; each task that goes by one calls it."""

import logging
from dataclasses import replace

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Positions, TopicPartition
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.kept_answer import find_contradiction
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import ClusterUnreachableError, PlanError, SyncsTopicError
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import collect_evidence
from airflow_mm2_offsets.planning.plan_file import check_plan

log = logging.getLogger(__name__)

_STEP = "Delete the file and clear the task that translates, with all after it"


def check_kept_plan(
    plan: FailoverPlan,
    path: UPath,
    pair: ClusterPair,
    *,
    positions: Positions,
    pending: Positions | None,
    ids: PairIds,
) -> None:
    """Raise unless a kept plan answers what is asked, and its answers still hold.

    Args:
        plan: What the file holds.
        path: The file, for messages.
        pair: The clusters.
        positions: Where the job stands on the source.
        pending: Where the batch ends that the job began and did not commit, if any.
        ids: Of both clusters and their topics now; without the source's, it is not asked.

    Raises:
        PlanError: It does not answer that, or what the clusters say now contradicts it: records
            would be lost, or more be read again than announced. Both values are named.
        ClusterUnreachableError: The target does not answer.
    """
    check_plan(plan, path, positions, pending, ids)
    _check_starts(plan, path, pair)
    _check_answers(plan, path, pair, ask_source=ids.source.cluster_id is not None)


def _check_starts(plan: FailoverPlan, path: UPath, pair: ClusterPair) -> None:
    """Raise unless the target still holds what a plan is to begin with.

    Retention deletes records there, and a topic can be truncated, between the plan and the job's
    start.
    """
    starts = by_topic_partition(plan.target_positions())
    for partition, held in pair.target.watermarks(starts).items():
        start = starts[TopicPartition(*partition)]
        if held.low <= start <= held.high:
            continue
        lost = "the topic was truncated"
        if start < held.low:
            lost = "it has deleted records that the job has yet to read"
        raise PlanError(
            f"starts {partition} at {start}, and the target holds [{held.low}, {held.high}) now: "
            f"{lost}. {_STEP}: it refuses the partition, or starts it where on_unmapped says",
            file=str(path),
        )


def _check_answers(plan: FailoverPlan, path: UPath, pair: ClusterPair, *, ask_source: bool) -> None:
    """Raise where a new translation contradicts the plan's answers.

    MirrorMaker 2 may have been reset since, and copy all again. The new translation needs neither
    Connect nor the archive: without them it is less close, and contradicts as truly.
    """
    if plan.syncs_as_of is not None:
        log.warning("The plan is of an archive alone: what was copied since it is not compared")
        return
    was_asked = plan.ids.source.cluster_id is not None
    try:
        collector, _ = collect_evidence(
            replace(pair, connect=None),
            plan.source_positions(),
            _options(plan, read_source=was_asked and ask_source),
        )
    except (ClusterUnreachableError, SyncsTopicError) as error:
        # A source that was lost since must not hold the job back.
        log.warning("The plan is not compared with what was copied since it was made: %s", error)
        return
    answers = {each.topic_partition: each for each in collector.translations()}
    for each in plan.partitions:
        key = each.translation.topic_partition
        contradiction = find_contradiction(
            each.translation,
            answers[key],
            collector.index.partitions.get(key),
            is_complete=ask_source or not was_asked,
        )
        if contradiction:
            raise PlanError(
                f"starts {pair.on_target(key)} at {each.start} for position "
                f"{each.translation.position}: {contradiction}. {_STEP}",
                file=str(path),
            )


def _options(plan: FailoverPlan, *, read_source: bool) -> PlanOptions:
    """Return the options of the new translation: it reads no more than the plan did."""
    has_read = plan.source_records_read or plan.target_records_read
    return PlanOptions(
        read_source=read_source,
        max_evidence_bytes=DEFAULT_OPTIONS.max_evidence_bytes if has_read else 0,
        # A transform may change records: that they differ was ruled out when the plan was made.
        changed_records=True,
    )
