"""An app of the REST API with its client, over clusters in memory."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
from fastapi import FastAPI

from airflow_mm2_offsets.api.app import create_app
from airflow_mm2_offsets.api.auth import make_auth
from airflow_mm2_offsets.api.breaker import Breaker
from airflow_mm2_offsets.api.cache import SyncCache
from airflow_mm2_offsets.api.middleware import Limits
from airflow_mm2_offsets.api.pairs import OnePair, ServedPair
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.config import ServeSettings
from airflow_mm2_offsets.core import Naming, SyncIndex, TopicPartition, Watermarks
from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot

ORDERS = TopicPartition("orders", 0)
SYNCS = {
    ORDERS: [(0, 0), (100, 98), (200, 195)],
    TopicPartition("orders", 1): [(50, 40)],
    TopicPartition("payments", 0): [(7, 7)],
}
NOW = datetime(2026, 11, 21, tzinfo=UTC)
BASE = "/api/v1/offsets"


@dataclass
class FakeCluster:
    """Returns watermarks, and counts the requests for them."""

    name: str
    known_watermarks: dict[TopicPartition, Watermarks] = field(default_factory=dict)
    requests: int = 0

    def watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        self.requests += 1
        if not self.known_watermarks:
            raise ClusterUnreachableError(f"{self.name}: did not answer")
        return {each: self.known_watermarks[each] for each in partitions}


def cached(syncs: dict[TopicPartition, list[tuple[int, int]]] = SYNCS) -> SyncsSnapshot:
    return SyncsSnapshot(
        index=SyncIndex().extended(syncs),
        next_offset=5,
        topic_id="a",
        records_read=5,
        skipped_count=1,
        read_at=NOW,
    )


class Direct(httpx.BaseTransport):
    """Calls an app without a server; an exception that the app lets out comes out here."""

    def __init__(self, app: FastAPI) -> None:
        self._asgi = httpx.ASGITransport(app, raise_app_exceptions=True)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def answer() -> httpx.Response:
            begun = await self._asgi.handle_async_request(request)
            content = await begun.aread()
            return httpx.Response(begun.status_code, headers=begun.headers, content=content)

        return asyncio.run(answer())


class ApiHarness:
    """An app whose syncs topic is read by ``read``."""

    def __init__(
        self,
        serve: ServeSettings | None = None,
        *,
        pair: ClusterPair | None = None,
        limits: Limits | None = None,
    ) -> None:
        ends = {each: Watermarks(low=0, high=300) for each in SYNCS}
        self.source = FakeCluster("source", ends)
        self.read: Callable[[], SyncsSnapshot] = cached
        self.reads = 0
        self.cache = SyncCache(self._read)
        self.cache.refresh()
        served = ServedPair(
            pair=pair
            or ClusterPair(
                source=self.source,  # type: ignore[arg-type]
                target=FakeCluster("target"),  # type: ignore[arg-type]
                naming=Naming(source_alias="east", target_alias="west"),
            ),
            cache=self.cache,
            source=Breaker(self.source),  # type: ignore[arg-type]
        )
        auth = make_auth(serve or ServeSettings())
        self.app = create_app(OnePair(served), auth=auth, limits=limits or Limits())
        self.client = httpx.Client(transport=Direct(self.app), base_url="http://test")

    def _read(self, _previous: SyncsSnapshot | None) -> SyncsSnapshot:
        self.reads += 1
        return self.read()
