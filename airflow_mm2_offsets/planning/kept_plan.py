"""Checks a kept plan against the current state of the clusters.

``TranslateOffsetsOperator`` and the hand-over call it.
"""

import logging
from dataclasses import replace

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction, FailoverPlan, Positions, SyncIndex
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.kept_answer import find_contradiction
from airflow_mm2_offsets.core.partition_plan import PartitionPlan
from airflow_mm2_offsets.core.positions import PartitionPosition, by_topic_partition
from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    Mm2OffsetsError,
    PlanError,
    SyncsTopicError,
)
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import collect_evidence, find_connectors, with_connectors
from airflow_mm2_offsets.planning.plan_file import check_plan
from airflow_mm2_offsets.planning.uncopied_records import find_uncopied

log = logging.getLogger(__name__)

_NOT_COMPARED = "The plan is not compared with what was copied since it was made: %s"
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
    """Raise unless a kept plan is of these positions and clusters, and still loses nothing.

    ``positions`` are the job's, and ``pending`` is the end of the batch that it began and did not
    commit. ``ids`` are the current ones; without the source's, the source is not asked.

    Raises:
        PlanError: The plan is of others, or the clusters contradict it now: records would be lost,
            or more be read again than announced. Both values are named.
        ClusterUnreachableError: The target does not answer.
    """
    if plan.mapping is not pair.mapping:
        raise PlanError(
            f"mapping is {plan.mapping} in the plan of {plan.created_at}, and {pair.mapping} in "
            f"the connection now: correct the connection. {_STEP}",
            file=str(path),
        )
    check_plan(plan, path, positions, pending, ids)
    _check_starts(plan, path, pair)
    _check_answers(plan, path, pair, ask_source=ids.source.cluster_id is not None)


def _check_starts(plan: FailoverPlan, path: UPath, pair: ClusterPair) -> None:
    """Raise unless the target still holds the offset at which each partition starts.

    Retention deletes records there, and a topic can be truncated, between the plan and the job's
    start.
    """
    starts = by_topic_partition(plan.target_positions())
    for partition, watermarks in pair.target.watermarks(starts).items():
        start = starts[partition]
        if watermarks.low <= start <= watermarks.high:
            continue
        cause = "the topic was truncated"
        if start < watermarks.low:
            cause = "it has deleted records that the job has yet to read"
        raise PlanError(
            f"starts at {start}, and the target holds "
            f"[{watermarks.low}, {watermarks.high}) now: {cause}. {_STEP}: it refuses the "
            f"partition, or starts it where on_unmapped says",
            file=str(path),
            topic=partition.topic,
            partition=partition.partition,
            position=start,
        )


def _check_answers(plan: FailoverPlan, path: UPath, pair: ClusterPair, *, ask_source: bool) -> None:
    """Raise where a new translation contradicts the plan's answers.

    MirrorMaker 2 may have been reset since, and copy everything again. The new translation is made
    without Connect and the archive: its bounds are wider, but a contradiction is as certain.
    """
    if plan.syncs_as_of is not None:
        log.warning("The plan is of an archive alone: it is not compared with newer copies")
        return
    was_asked = plan.ids.source.cluster_id is not None
    needs_source = pair.has_syncs and pair.syncs_cluster is pair.source
    if was_asked and not ask_source and needs_source:
        log.warning(_NOT_COMPARED, f"{pair.source.name} is lost")
        return
    options = _options(plan, read_source=was_asked and ask_source)
    try:
        collector, _ = collect_evidence(
            replace(pair, connect=None), plan.source_positions(), options
        )
    except (ClusterUnreachableError, SyncsTopicError) as error:
        # A source that was lost since must not hold the job back.
        log.warning(_NOT_COMPARED, error)
        return
    if options.read_source:
        _check_passed_over(plan, path, pair, collector.index)
    answers = {answer.topic_partition: answer for answer in collector.translations()}
    for planned in plan.partitions:
        key = planned.translation.topic_partition
        contradiction = find_contradiction(
            planned.translation,
            answers[key],
            collector.index.partitions.get(key),
            is_complete=ask_source or not was_asked,
        )
        if contradiction:
            raise _no_longer_true(planned, path, f": {contradiction}")


def _check_passed_over(
    plan: FailoverPlan, path: UPath, pair: ClusterPair, index: SyncIndex
) -> None:
    """Raise where MirrorMaker 2 has passed records over since the plan was made."""
    if plan.direction is not Direction.FORWARD or not pair.has_syncs:
        return
    connectors = find_connectors(pair)
    if not connectors:
        return  # whether a transform drops records is not known
    positions = plan.source_positions()
    options = with_connectors(DEFAULT_OPTIONS, connectors, pair, positions)
    keys = [PartitionPosition(*each) for each in by_topic_partition(positions).items()]
    try:
        found = find_uncopied(pair, index, keys, connectors=connectors, options=options)
    except Mm2OffsetsError as error:
        log.warning(_NOT_COMPARED, error)
        return
    for planned in plan.partitions:
        answer = planned.translation
        uncopied = found.get(PartitionPosition(answer.topic_partition, answer.position))
        known = answer.uncopied.at_most if answer.uncopied else 0
        if uncopied and uncopied.at_least > known and planned.fallback is None:
            cause = (
                f", and MirrorMaker 2 has passed {uncopied} over since, from offset "
                f"{uncopied.first} to {uncopied.last}: {uncopied.cause}"
            )
            raise _no_longer_true(planned, path, cause)


def _no_longer_true(planned: PartitionPlan, path: UPath, cause: str) -> PlanError:
    """Return the error of a partition whose start loses records now, or repeats more."""
    return PlanError(
        f"starts at {planned.start} for position {planned.translation.position}{cause}. {_STEP}",
        file=str(path),
        topic=planned.target_topic,
        partition=planned.translation.partition,
    )


def _options(plan: FailoverPlan, *, read_source: bool) -> PlanOptions:
    """Return the options of the new translation: it reads no more than the plan did."""
    has_read = plan.source_records_read or plan.target_records_read
    if plan.direction is Direction.EXCHANGED:
        # A producer may have written since to the cluster that the job leaves. Where the plan read
        # no records, it went by the user's word that none does.
        return PlanOptions(
            read_source=read_source,
            sole_writer=not has_read,
            max_evidence_bytes=DEFAULT_OPTIONS.max_evidence_bytes if has_read else 0,
        )
    return PlanOptions(
        read_source=read_source,
        max_evidence_bytes=DEFAULT_OPTIONS.max_evidence_bytes if has_read else 0,
        # A transform may change records. Differing records were ruled out by the plan itself.
        changed_records=True,
    )
