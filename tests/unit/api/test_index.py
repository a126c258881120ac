"""The index in memory, over HTTP."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from airflow_mm2_offsets.api.cache import CacheState
from airflow_mm2_offsets.errors import ClusterUnreachableError, SyncsTopicError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from tests.unit.api.api_harness import BASE, ORDERS, ApiHarness, Direct, cached

UNREAD = CacheState()


def syncs(api: ApiHarness, **query: str | int) -> httpx.Response:
    return api.client.get(f"{BASE}/syncs", params=query)


def test_a_sync_has_their_fields(api: ApiHarness) -> None:
    """The fields are those of mm2-offset-map's class."""
    body = syncs(api, topic="payments").json()
    assert body == {
        "syncs": [
            {
                "topic": "payments",
                "partition": 0,
                "upstreamOffset": 7,
                "targetOffset": 7,
                "sourcePartition": {"topic": "payments", "partition": 0},
            }
        ],
        "total": 1,
        "next": None,
    }


@pytest.mark.parametrize(
    ("query", "upstreams"),
    [
        ({}, [0, 100, 200, 50, 7]),
        ({"topic": "orders"}, [0, 100, 200, 50]),
        ({"topic": "orders", "partition": 1}, [50]),
        ({"partition": 0}, [0, 100, 200, 7]),
        ({"topic": "unknown"}, []),
        ({"after": "zzz/0/0"}, []),
        ({"after": "orders/0/99"}, [50, 7]),
    ],
)
def test_syncs_are_filtered_and_sorted(
    api: ApiHarness, query: dict[str, Any], upstreams: list[int]
) -> None:
    """By topic and partition, then in the order in which they were written."""
    assert [each["upstreamOffset"] for each in syncs(api, **query).json()["syncs"]] == upstreams


def test_pages_together_are_the_whole(api: ApiHarness) -> None:
    """For any page size; each page names the next."""
    whole = syncs(api).json()["syncs"]
    for limit in range(1, 7):
        read: list[Any] = []
        query: dict[str, Any] = {"limit": limit}
        while True:
            page = syncs(api, **query).json()
            assert page["total"] == 5
            read += page["syncs"]
            if page["next"] is None:
                break
            query["after"] = page["next"]
        assert read == whole


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 100_001}, "limit"),
        ({"partition": "x"}, "partition"),
        ({"topic": "<b>"}, "topic"),
        ({"after": "orders"}, "after"),
        ({"after": "orders/0/-1"}, "after"),
        ({"after": "x" * 301}, "after"),
        ({"conn_id": "mm2_default"}, "conn_id"),
    ],
)
def test_a_wrong_filter_names_its_field(api: ApiHarness, query: dict[str, Any], field: str) -> None:
    """Also for ``conn_id``, which the standalone server does not have."""
    answer = syncs(api, **query)
    assert answer.status_code == (404 if field == "conn_id" else 400)
    assert answer.json()["field"] == f"query.{field}"


def test_the_status_has_their_fields_and_ours(api: ApiHarness) -> None:
    """Topic, last refresh, count; and whether that is stale."""
    status = api.client.get(f"{BASE}/status").json()
    assert status.pop("ageSeconds") > 0
    assert status == {
        "topic": "mm2-offset-syncs.west.internal",
        "refreshedAt": "2026-11-21T00:00:00.000Z",
        "syncCount": 5,
        "partitionCount": 3,
        "skippedCount": 1,
        "stale": False,
        "error": None,
        "sourceCluster": "east",
        "targetCluster": "west",
    }


def test_a_refresh_answers_with_the_status(api: ApiHarness) -> None:
    """The status is that after the refresh."""
    api.read = lambda: cached({ORDERS: [(0, 0)]})
    assert api.client.post(f"{BASE}/refresh").json()["syncCount"] == 1
    assert api.client.get(f"{BASE}/status").json()["syncCount"] == 1


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ClusterUnreachableError("no broker"), 503, "no broker"),
        (SyncsTopicError("it was deleted"), 503, "it was deleted"),
        (RuntimeError("a secret"), 500, "unexpected RuntimeError; see the server's log"),
    ],
)
def test_a_failed_refresh_leaves_the_last_good_one(
    api: ApiHarness, error: Exception, status: int, told: str
) -> None:
    """The status is stale, with the time and the reason, without a secret."""

    def fail() -> SyncsSnapshot:
        raise error

    api.read = fail
    answer = api.client.post(f"{BASE}/refresh")
    assert answer.status_code == status
    assert "secret" not in answer.text
    after = api.client.get(f"{BASE}/status").json()
    assert (after["stale"], after["error"], after["syncCount"]) == (True, told, 5)
    assert syncs(api).json()["total"] == 5


@pytest.mark.parametrize(
    "path", ["/translate?topic=orders&partition=0&offset=1", "/syncs", "/translate/batch"]
)
def test_before_the_first_read_the_server_is_unavailable(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """An empty list would look like a valid answer."""
    monkeypatch.setattr(api.cache, "state", UNREAD)
    body = {"topicName": "orders", "offsetList": [{"partition": 0, "startOffset": 1}]}
    answer = api.client.request("POST" if "batch" in path else "GET", f"{BASE}{path}", json=body)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    status = api.client.get(f"{BASE}/status").json()
    assert (status["refreshedAt"], status["syncCount"], status["ageSeconds"]) == (None, 0, None)


def test_readiness_is_the_first_read(api: ApiHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with a stale index is ready; one without an index is not."""
    assert api.client.get("/readyz").json() == {"status": "ready"}
    monkeypatch.setattr(api.cache, "state", UNREAD)
    assert api.client.get("/readyz").status_code == 503
    assert api.client.get("/healthz").json() == {"status": "ok"}


def test_metrics_count_requests_and_show_the_index(api: ApiHarness) -> None:
    """By route, not by path: invented paths add no time series."""
    syncs(api)
    for number in range(3):
        api.client.get(f"/unknown/{number}")
    text = api.client.get("/metrics").text
    assert (
        'mm2_offsets_requests_total{method="GET",route="/api/v1/offsets/syncs",status="200"} 1.0'
        in text
    )
    assert 'mm2_offsets_requests_total{method="any",route="none",status="404"} 3.0' in text
    assert 'mm2_offsets_syncs{connection=""} 5.0' in text
    assert 'mm2_offsets_index_stale{connection=""} 0.0' in text
    assert 'mm2_offsets_refreshes_total{connection="",outcome="ok"} 1.0' in text


def test_metrics_of_a_mounted_app_have_the_same_labels(api: ApiHarness) -> None:
    """Airflow's API server mounts the app below a prefix, which is no route of ours."""
    server = FastAPI()
    server.mount("/mm2-offsets", api.app)
    client = httpx.Client(transport=Direct(server), base_url="http://api")
    client.get(f"/mm2-offsets{BASE}/syncs")
    client.get("/mm2-offsets/unknown")
    text = client.get("/mm2-offsets/metrics").text
    assert f'{{method="GET",route="{BASE}/syncs",status="200"}} 1.0' in text
    assert '{method="any",route="none",status="404"} 1.0' in text


def test_each_app_counts_for_itself() -> None:
    """Two apps in one process have separate registries."""
    first, second = ApiHarness(), ApiHarness()
    syncs(first)
    assert "/syncs" not in second.client.get("/metrics").text
