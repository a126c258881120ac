"""Chooses where refused partitions start, if the user sets ``on_unmapped``.

``plan_failover`` calls it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Fallback, OnUnmapped, TopicPartition, Translation
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.ranges import OffsetRange, first_times
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks
from airflow_mm2_offsets.planning.options import PlanOptions

_EPOCH = datetime.fromtimestamp(0, UTC)


def choose_fallbacks(
    pair: ClusterPair,
    watermarks: PairWatermarks,
    refused: Iterable[Translation],
    options: PlanOptions,
) -> dict[TopicPartition, Fallback]:
    """Return a fallback for each refused translation; empty if ``on_unmapped`` is ``fail``.

    None for one that passes over records which were never copied: only ``give_up`` gives them up.

    Raises:
        ConfigurationError: The time of a position is unknown, and ``unmapped_time`` is not set.
        ClusterUnreachableError: A cluster does not answer.
    """
    answers = {
        answer.topic_partition: answer
        for answer in refused
        if answer.uncopied is None or answer.uncopied.is_given_up
    }
    if options.on_unmapped is OnUnmapped.FAIL:
        return {}
    if options.on_unmapped is OnUnmapped.TIMESTAMP:
        return _by_time(pair, watermarks, answers, options)
    is_earliest = options.on_unmapped is OnUnmapped.EARLIEST
    reason = "the target's first offset" if is_earliest else "the target's end"
    target = watermarks.target
    return {
        key: _fallback(options, target[key].low if is_earliest else target[key].high, reason)
        for key in answers
    }


def _fallback(options: PlanOptions, position: int, reason: str) -> Fallback:
    return Fallback(kind=options.on_unmapped, position=position, reason=f"{reason}, {position}")


def _by_time(
    pair: ClusterPair,
    watermarks: PairWatermarks,
    answers: dict[TopicPartition, Translation],
    options: PlanOptions,
) -> dict[TopicPartition, Fallback]:
    if options.unmapped_time:
        times = dict.fromkeys(answers, options.unmapped_time)
    else:
        times = _times_of_records(pair, watermarks, answers)
    margin = timedelta(seconds=options.unmapped_margin)
    starts = {key: max(time, _EPOCH + margin) - margin for key, time in times.items()}
    names = {key: pair.on_target(key) for key in answers}
    positions = pair.target.offsets_at(
        {names[key]: int(time.timestamp() * 1000) for key, time in starts.items()}
    )
    return {
        key: _fallback(
            options,
            positions.get(names[key], watermarks.target[key].high),
            f"the target's first record from {time.isoformat(timespec='seconds')} on",
        )
        for key, time in starts.items()
    }


def _times_of_records(
    pair: ClusterPair, watermarks: PairWatermarks, answers: dict[TopicPartition, Translation]
) -> dict[TopicPartition, datetime]:
    """Return the time of the source's record at each position."""
    ranges = {
        key: OffsetRange(answer.position, watermarks.source[key].high - 1)
        for key, answer in answers.items()
        if key in watermarks.source
    }
    times = first_times(pair.source, ranges)
    if without_record := sorted(answers.keys() - times.keys()):
        raise ConfigurationError(
            f"the source has no record at the position of {', '.join(map(str, without_record))}, "
            f"so the time of that position is unknown; give a time, such as that of the job's last "
            f"batch",
            setting="unmapped_time",
        )
    return {key: datetime.fromtimestamp(time / 1000, UTC) for key, time in times.items()}
