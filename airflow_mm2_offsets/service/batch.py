"""Translates many positions of a topic, each for itself: a bad one does not spoil the others."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from airflow_mm2_offsets.core import (
    Evidence,
    Strategy,
    SyncIndex,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.evidence import NO_EVIDENCE
from airflow_mm2_offsets.core.positions import check_partition, check_position
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

Asked: TypeAlias = tuple[int | str, int | str]
"""A partition and a position in it, as somebody wrote them."""
_Checked: TypeAlias = tuple[int, int] | PositionError
"""Both as numbers, or what is wrong with them."""


def translate_batch(
    index: SyncIndex,
    topic: str,
    asked: Iterable[Asked],
    *,
    strategy: Strategy = Strategy.SAFE,
    source: KafkaCluster | None = None,
) -> list[Translation | PositionError]:
    """Return for each position its translation, or what is wrong with it, in their order.

    Args:
        index: The syncs.
        topic: The topic's name on the source.
        asked: Partitions and positions.
        strategy: See ``SyncIndex.translate``.
        source: Is asked what it holds: a position outside of that is refused, its end is one.
            None: nobody is asked.

    Raises:
        TopicNotFoundError: The source lacks a partition that has syncs.
        ClusterUnreachableError: The source does not answer.
    """
    checked = [_check(topic, each) for each in asked]

    def answer(position: _Checked, evidence: Evidence = NO_EVIDENCE) -> Translation | PositionError:
        if isinstance(position, PositionError):
            return position
        return index.translate(topic, *position, strategy=strategy, evidence=evidence)

    if source is None:
        return [answer(each) for each in checked]
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(_held, index, topic, checked, source)
        # Meanwhile: of what lies within the source's range, that range says nothing more.
        answers = [answer(each) for each in checked]
    outside = _outside(checked, held.result())
    return [
        answer(position, outside[position]) if position in outside else each
        for position, each in zip(checked, answers, strict=True)
    ]


def _check(topic: str, asked: Asked) -> _Checked:
    try:
        partition = check_partition(topic, asked[0])
        return partition, check_position(topic, partition, asked[1])
    except PositionError as error:
        return error


def _held(
    index: SyncIndex, topic: str, checked: Sequence[_Checked], source: KafkaCluster
) -> dict[int, Watermarks]:
    """Return what the source holds of each partition."""
    numbers = {each[0] for each in checked if not isinstance(each, PositionError)}
    # Of the others nothing can be said, so nothing need be asked.
    partitions = (TopicPartition(topic, number) for number in numbers)
    known = [each for each in partitions if each in index.partitions]
    return {number: marks for (_, number), marks in source.watermarks(known).items()}


def _outside(
    checked: Iterable[_Checked], held: Mapping[int, Watermarks]
) -> dict[_Checked, Evidence]:
    """Return the positions that the source does not hold, with what it holds."""
    return {
        each: Evidence(source=marks)
        for each in checked
        if not isinstance(each, PositionError)
        and (marks := held.get(each[0])) is not None
        and not marks.low <= each[1] <= marks.high
    }
