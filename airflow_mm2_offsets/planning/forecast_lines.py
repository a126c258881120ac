"""Makes the line of each partition of a forecast from what was read; ``forecast`` calls it."""

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, PartitionPlan, TopicPartition, Watermarks
from airflow_mm2_offsets.core.forecast import CountRange, PartitionForecast
from airflow_mm2_offsets.core.forecast_rules import (
    Estimate,
    RiskFacts,
    estimate_at_risk,
    with_gaps,
    with_uncopied,
)
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.reread_rules import RereadFacts, estimate_read_again
from airflow_mm2_offsets.core.uncopied import count_lacking
from airflow_mm2_offsets.kafka.ranges import OffsetRange
from airflow_mm2_offsets.planning.forecast_reads import CopyFacts, newest_times, seconds_between

_STAYS = "the source stays, and MirrorMaker 2 copies the rest of its records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What was read for one forecast."""

    now: int
    lost_at: int
    max_rate: float | None
    is_older: bool
    facts: CopyFacts
    target: Mapping[TopicPartition, Watermarks]
    """By the source's names."""
    source_ends: Mapping[TopicPartition, int]
    uncopied: Mapping[TopicPartition, list[int]]
    undecided_from: Mapping[TopicPartition, int]
    """Where open transactions begin on the target whose end can't be copied any more."""
    is_archive_alone: bool
    source_stays: bool
    """The source is not lost: MirrorMaker 2 goes on copying what it has not copied yet."""
    is_way_home: bool
    """The source holds the copies: all that it has is on the target already."""


def forecast_partitions(
    pair: ClusterPair, plan: FailoverPlan, readings: Readings
) -> tuple[PartitionForecast, ...]:
    """Return what the failover of each partition costs."""
    risks = {each.translation.topic_partition: _at_risk(each, readings) for each in plan.partitions}
    again = {
        each.translation.topic_partition: _read_again(each, readings) for each in plan.partitions
    }
    risk_seconds = _risk_seconds(pair, readings)
    again_seconds = _reread_seconds(pair, plan, again, readings)
    lines = []
    for each in plan.partitions:
        key = each.translation.topic_partition
        lines.append(
            PartitionForecast(
                topic=key.topic,
                partition=key.partition,
                position=each.translation.position,
                at_risk=risks[key].records,
                # Records that were passed over may be as old as the position.
                at_risk_seconds=_known(
                    risks[key].records,
                    None if each.translation.uncopied else risk_seconds.get(key),
                ),
                at_risk_basis=risks[key].basis,
                read_again=again[key].records,
                read_again_seconds=_known(again[key].records, again_seconds.get(key)),
                read_again_basis=again[key].basis,
            )
        )
    return tuple(lines)


def _known(records: CountRange, seconds: float | None) -> float | None:
    return 0.0 if records.at_most == 0 else seconds


def _at_risk(plan: PartitionPlan, readings: Readings) -> Estimate:
    """Return the records at risk: not copied yet, and those that MirrorMaker 2 has passed over."""
    answer = plan.translation
    estimate = _not_copied_yet(plan, readings)
    if answer.uncopied is not None:
        return with_uncopied(estimate, answer.uncopied, has_gone_on=readings.is_older)
    syncs = readings.facts.index.partitions.get(answer.topic_partition)
    if not syncs or readings.is_way_home or answer.topic_partition in readings.source_ends:
        return estimate
    return with_gaps(estimate, count_lacking(syncs, answer.position))


def _not_copied_yet(plan: PartitionPlan, readings: Readings) -> Estimate:
    answer, facts = plan.translation, readings.facts
    key = answer.topic_partition
    skipped = (plan.start or 0) if plan.fallback else answer.max_lost
    if readings.source_stays and key in readings.source_ends:
        return Estimate(records=CountRange(at_most=skipped), basis=_STAYS)
    copied_to = facts.copied_to(key)
    read_until = answer.position + plan.pending
    risk = RiskFacts(
        position=answer.position,
        # A job that has gone on since may have read any record: none is surely lost.
        read_until=MAX_OFFSET if readings.is_older else read_until,
        copied_to=copied_to,
        known_end=max(read_until, copied_to + 1),
        target_end=readings.target[key].high,
        skipped_by_start=skipped,
        undecided=_undecided(plan, readings),
        samples=facts.samples.get(key, ()),
        source_end=readings.source_ends.get(key),
        uncopied=readings.uncopied.get(key),
    )
    return estimate_at_risk(risk, lost_at=readings.lost_at, max_rate=readings.max_rate)


def _undecided(plan: PartitionPlan, readings: Readings) -> int:
    key, end = plan.translation.topic_partition, readings.target[plan.translation.topic_partition]
    begin = max(_start(plan, end), readings.undecided_from.get(key, end.high))
    return max(0, end.high - begin)


def _start(plan: PartitionPlan, target: Watermarks) -> int:
    """Return where the job starts; a refused partition may start anywhere."""
    return target.low if plan.start is None else plan.start


def _read_again(plan: PartitionPlan, readings: Readings) -> Estimate:
    key = plan.translation.topic_partition
    target, copied = readings.target[key], readings.facts.copied_to(key) + 1
    # A source that answers may still be copied from: what the job has read can come later.
    end = readings.source_ends.get(key)
    read_to = plan.translation.position + plan.pending
    to_come = (
        0
        if end is None or readings.is_way_home
        else max(0, (end if readings.is_older else read_to) - copied)
    )
    unsynced = target.high - 1 - readings.facts.last_downstream(key)
    return estimate_read_again(
        RereadFacts(
            start=_start(plan, target),
            target_end=target.high,
            max_reread=plan.max_reread,
            is_older=readings.is_older,
            unsynced=max(0, unsynced) if readings.is_archive_alone else 0,
            still_to_come=to_come,
        )
    )


def _risk_seconds(pair: ClusterPair, readings: Readings) -> dict[TopicPartition, float]:
    """Return the seconds from the newest record on the target to the source's end.

    Partitions whose times say nothing are left out.
    """
    by_target = {pair.on_target(key): key for key in readings.target}
    stops = {name: readings.target[key].high for name, key in by_target.items()}
    newest = {by_target[name]: time for name, time in newest_times(pair.target, stops).items()}
    ends = dict.fromkeys(newest, readings.lost_at)
    if readings.source_ends:
        ends |= newest_times(pair.source, readings.source_ends)
    # A record that is newer than the loss says that one of the two clocks is wrong.
    return {key: (ends[key] - time) / 1000 for key, time in newest.items() if time <= ends[key]}


def _reread_seconds(
    pair: ClusterPair,
    plan: FailoverPlan,
    again: Mapping[TopicPartition, Estimate],
    readings: Readings,
) -> dict[TopicPartition, float]:
    ranges = {}
    for each in plan.partitions:
        key = each.translation.topic_partition
        start, end = _start(each, readings.target[key]), readings.target[key].high
        most = again[key].records.at_most
        stop = end if most is None else min(end, start + most)
        ranges[pair.on_target(key)] = OffsetRange(start, stop - 1)
    spans = seconds_between(pair.target, ranges)
    keys = [each.translation.topic_partition for each in plan.partitions]
    return {key: spans[pair.on_target(key)] for key in keys if pair.on_target(key) in spans}
