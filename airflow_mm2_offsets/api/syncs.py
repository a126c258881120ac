"""Shows the index in memory, and refreshes it."""

from collections.abc import Iterator
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
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.errors import Mm2OffsetsError

router = APIRouter(tags=["index"])

_CURSOR = r"^[a-zA-Z0-9._-]{1,249}/[0-9]{1,10}/[0-9]{1,18}$"


@router.get("/syncs", response_model=SyncsResponse)
def syncs(
    served: Served,
    topic: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME, pattern=NAME)] = None,
    partition: Annotated[int | None, Query(ge=0, le=MAX_PARTITION)] = None,
    limit: Annotated[
        int, Query(ge=1, le=100_000, description="The most syncs of a page.")
    ] = 10_000,
    after: Annotated[
        str | None, Query(pattern=_CURSOR, description="The next of the page before.")
    ] = None,
) -> Json:
    """List the offset syncs in memory, page by page."""
    index = served.index
    places = sorted(
        place
        for place in index
        if topic in {None, place.topic} and partition in {None, place.partition}
    )
    found = list(islice(_from(index, places, _start(after)), limit + 1))
    return Json(
        {
            "syncs": [_sync(index, *each) for each in found[:limit]],
            "total": sum(len(index.partitions[place]) for place in places),
            "next": "{0[0]}/{0[1]}/{1}".format(*found[limit]) if len(found) > limit else None,
        }
    )


@router.post("/refresh", response_model=StatusResponse)
def refresh(served: Served) -> Json:
    """Read what is new on the offset-syncs topic, and return the status then."""
    served.cache.refresh()
    return Json(_status(served))


@router.get("/status", response_model=StatusResponse)
async def status(served: Served) -> Json:
    """Tell what is known of the offset-syncs topic, and how old that is."""
    return Json(_status(served))


def _start(after: str | None) -> tuple[TopicPartition, int]:
    if after is None:
        return TopicPartition("", 0), 0
    topic, partition, number = after.split("/")
    return TopicPartition(topic, int(partition)), int(number)


def _from(
    index: SyncIndex, places: list[TopicPartition], start: tuple[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    first, skipped = start
    for place in places:
        if place >= first:
            for number in range(skipped if place == first else 0, len(index.partitions[place])):
                yield place, number


def _sync(index: SyncIndex, place: TopicPartition, number: int) -> dict[str, Any]:
    topic, partition = place
    upstream, downstream = index.partitions[place][number]
    return {
        "topic": topic,
        "partition": partition,
        "upstreamOffset": upstream,
        "targetOffset": downstream,
        "sourcePartition": {"topic": topic, "partition": partition},
    }


def _status(served: ServedPair) -> dict[str, Any]:
    state, naming = served.cache.state, served.pair.naming
    known = state.syncs
    return {
        "topic": served.pair.syncs_topic,
        "refreshedAt": known.refreshed_at.isoformat(timespec="milliseconds") if known else None,
        "syncCount": len(known.index) if known else 0,
        "partitionCount": len(known.index.partitions) if known else 0,
        "skippedCount": known.skipped if known else 0,
        "ageSeconds": round(known.age, 3) if known else None,
        "stale": state.error is not None,
        "error": describe(state.error),
        "sourceCluster": naming.source_alias,
        "targetCluster": naming.target_alias,
    }


def describe(error: Exception | None) -> str | None:
    """Return what may be told of an error: the words of ours hold no secret."""
    if error is None or isinstance(error, Mm2OffsetsError):
        return str(error) if error else None
    return f"an unexpected {type(error).__name__}; the server's log has it"
