"""Translates many positions of a topic for ``api.translate``; a wrong position fails alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from airflow_mm2_offsets.api.breaker import Breaker
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

RequestedPosition: TypeAlias = tuple[int | str, int | str]
"""A partition and a position in it, as the request has them."""
_CheckedPosition: TypeAlias = tuple[int, int] | PositionError
"""Both as numbers, or the error in them."""


def translate_batch(
    index: SyncIndex,
    topic: str,
    requested: Iterable[RequestedPosition],
    *,
    strategy: Strategy = Strategy.SAFE,
    source: Breaker | None = None,
) -> list[Translation | PositionError]:
    """Return the translation of each position, or the error in it, in the order of the request.

    Args:
        index: The syncs.
        topic: The topic's name on the source.
        requested: Partitions and positions.
        strategy: See ``SyncIndex.translate``.
        source: A position outside its watermarks is refused; None: positions are not compared.

    Raises:
        TopicNotFoundError: The source lacks a partition that has syncs.
        ClusterUnreachableError: The source does not answer.
    """
    checked = [_check(topic, each) for each in requested]

    def answer(
        position: _CheckedPosition, evidence: Evidence = NO_EVIDENCE
    ) -> Translation | PositionError:
        if isinstance(position, PositionError):
            return position
        return index.translate(topic, *position, strategy=strategy, evidence=evidence)

    if source is None:
        return [answer(position) for position in checked]
    with ThreadPoolExecutor(1) as pool:
        watermarks = pool.submit(_watermarks, index, topic, checked, source)
        # Meanwhile, answer all: the watermarks change only the answers of positions outside.
        answers = [answer(position) for position in checked]
    for number, outside in _outside(checked, watermarks.result()):
        answers[number] = answer(checked[number], outside)
    return answers


def _check(topic: str, requested: RequestedPosition) -> _CheckedPosition:
    try:
        partition = check_partition(topic, requested[0])
        return partition, check_position(topic, partition, requested[1])
    except PositionError as error:
        return error


def _watermarks(
    index: SyncIndex, topic: str, checked: Sequence[_CheckedPosition], source: Breaker
) -> dict[int, Watermarks]:
    """Return the source's watermarks of each partition that has syncs."""
    partitions = {
        TopicPartition(topic, position[0])
        for position in checked
        if not isinstance(position, PositionError)
    }
    # Partitions without syncs are refused anyway; skip the request.
    watermarks = source.watermarks(partitions & index.partitions.keys())
    return {number: low_high for (_, number), low_high in watermarks.items()}


def _outside(
    checked: Iterable[_CheckedPosition], watermarks: Mapping[int, Watermarks]
) -> Iterator[tuple[int, Evidence]]:
    """Yield the index of each position outside the source's watermarks, with these."""
    for number, position in enumerate(checked):
        if not isinstance(position, PositionError) and position[0] in watermarks:
            low_high = watermarks[position[0]]
            if not low_high.low <= position[1] <= low_high.high:
                yield number, Evidence(source=low_high)
