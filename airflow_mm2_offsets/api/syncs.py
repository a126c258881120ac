"""Routes that list the syncs in memory and refresh them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query

from airflow_mm2_offsets.api.models import (
    MAX_NAME,
    MAX_PARTITION,
    NAME,
    StatusResponse,
    SyncsResponse,
)
from airflow_mm2_offsets.api.pairs import Served, ServedPair
from airflow_mm2_offsets.api.problems import Json
from airflow_mm2_offsets.api.workers import ClusterWorkers, MemoryWorkers
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.errors import Mm2OffsetsError

router = APIRouter(tags=["index"])

_CURSOR = r"^[a-zA-Z0-9._-]{1,249}/[0-9]{1,10}/[0-9]{1,18}$"


@router.get("/syncs", response_model=SyncsResponse)
async def syncs(
    served: Served,
    workers: MemoryWorkers,
    *,
    topic: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME, pattern=NAME)] = None,
    partition: Annotated[int | None, Query(ge=0, le=MAX_PARTITION)] = None,
    limit: Annotated[
        int, Query(ge=1, le=100_000, description="The most syncs of a page.")
    ] = 10_000,
    after: Annotated[
        str | None, Query(pattern=_CURSOR, description="The field next of the previous page.")
    ] = None,
) -> Json:
    """List the offset syncs in memory, page by page."""
    index = served.index

    def page() -> Json:
        partitions = sorted(
            each
            for each in index
            if topic in {None, each.topic} and partition in {None, each.partition}
        )
        listed = list(islice(_from(index, partitions, _start(after)), limit + 1))
        more = len(listed) > limit
        return Json(
            {
                "syncs": listed[:limit],
                "total": sum(len(index.partitions[each]) for each in partitions),
                "next": listed[limit].cursor if more else None,
            }
        )

    return await workers.run(page)


@router.post("/refresh", response_model=StatusResponse)
async def refresh(served: Served, workers: ClusterWorkers) -> Json:
    """Read the newer records of the offset-syncs topic, and return the status."""
    await workers.run(served.cache.refresh)
    return Json(_status(served))


@router.get("/status", response_model=StatusResponse)
async def status(served: Served) -> Json:
    """Return the state of the syncs in memory, and their age."""
    return Json(_status(served))


def _start(after: str | None) -> tuple[TopicPartition, int]:
    if after is None:
        return TopicPartition("", 0), 0
    topic, partition, number = after.split("/")
    return TopicPartition(topic, int(partition)), int(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListedSync:
    topic_partition: TopicPartition
    number: int
    """Among the partition's syncs, from 0."""
    sync: tuple[int, int]

    @property
    def cursor(self) -> str:
        topic, partition = self.topic_partition
        return f"{topic}/{partition}/{self.number}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``Sync``."""
        topic, partition = self.topic_partition
        upstream, downstream = self.sync
        return {
            "topic": topic,
            "partition": partition,
            "upstreamOffset": upstream,
            "targetOffset": downstream,
            "sourcePartition": {"topic": topic, "partition": partition},
        }


def _from(
    index: SyncIndex, partitions: list[TopicPartition], start: tuple[TopicPartition, int]
) -> Iterator[_ListedSync]:
    first, skipped = start
    for each in partitions:
        if each >= first:
            syncs = index.partitions[each]
            for number in range(skipped if each == first else 0, len(syncs)):
                yield _ListedSync(topic_partition=each, number=number, sync=syncs[number])


def _status(served: ServedPair) -> dict[str, Any]:
    served.require_syncs()
    state, naming = served.cache.state, served.pair.naming
    syncs = state.syncs
    return {
        "topic": served.pair.syncs_topic,
        "refreshedAt": syncs.read_at if syncs else None,
        "syncCount": len(syncs.index) if syncs else 0,
        "partitionCount": len(syncs.index.partitions) if syncs else 0,
        "skippedCount": syncs.skipped_count if syncs else 0,
        "ageSeconds": round(syncs.age, 3) if syncs else None,
        "stale": state.error is not None,
        "error": _message(state.error),
        "sourceCluster": naming.source_alias,
        "targetCluster": naming.target_alias,
    }


def _message(error: Exception | None) -> str | None:
    """Return the message of an error, if it is ours: these hold no secret."""
    if error is None or isinstance(error, Mm2OffsetsError):
        return str(error) if error else None
    return f"unexpected {type(error).__name__}; see the server's log"
