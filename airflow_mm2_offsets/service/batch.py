"""Translates many positions of a topic, each for itself: a bad one does not spoil the others."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from airflow_mm2_offsets.core import (
    Evidence,
    Strategy,
    SyncIndex,
    Translation,
)
from airflow_mm2_offsets.core.evidence import NO_EVIDENCE
from airflow_mm2_offsets.core.positions import check_partition, check_position
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

Asked: TypeAlias = tuple[int | str, int | str]
"""A partition and a position in it, as somebody wrote them."""


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
    evidence = _evidence(index, topic, checked, source)
    return [
        position
        if isinstance(position, PositionError)
        else index.translate(
            topic, *position, strategy=strategy, evidence=evidence.get(position[0], NO_EVIDENCE)
        )
        for position in checked
    ]


def _check(topic: str, asked: Asked) -> tuple[int, int] | PositionError:
    try:
        partition = check_partition(topic, asked[0])
        return partition, check_position(topic, partition, asked[1])
    except PositionError as error:
        return error


def _evidence(
    index: SyncIndex,
    topic: str,
    checked: Sequence[tuple[int, int] | PositionError],
    source: KafkaCluster | None,
) -> dict[int, Evidence]:
    if source is None:
        return {}
    numbers = {each[0] for each in checked if not isinstance(each, PositionError)}
    # Of the others nothing can be said, so nothing need be asked.
    known = [(topic, number) for number in numbers if (topic, number) in index.partitions]
    marks = source.watermarks(known)
    return {number: Evidence(source=held) for (_, number), held in marks.items()}
