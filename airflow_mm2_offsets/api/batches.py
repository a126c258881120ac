"""Routes that translate many positions of a topic; a wrong position fails alone."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from airflow_mm2_offsets.api.batch import translate_batch
from airflow_mm2_offsets.api.body import body_schema, json_body
from airflow_mm2_offsets.api.models import BatchItem, BatchRequest, BatchResponse
from airflow_mm2_offsets.api.pairs import Served, ServedPair
from airflow_mm2_offsets.api.problems import Json, problem_of
from airflow_mm2_offsets.api.translate import RESULT_FIELDS, StrategyQuery, result_of
from airflow_mm2_offsets.api.workers import ClusterWorkers, MemoryWorkers
from airflow_mm2_offsets.core import Status, Strategy, SyncIndex, Translation
from airflow_mm2_offsets.errors import ClusterUnreachableError, PositionError

router = APIRouter(tags=["translate"])

_STATUSES: Mapping[frozenset[bool], str] = {
    frozenset({True}): "SUCCESS",
    frozenset({True, False}): "PARTIAL_SUCCESS",
    frozenset({False}): "FAILED",
}
"""A partition's status by which of its items have an answer."""

CheckSourceQuery = Annotated[
    bool,
    Query(description="Check positions against the source's range; false if the source is gone."),
]
BatchBody = Annotated[BatchRequest, Depends(json_body(BatchRequest))]


@router.post(
    "/translate/batch", response_model=BatchResponse, openapi_extra=body_schema(BatchRequest)
)
async def batch(
    served: Served,
    memory: MemoryWorkers,
    clusters: ClusterWorkers,
    *,
    request: BatchBody,
    strategy: StrategyQuery = Strategy.SAFE,
    check_source: CheckSourceQuery = True,
) -> Json:
    """Translate many positions with the syncs in memory; a wrong position fails alone."""
    index, workers = served.index, clusters if check_source else memory
    return await workers.run(
        partial(_answer_batch, served, index, request, strategy, check_source=check_source)
    )


@router.post(
    "/translate/batch/latest", response_model=BatchResponse, openapi_extra=body_schema(BatchRequest)
)
async def batch_latest(
    served: Served,
    workers: ClusterWorkers,
    request: BatchBody,
    strategy: StrategyQuery = Strategy.SAFE,
    *,
    check_source: CheckSourceQuery = True,
) -> Json:
    """Translate many positions with the syncs that the topic holds now; it is read once."""

    def answer() -> Json:
        index = served.latest()
        return _answer_batch(served, index, request, strategy, check_source=check_source)

    return await workers.run(answer)


def _answer_batch(
    served: ServedPair,
    index: SyncIndex,
    request: BatchRequest,
    strategy: Strategy,
    *,
    check_source: bool,
) -> Json:
    started, topic, naming = time.perf_counter(), request.topicName, served.pair.naming
    source = served.source if check_source else None
    positions = ((item.partition, item.startOffset) for item in request.offsetList)
    try:
        answers = translate_batch(index, topic, positions, strategy=strategy, source=source)
    except ClusterUnreachableError as error:
        detail = f"{error}; if the source is gone, set check_source=false"
        raise problem_of(error, HTTPStatus.SERVICE_UNAVAILABLE, detail=detail) from None
    items = [
        _Item(item=item, answer=answer, strategy=strategy)
        for item, answer in zip(request.offsetList, answers, strict=True)
    ]
    results = list(_by_partition(items))
    successes = sum(item.error is None for item in items)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """The answer for one position of a batch."""

    item: BatchItem
    answer: Translation | PositionError
    strategy: Strategy

    @property
    def partition(self) -> int | str:
        # "7" and 7 are the same partition, if it is valid.
        if isinstance(self.answer, PositionError):
            return self.item.partition
        return self.answer.partition

    @property
    def error(self) -> str | None:
        if isinstance(self.answer, PositionError):
            return str(self.answer)
        return self.answer.reason if self.answer.status is Status.REFUSED else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``ItemResult``."""
        position, target, result = self.item.startOffset, None, dict.fromkeys(RESULT_FIELDS)
        if not isinstance(self.answer, PositionError):
            position, target = self.answer.position, self.answer.target
            result = result_of(self.answer)
        return {
            "sourceOffset": position,
            "targetOffset": target,
            "translationMethod": "OFFSET_SYNC",
            "errorMessages": self.error,
            "success": self.error is None,
            "strategy": self.strategy,
            **result,
        }


def _by_partition(items: Iterable[_Item]) -> Iterator[dict[str, Any]]:
    grouped: dict[int | str, list[_Item]] = {}
    for item in items:
        grouped.setdefault(item.partition, []).append(item)
    for number, group in grouped.items():
        outcomes = frozenset(item.error is None for item in group)
        yield {"partition": number, "status": _STATUSES[outcomes], "offsetTranslations": group}
