"""Chooses where refused partitions start, where the user has named a way."""

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
    """Return a fallback for each refused translation; none where the plan is to fail.

    Raises:
        ConfigurationError: The time of a position is not known, and ``unmapped_time`` is not set.
        ClusterUnreachableError: A cluster does not answer.
    """
    answers = {each.topic_partition: each for each in refused}
    match options.on_unmapped:
        case OnUnmapped.FAIL:
            return {}
        case OnUnmapped.EARLIEST:
            return {
                key: _fallback(options, watermarks.target[key].low, "the target's first offset")
                for key in answers
            }
        case OnUnmapped.LATEST:
            return {
                key: _fallback(options, watermarks.target[key].high, "the target's end")
                for key in answers
            }
        case OnUnmapped.TIMESTAMP:
            return _by_time(pair, watermarks, answers, options)


def _fallback(options: PlanOptions, position: int, reason: str) -> Fallback:
    return Fallback(kind=options.on_unmapped, position=position, reason=f"{reason}, {position}")


def _by_time(
    pair: ClusterPair,
    watermarks: PairWatermarks,
    answers: dict[TopicPartition, Translation],
    options: PlanOptions,
) -> dict[TopicPartition, Fallback]:
    margin = timedelta(seconds=options.unmapped_margin)
    times = {
        key: max(time, _EPOCH + margin) - margin
        for key, time in _times(pair, watermarks, answers, options).items()
    }
    names = {key: pair.on_target(key) for key in answers}
    found = pair.target.offsets_at(
        {names[key]: int(time.timestamp() * 1000) for key, time in times.items()}
    )
    return {
        key: _fallback(
            options,
            found.get(names[key], watermarks.target[key].high),
            f"the target's first record from {time.isoformat(timespec='seconds')} on",
        )
        for key, time in times.items()
    }


def _times(
    pair: ClusterPair,
    watermarks: PairWatermarks,
    answers: dict[TopicPartition, Translation],
    options: PlanOptions,
) -> dict[TopicPartition, datetime]:
    if options.unmapped_time:
        return dict.fromkeys(answers, options.unmapped_time)
    readable = {
        key: OffsetRange(answer.position, watermarks.source[key].high - 1)
        for key, answer in answers.items()
        if key in watermarks.source
    }
    read = first_times(pair.source, readable)
    if unknown := sorted(set(answers) - set(read)):
        named = ", ".join(map(str, unknown))
        raise ConfigurationError(
            f"the source has no record at the position of {named} to tell the time by; give a "
            f"time, such as that of the job's last batch",
            setting="unmapped_time",
        )
    return {key: datetime.fromtimestamp(time / 1000, UTC) for key, time in read.items()}
