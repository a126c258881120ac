"""The job's positions on both clusters: partitions, translation, and the target's retention."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from airflow_mm2_offsets.core import FailoverPlan, Positions, TopicPartition, Watermarks
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import ForeignPositionsError, Mm2OffsetsError
from airflow_mm2_offsets.kafka.ranges import OffsetRange, first_times
from airflow_mm2_offsets.planning.checks import (
    refusals,
    source_partition_problems,
    target_partition_problems,
)
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.subscribe_pattern import find_pattern_problems
from airflow_mm2_offsets.planning.topic_settings import has_log_append_time
from airflow_mm2_offsets.positions.checkpoint import check_cluster
from airflow_mm2_offsets.readiness.answers import (
    GIVE_POSITIONS,
    NO_POSITIONS,
    asked,
    failed,
    not_asked,
    ok,
    seconds,
    unknown,
    warning,
    worst_first,
)
from airflow_mm2_offsets.readiness.not_copied import check_waiting, part_by_wait
from airflow_mm2_offsets.readiness.pair_request import PairRequest, Part

_NAMES = (
    CheckName.JOB_CLUSTER,
    CheckName.SUBSCRIBE_PATTERN,
    CheckName.SOURCE_PARTITIONS,
    CheckName.TARGET_PARTITIONS,
    CheckName.TRANSLATION,
    CheckName.TARGET_RETENTION,
    CheckName.LOG_APPEND_TIME,
)


def check_target(request: PairRequest) -> Iterator[ReadinessCheck]:
    """Yield whether the job's positions of this moment have a place on the target."""
    positions = request.positions
    if positions is None:
        for name in _NAMES:
            yield unknown(name, NO_POSITIONS, GIVE_POSITIONS)
        return
    cluster = _check_cluster(request)
    yield from cluster
    if any(each.status is CheckStatus.FAILED for each in cluster):
        for name in _NAMES[1:]:
            yield unknown(name, "the positions are those of another cluster")
        return
    yield from _check_patterns(request, positions)
    partitions = [*_check_partitions(request, positions)]
    yield from partitions
    if any(each.status is CheckStatus.FAILED for each in partitions):
        # The translation would report a missing partition again.
        for name in (CheckName.TRANSLATION, CheckName.TARGET_RETENTION):
            yield unknown(name, "the partitions differ")
    else:
        yield from _check_translation(request, positions)
    yield from _check_timestamps(request, positions)


def _check_patterns(request: PairRequest, positions: Positions) -> Iterator[ReadinessCheck]:
    if request.patterns.requested is None and not request.patterns.source:
        yield not_asked(CheckName.SUBSCRIBE_PATTERN, "the job names no subscribePattern")
        return
    yield from asked(
        CheckName.SUBSCRIBE_PATTERN,
        lambda: find_pattern_problems(request.pair, positions, request.patterns),
        otherwise="the job's patterns match its topics alone",
    )


def _check_cluster(request: PairRequest) -> list[ReadinessCheck]:
    notes, has_answered = request.notes.without_topics(), Part.SOURCE in request.reached
    if not notes.ids and not notes.servers:
        value = "nothing beside the checkpoint says which cluster the job reads"
        return [not_asked(CheckName.JOB_CLUSTER, value)]

    def find() -> list[str]:
        try:
            check_cluster(request.pair, notes, ask_source=has_answered)
        except ForeignPositionsError as error:
            return [str(error)]
        return []

    found = asked(
        CheckName.JOB_CLUSTER,
        find,
        otherwise="the positions are not those of another cluster",
        may_be_lost=request.policy.source_may_be_lost,
    )
    if not has_answered and all(each.status is CheckStatus.OK for each in found):
        return [unknown(CheckName.JOB_CLUSTER, f"{Part.SOURCE} does not answer")]
    return found


def _check_partitions(request: PairRequest, positions: Positions) -> Iterator[ReadinessCheck]:
    pair = request.pair
    if Part.SOURCE in request.reached:
        yield from asked(
            CheckName.SOURCE_PARTITIONS,
            lambda: source_partition_problems(pair, positions),
            otherwise="the source has the checkpoint's partitions",
            may_be_lost=request.policy.source_may_be_lost,
        )
    else:
        yield unknown(CheckName.SOURCE_PARTITIONS, f"{Part.SOURCE} does not answer")
    yield from asked(
        CheckName.TARGET_PARTITIONS,
        lambda: target_partition_problems(pair, positions),
        otherwise="the target has the checkpoint's partitions",
    )


