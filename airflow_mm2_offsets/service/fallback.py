"""Chooses where refused partitions start, where the user has named a way."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_mm2_offsets.core import Fallback, OnUnmapped, TopicPartition, Translation
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.ranges import OffsetRange, first_times
from airflow_mm2_offsets.service.evidence import Held
from airflow_mm2_offsets.service.pair import ClusterPair


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackOptions:
    """What the user decides about partitions whose translation is refused."""

    on_unmapped: OnUnmapped = OnUnmapped.FAIL
    time: datetime | None = None
    """For ``timestamp``: how old the position is; None takes the source's record there."""
    margin: timedelta = timedelta(minutes=5)
    """For ``timestamp``: how much earlier to start, for clocks that disagree and late records."""


def choose_fallbacks(
    pair: ClusterPair, held: Held, refused: Iterable[Translation], options: FallbackOptions
) -> dict[TopicPartition, Fallback]:
    """Return a fallback for each refused translation; none where the plan is to fail.

    Raises:
        ConfigurationError: The time of a position is not known, and none was given.
        ClusterUnreachableError: A cluster does not answer.
    """
    answers = {each.topic_partition: each for each in refused}
    match options.on_unmapped:
        case OnUnmapped.FAIL:
            return {}
        case OnUnmapped.EARLIEST:
            return {
                key: _fallback(options, held.target[key].low, "the target's first offset")
                for key in answers
            }
        case OnUnmapped.LATEST:
            return {
                key: _fallback(options, held.target[key].high, "the target's end")
                for key in answers
            }
        case OnUnmapped.TIMESTAMP:
            return _by_time(pair, held, answers, options)


def _fallback(options: FallbackOptions, position: int, reason: str) -> Fallback:
    return Fallback(kind=options.on_unmapped, position=position, reason=f"{reason}, {position}")


def _by_time(
    pair: ClusterPair,
    held: Held,
    answers: dict[TopicPartition, Translation],
    options: FallbackOptions,
) -> dict[TopicPartition, Fallback]:
    times = {
        key: time - options.margin for key, time in _times(pair, held, answers, options).items()
    }
    names = {key: pair.on_target(key) for key in answers}
    found = pair.target.offsets_at(
        {names[key]: int(time.timestamp() * 1000) for key, time in times.items()}
    )
    return {
        key: _fallback(
            options,
            found.get(names[key], held.target[key].high),
            f"the target's first record from {time.isoformat(timespec='seconds')} on",
        )
        for key, time in times.items()
    }


def _times(
    pair: ClusterPair,
    held: Held,
    answers: dict[TopicPartition, Translation],
    options: FallbackOptions,
) -> dict[TopicPartition, datetime]:
    if options.time:
        return dict.fromkeys(answers, options.time)
    readable = {
        key: OffsetRange(answer.position, held.source[key].high - 1)
        for key, answer in answers.items()
        if key in held.source
    }
    read = first_times(pair.source, readable)
    if unknown := sorted(set(answers) - set(read)):
        named = ", ".join(map(str, unknown))
        raise ConfigurationError(
            f"on_unmapped is timestamp, and the source has no record at the position of {named} "
            f"to tell the time by; give the time yourself, such as that of the job's last batch"
        )
    return {key: datetime.fromtimestamp(time / 1000, UTC) for key, time in read.items()}
