"""Translates one position, or many of a topic."""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query

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
from airflow_mm2_offsets.api.problems import Json, Problem
from airflow_mm2_offsets.core import (
    Status,
    Strategy,
    SyncIndex,
    TopicPartition,
    Translation,
)
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import ClusterUnreachableError, PositionError
from airflow_mm2_offsets.service.batch import translate_batch

router = APIRouter(tags=["translate"])

_NOT_FOUND = dict.fromkeys(("status", "low", "high", "reason", "evidence"))

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
        description="safe loses nothing; linear is mm2-offset-map's formula, kafka is what "
        "MirrorMaker 2 answers: both for comparison."
    ),
]
CheckSourceQuery = Annotated[
    bool,
    Query(description="Ask the source what it holds first. Give false where it is gone."),
]


@router.get("/translate", response_model=TranslateResponse)
async def translate(
    served: Served,
    topic: TopicQuery,
    partition: PartitionQuery,
    offset: OffsetQuery,
    strategy: StrategyQuery = Strategy.SAFE,
) -> Json:
    """Translate a position with the index in memory; no cluster is asked."""
    return _answer(served.index, topic, partition, offset, strategy)


@router.post("/translate", response_model=TranslateResponse)
async def translate_body(
    served: Served, asked: TranslateRequest, strategy: StrategyQuery = Strategy.SAFE
) -> Json:
    """Translate a position with the index in memory; no cluster is asked."""
    return _answer(served.index, asked.topic, asked.partition, asked.offset, strategy)


@router.get("/translate/latest", response_model=TranslateResponse)
def translate_latest(
    served: Served,
    topic: TopicQuery,
    partition: PartitionQuery,
    offset: OffsetQuery,
    strategy: StrategyQuery = Strategy.SAFE,
) -> Json:
    """Translate a position with what the offset-syncs topic holds now; it is read once."""
    return _answer(served.cache.latest().index, topic, partition, offset, strategy)


@router.post("/translate/latest", response_model=TranslateResponse)
def translate_latest_body(
    served: Served, asked: TranslateRequest, strategy: StrategyQuery = Strategy.SAFE
) -> Json:
    """Translate a position with what the offset-syncs topic holds now; it is read once."""
    index = served.cache.latest().index
    return _answer(index, asked.topic, asked.partition, asked.offset, strategy)


@router.post("/translate/batch", response_model=BatchResponse)
def batch(
    served: Served,
    asked: BatchRequest,
    strategy: StrategyQuery = Strategy.SAFE,
    *,
    check_source: CheckSourceQuery = True,
) -> Json:
    """Translate many positions with the index in memory; a bad one fails alone."""
    return _answer_batch(served, served.index, asked, strategy, check_source=check_source)


@router.post("/translate/batch/latest", response_model=BatchResponse)
def batch_latest(
    served: Served,
    asked: BatchRequest,
    strategy: StrategyQuery = Strategy.SAFE,
    *,
    check_source: CheckSourceQuery = True,
) -> Json:
    """Translate many positions with what the offset-syncs topic holds now; it is read once."""
    index = served.cache.latest().index
    return _answer_batch(served, index, asked, strategy, check_source=check_source)


def _answer(
    index: SyncIndex, topic: str, partition: int, position: int, strategy: Strategy
) -> Json:
    syncs = index.partitions.get(TopicPartition(topic, partition))
    answer = index.translate(topic, partition, position, strategy=strategy)
    found = _found(answer)
    if syncs is None:
        raise Problem(
            HTTPStatus.NOT_FOUND, answer.reason, field=_unknown(index, topic), translation=found
        )
    if answer.status is Status.REFUSED:
        raise Problem(HTTPStatus.NOT_FOUND, answer.reason, translation=found)
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
            **found,
        }
    )


def _unknown(index: SyncIndex, topic: str) -> str:
    return "partition" if any(name == topic for name, _ in index) else "topic"


def _found(answer: Translation) -> dict[str, Any]:
    return {
        "status": answer.status,
        "low": answer.low,
        "high": answer.high,
        "reason": answer.reason,
        "evidence": answer.basis,
    }


def _answer_batch(
    served: ServedPair,
    index: SyncIndex,
    asked: BatchRequest,
    strategy: Strategy,
    *,
    check_source: bool,
) -> Json:
    began = time.perf_counter()
    topic, naming = asked.topicName, served.pair.naming
    if not any(name == topic for name, _ in index):
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"no offset sync is known of topic {topic}: MirrorMaker 2 never copied it",
            field="body.topicName",
        )
    answers = _answers(served, index, asked, strategy, check_source=check_source)
    results = list(_by_partition(asked, answers, strategy))
    done = sum(each["success"] for result in results for each in result["offsetTranslations"])
    return Json(
        {
            "topicName": topic,
            "sourceCluster": naming.source_alias,
            "targetCluster": naming.target_alias,
            "partitionResults": results,
            "summary": {
                "totalRequested": len(answers),
                "successCount": done,
                "failureCount": len(answers) - done,
                "processTimeMs": round((time.perf_counter() - began) * 1000),
                "partitionProcessed": len(results),
            },
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
    )


def _answers(
    served: ServedPair,
    index: SyncIndex,
    asked: BatchRequest,
    strategy: Strategy,
    *,
    check_source: bool,
) -> list[Translation | PositionError]:
    source = served.pair.source if check_source else None
    positions = ((each.partition, each.startOffset) for each in asked.offsetList)
    try:
        return translate_batch(index, asked.topicName, positions, strategy=strategy, source=source)
    except ClusterUnreachableError as error:
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{error}; where the source is gone, give check_source=false",
        ) from None


def _by_partition(
    asked: BatchRequest, answers: Iterable[Translation | PositionError], strategy: Strategy
) -> Iterator[dict[str, Any]]:
    grouped: dict[int | str, list[dict[str, Any]]] = {}
    for item, answer in zip(asked.offsetList, answers, strict=True):
        # What is asked for as "7" and as 7 is one partition, unless it is none.
        number = item.partition if isinstance(answer, PositionError) else answer.partition
        grouped.setdefault(number, []).append(_item(item.startOffset, answer, strategy))
    for number, items in grouped.items():
        done = sum(each["success"] for each in items)
        yield {
            "partition": number,
            "status": "FAILED" if not done else "SUCCESS" if done == len(items) else "PARTIAL",
            "offsetTranslations": items,
        }


def _item(
    position: int | str, answer: Translation | PositionError, strategy: Strategy
) -> dict[str, Any]:
    target, found, error = None, _NOT_FOUND, None
    if isinstance(answer, PositionError):
        error = str(answer)
    else:
        position, target, found = answer.position, answer.target, _found(answer)
        if answer.status is Status.REFUSED:
            error = answer.reason
    return {
        "sourceOffset": position,
        "targetOffset": target,
        "translationMethod": strategy,
        "errorMessages": [] if error is None else [error],
        "success": error is None,
        **found,
    }
