"""Routes that translate one position."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from airflow_mm2_offsets.api.body import body_schema, json_body
from airflow_mm2_offsets.api.models import (
    MAX_NAME,
    MAX_PARTITION,
    NAME,
    TranslateRequest,
    TranslateResponse,
)
from airflow_mm2_offsets.api.pairs import Served
from airflow_mm2_offsets.api.problems import Json, Problem
from airflow_mm2_offsets.api.workers import ClusterWorkers
from airflow_mm2_offsets.core import Status, Strategy, SyncIndex, TopicPartition, Translation
from airflow_mm2_offsets.core.positions import MAX_OFFSET

router = APIRouter(tags=["translate"])

RESULT_FIELDS = ("status", "low", "high", "reason", "basis")
"""Fields of a ``Translation`` that answers have."""

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
TranslateBody = Annotated[TranslateRequest, Depends(json_body(TranslateRequest))]


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


@router.post(
    "/translate", response_model=TranslateResponse, openapi_extra=body_schema(TranslateRequest)
)
async def translate_body(
    served: Served, request: TranslateBody, strategy: StrategyQuery = Strategy.SAFE
) -> Json:
    """Translate a position with the syncs in memory; no request to a cluster."""
    return _answer(served.index, request.topic, request.partition, request.offset, strategy)


@router.get("/translate/latest", response_model=TranslateResponse)
async def translate_latest(
    served: Served,
    workers: ClusterWorkers,
    *,
    topic: TopicQuery,
    partition: PartitionQuery,
    offset: OffsetQuery,
    strategy: StrategyQuery = Strategy.SAFE,
) -> Json:
    """Translate a position with the syncs that the topic holds now; it is read once."""
    index = await workers.run(served.latest)
    return _answer(index, topic, partition, offset, strategy)


@router.post(
    "/translate/latest",
    response_model=TranslateResponse,
    openapi_extra=body_schema(TranslateRequest),
)
async def translate_latest_body(
    served: Served,
    workers: ClusterWorkers,
    request: TranslateBody,
    strategy: StrategyQuery = Strategy.SAFE,
) -> Json:
    """Translate a position with the syncs that the topic holds now; it is read once."""
    index = await workers.run(served.latest)
    return _answer(index, request.topic, request.partition, request.offset, strategy)


def _answer(
    index: SyncIndex, topic: str, partition: int, position: int, strategy: Strategy
) -> Json:
    syncs = index.partitions.get(TopicPartition(topic, partition))
    answer = index.translate(topic, partition, position, strategy=strategy)
    result = result_of(answer)
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


def result_of(answer: Translation) -> dict[str, Any]:
    """Return a translation as an answer shows it."""
    return {name: getattr(answer, name) for name in RESULT_FIELDS}
