"""Routes that translate one position, or many of a topic."""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query

from airflow_mm2_offsets.api.batch import translate_batch
from airflow_mm2_offsets.api.models import (
    MAX_NAME,
    MAX_PARTITION,
    NAME,
    BatchRequest,
    BatchResponse,
    TranslateRequest,
    TranslateResponse,
)
from airflow_mm2_offsets.api.pairs import Served, ServedPair
from airflow_mm2_offsets.api.problems import Json, Problem, problem_of
from airflow_mm2_offsets.core import Status, Strategy, SyncIndex, TopicPartition, Translation
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import ClusterUnreachableError, PositionError

router = APIRouter(tags=["translate"])

_RESULT_FIELDS = ("status", "low", "high", "reason", "basis")
_STATUSES: Mapping[frozenset[bool], str] = {
    frozenset({True}): "SUCCESS",
    frozenset({True, False}): "PARTIAL_SUCCESS",
    frozenset({False}): "FAILED",
}
"""A partition's status by which of its items have an answer."""

TopicQuery = Annotated[
    str, Query(min_length=1, max_length=MAX_NAME, pattern=NAME, examples=["source.orders"])
]
PartitionQuery = Annotated[int, Query(ge=0, le=MAX_PARTITION, examples=[0])]
OffsetQuery = Annotated[
    int, Query(ge=0, le=MAX_OFFSET, description="The next offset to read.", examples=[123])
]
StrategyQuery = Annotated[
    Strategy,
    Query(
        description="safe loses nothing; linear is mm2-offset-map's formula, kafka is "
        "MirrorMaker 2's; both are for comparison."
    ),
]
CheckSourceQuery = Annotated[
    bool,
    Query(description="Check positions against the source's range; false if the source is gone."),
]


@router.get("/translate", response_model=TranslateResponse)
async def translate(
    served: Served,
    topic: TopicQuery,
    partition: PartitionQuery,
    offset: OffsetQuery,
    strategy: StrategyQuery = Strategy.SAFE,
) -> Json:
    """Translate a position with the syncs in memory; no request to a cluster."""
    return _answer(served.index, topic, partition, offset, strategy)


@router.post("/translate", response_model=TranslateResponse)
async def translate_body(
    served: Served, request: TranslateRequest, strategy: StrategyQuery = Strategy.SAFE
) -> Json:
    """Translate a position with the syncs in memory; no request to a cluster."""
    return _answer(served.index, request.topic, request.partition, request.offset, strategy)


@router.get("/translate/latest", response_model=TranslateResponse)
def translate_latest(
    served: Served,
    topic: TopicQuery,
    partition: PartitionQuery,
    offset: OffsetQuery,
    strategy: StrategyQuery = Strategy.SAFE,
) -> Json:
    """Translate a position with the syncs that the topic holds now; it is read once."""
    return _answer(served.latest(), topic, partition, offset, strategy)


@router.post("/translate/latest", response_model=TranslateResponse)
def translate_latest_body(
    served: Served, request: TranslateRequest, strategy: StrategyQuery = Strategy.SAFE
) -> Json:
    """Translate a position with the syncs that the topic holds now; it is read once."""
    index = served.latest()
    return _answer(index, request.topic, request.partition, request.offset, strategy)


@router.post("/translate/batch", response_model=BatchResponse)
def batch(
    served: Served,
    request: BatchRequest,
    strategy: StrategyQuery = Strategy.SAFE,
    *,
    check_source: CheckSourceQuery = True,
) -> Json:
    """Translate many positions with the syncs in memory; a wrong position fails alone."""
    return _answer_batch(served, served.index, request, strategy, check_source=check_source)


@router.post("/translate/batch/latest", response_model=BatchResponse)
def batch_latest(
    served: Served,
    request: BatchRequest,
    strategy: StrategyQuery = Strategy.SAFE,
    *,
    check_source: CheckSourceQuery = True,
) -> Json:
    """Translate many positions with the syncs that the topic holds now; it is read once."""
    index = served.latest()
    return _answer_batch(served, index, request, strategy, check_source=check_source)