def _check_translation(request: PairRequest, positions: Positions) -> Iterator[ReadinessCheck]:
    has_any = Part.SYNCS in request.reached or request.archive is not None
    if request.pair.has_syncs and not has_any:
        yield failed(
            CheckName.TRANSLATION,
            f"no offset syncs are left: {Part.SYNCS} does not answer, and no archive is given",
            "give archive",
        )
        yield unknown(CheckName.TARGET_RETENTION, "there is no plan")
        return
    if request.plan_problem is not None:
        yield failed(CheckName.TRANSLATION, request.plan_problem)
        yield unknown(CheckName.TARGET_RETENTION, "there is no plan")
        return
    has_answered, wanted = Part.SOURCE in request.reached, request.plan_options
    options = replace(wanted, read_source=wanted.read_source and has_answered)
    # A source that has answered may be half lost, or lost since. One that is known to be silent is
    # not waited for again.
    may_lose = request.policy.source_may_be_lost and has_answered
    make_plan = plan_from_what_is_left if may_lose else plan_failover
    try:
        plan = make_plan(request.pair, positions, pending=request.pending, options=options)
    except Mm2OffsetsError as error:
        yield failed(CheckName.TRANSLATION, str(error))
        yield unknown(CheckName.TARGET_RETENTION, "there is no plan")
        return
    plan, waiting = part_by_wait(request, plan)
    checks = [failed(CheckName.TRANSLATION, sentence) for sentence in refusals(plan)]
    checks += check_waiting(request, waiting)
    if plan.partitions and all(each.status is CheckStatus.OK for each in checks):
        yield _answered(plan)
    yield from checks
    yield from _check_retention(request, plan)


def _answered(plan: FailoverPlan) -> ReadinessCheck:
    again = "an unknown number of" if plan.max_reread is None else f"at most {plan.max_reread}"
    chosen = f", {plan.fallbacks} of them by on_unmapped" if plan.fallbacks else ""
    return ok(
        CheckName.TRANSLATION,
        f"{len(plan.partitions)} topic-partitions have an answer{chosen}, {again} records read "
        f"again",
    )


def _check_retention(request: PairRequest, plan: FailoverPlan) -> Iterator[ReadinessCheck]:
    """Compare the age of the record at which the job would start with the topic's retention."""
    if not plan.partitions:
        yield ok(CheckName.TARGET_RETENTION, "no record at a start is on the target yet")
        return
    target, limit = request.pair.target, request.thresholds.min_retention_left
    starts = {
        TopicPartition(each.target_topic, each.translation.partition): each.start
        for each in plan.partitions
        if each.start is not None
    }
    if not starts:
        yield unknown(CheckName.TARGET_RETENTION, "no topic-partition has a start")
        return
    settings = target.topic_settings({topic for topic, _ in starts})
    ends = target.watermarks(starts)
    times = first_times(
        target, {each: OffsetRange(start, ends[each].high - 1) for each, start in starts.items()}
    )
    found = []
    for partition, written in sorted(times.items(), key=lambda item: item[1]):
        left = _seconds_left(settings.get(partition.topic, {}), request.now, written)
        if left is not None and left < limit:
            found.append(_expiring(partition, starts[partition], left, limit))
    for partition, start in sorted(starts.items()):
        size = int(settings.get(partition.topic, {}).get("retention.bytes", "-1"))
        if size >= 0 and _is_among_oldest(start, ends[partition]):
            found.append(_cut_by_size(partition, start, size))
    fine = f"no record at a start is deleted within {seconds(limit)}"
    yield from worst_first(
        CheckName.TARGET_RETENTION, found, otherwise=ok(CheckName.TARGET_RETENTION, fine)
    )


def _seconds_left(settings: Mapping[str, str], now: float, written: int) -> float | None:
    """Return the seconds until a record may be deleted by time; None if it is kept."""
    retention = int(settings.get("retention.ms", "-1"))
    if retention < 0 or "delete" not in settings.get("cleanup.policy", "delete"):
        return None
    return (written + retention - now) / 1000


def _is_among_oldest(start: int, ends: Watermarks) -> bool:
    """Tell whether a start lies in the oldest tenth of the offsets that the target holds."""
    return start < ends.high and (start - ends.low) * 10 < ends.high - ends.low


def _cut_by_size(partition: TopicPartition, start: int, size: int) -> ReadinessCheck:
    return warning(
        CheckName.TARGET_RETENTION,
        f"{partition}: the job would start at {start}, among the oldest tenth of its offsets, and "
        f"retention.bytes is {size}: the next records may push it out",
        f"raise retention.bytes of {partition.topic} on the target before the failover",
        subject=str(partition),
    )


def _expiring(partition: TopicPartition, start: int, left: float, limit: float) -> ReadinessCheck:
    step = f"lengthen retention.ms of {partition.topic} on the target before the failover"
    threshold, subject = f">= {seconds(limit)}", str(partition)
    place = f"{partition}: the job would start at {start}, and the record there"
    name = CheckName.TARGET_RETENTION
    if left <= 0:
        value = f"{place} is older than retention.ms: it may be deleted at any moment"
        return failed(name, value, step, threshold=threshold, subject=subject)
    value = f"{place} may be deleted in {seconds(left)}"
    return warning(name, value, step, threshold=threshold, subject=subject)


def _check_timestamps(request: PairRequest, positions: Positions) -> Iterator[ReadinessCheck]:
    pair = request.pair
    existing = pair.target.topics(map(pair.naming.target_topic, positions))
    stamped = [
        topic
        for topic, settings in pair.target.topic_settings(sorted(existing)).items()
        if has_log_append_time(settings)
    ]
    for topic in stamped:
        yield warning(
            CheckName.LOG_APPEND_TIME,
            f"topic {topic} on the target has message.timestamp.type=LogAppendTime: two copies of "
            f"a record differ in their timestamp",
            subject=topic,
        )
    if not existing:
        yield unknown(CheckName.LOG_APPEND_TIME, "the target has none of the job's topics")
    elif not stamped:
        yield ok(CheckName.LOG_APPEND_TIME, "copies keep the timestamps of their records")