def _answer(
    index: SyncIndex, topic: str, partition: int, position: int, strategy: Strategy
) -> Json:
    syncs = index.partitions.get(TopicPartition(topic, partition))
    answer = index.translate(topic, partition, position, strategy=strategy)
    result = _result(answer)
    if syncs is None:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            answer.reason,
            field=_unknown_field(index, topic),
            translation=result,
        )
    if answer.status is Status.REFUSED:
        raise Problem(HTTPStatus.NOT_FOUND, answer.reason, translation=result)
    before = syncs.segments.bracket(position).before
    return Json(
        {
            "topic": topic,
            "partition": partition,
            "sourceOffset": position,
            "targetOffset": answer.target,
            "syncUpstreamOffset": before.upstream if before else None,
            "syncTargetOffset": before.downstream if before else None,
            "strategy": strategy,
            **result,
        }
    )


def _unknown_field(index: SyncIndex, topic: str) -> str:
    return "partition" if any(name == topic for name, _ in index) else "topic"


def _result(answer: Translation) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in _RESULT_FIELDS}


def _answer_batch(
    served: ServedPair,
    index: SyncIndex,
    request: BatchRequest,
    strategy: Strategy,
    *,
    check_source: bool,
) -> Json:
    started, topic, naming = time.perf_counter(), request.topicName, served.pair.naming
    source = served.pair.source if check_source else None
    positions = ((item.partition, item.startOffset) for item in request.offsetList)
    try:
        answers = translate_batch(index, topic, positions, strategy=strategy, source=source)
    except ClusterUnreachableError as error:
        detail = f"{error}; if the source is gone, set check_source=false"
        raise problem_of(error, HTTPStatus.SERVICE_UNAVAILABLE, detail=detail) from None
    results = list(_by_partition(request, answers, strategy))
    successes = sum(item["success"] for result in results for item in result["offsetTranslations"])
    return Json(
        {
            "topicName": topic,
            "sourceCluster": naming.source_alias,
            "targetCluster": naming.target_alias,
            "partitionResults": results,
            "summary": {
                "totalRequested": len(answers),
                "successCount": successes,
                "failureCount": len(answers) - successes,
                "processTimeMs": round((time.perf_counter() - started) * 1000),
                "partitionProcessed": len(results),
            },
            "timestamp": datetime.now(UTC),
        }
    )


def _by_partition(
    request: BatchRequest, answers: Iterable[Translation | PositionError], strategy: Strategy
) -> Iterator[dict[str, Any]]:
    grouped: dict[int | str, list[dict[str, Any]]] = {}
    for item, answer in zip(request.offsetList, answers, strict=True):
        # "7" and 7 are the same partition, if it is valid.
        number = item.partition if isinstance(answer, PositionError) else answer.partition
        grouped.setdefault(number, []).append(_item(item.startOffset, answer, strategy))
    for number, items in grouped.items():
        outcomes = (item["success"] for item in items)
        yield {
            "partition": number,
            "status": _STATUSES[frozenset(outcomes)],
            "offsetTranslations": items,
        }


def _item(
    position: int | str, answer: Translation | PositionError, strategy: Strategy
) -> dict[str, Any]:
    target, result, error = None, dict.fromkeys(_RESULT_FIELDS), None
    if isinstance(answer, PositionError):
        error = str(answer)
    else:
        position, target, result = answer.position, answer.target, _result(answer)
        if answer.status is Status.REFUSED:
            error = answer.reason
    return {
        "sourceOffset": position,
        "targetOffset": target,
        "translationMethod": "OFFSET_SYNC",
        "errorMessages": error,
        "success": error is None,
        "strategy": strategy,
        **result,
    }
