"""One position, and many, over HTTP."""

from typing import Any

import httpx
import pytest

from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from tests.unit.api.api_harness import BASE, ORDERS, ApiHarness, cached

BETWEEN: dict[str, str | int] = {"topic": "orders", "partition": 0, "offset": 150}


def ask(api: ApiHarness, path: str = "", **query: str | int) -> httpx.Response:
    return api.client.get(f"{BASE}/translate{path}", params={**BETWEEN, **query})


def test_an_answer_has_their_fields_and_ours(api: ApiHarness) -> None:
    """The answer has mm2-offset-map's fields, by the safe strategy, and our status and bounds."""
    assert ask(api).json() == {
        "topic": "orders",
        "partition": 0,
        "sourceOffset": 150,
        "targetOffset": 99,
        "syncUpstreamOffset": 100,
        "syncTargetOffset": 98,
        "strategy": "safe",
        "status": "bounded",
        "low": 99,
        "high": 195,
        "reason": "lies between 100 -> 98 and 200 -> 195: the answer is from 99 to 195",
        "basis": "between-syncs",
    }


@pytest.mark.parametrize(("strategy", "target"), [("safe", 99), ("linear", 148), ("kafka", 99)])
def test_the_strategy_is_the_callers(api: ApiHarness, strategy: str, target: int) -> None:
    """Linear is mm2-offset-map's own formula."""
    answer = ask(api, strategy=strategy).json()
    assert answer["targetOffset"] == target
    assert answer["status"] == ("not_safe" if strategy == "linear" else "bounded")


@pytest.mark.parametrize("path", ["", "/latest"])
def test_post_answers_as_get_does(api: ApiHarness, path: str) -> None:
    """The body has the fields of the query; numbers may be text, as in Jackson."""
    expected = ask(api, path).json()
    for body in (
        BETWEEN,
        BETWEEN | {"offset": "150"},
        BETWEEN | {"offset": 150.0},
        BETWEEN | {"unknown": 1},
    ):
        assert api.client.post(f"{BASE}/translate{path}", json=body).json() == expected


def test_memory_answers_without_a_cluster(api: ApiHarness) -> None:
    """It reads neither the syncs topic nor the source."""
    reads = api.reads
    assert ask(api).status_code == 200
    assert (api.reads, api.source.requests) == (reads, 0)


def test_latest_reads_once_and_keeps_nothing(api: ApiHarness) -> None:
    """It answers from the topic's syncs of now; the syncs in memory stay."""
    api.read = lambda: cached({ORDERS: [(0, 0), (150, 149)]})
    reads = api.reads
    assert ask(api, "/latest").json()["targetOffset"] == 149
    assert api.reads == reads + 1
    assert ask(api).json()["targetOffset"] == 99


def test_before_the_first_sync_no_sync_is_named(api: ApiHarness) -> None:
    """The safe strategy has an answer there; the others have none, as mm2-offset-map."""
    found = ask(api, partition=1, offset=3).json()
    assert (found["targetOffset"], found["low"], found["high"]) == (0, 0, 40)
    assert found["syncUpstreamOffset"] is found["syncTargetOffset"] is None
    refused = ask(api, partition=1, offset=3, strategy="linear")
    assert refused.status_code == 404
    assert refused.json()["translation"]["status"] == "refused"
    assert refused.json()["translation"]["basis"] == "before-first-sync"


@pytest.mark.parametrize(
    ("query", "field"), [({"topic": "unknown"}, "topic"), ({"partition": 9}, "partition")]
)
def test_an_uncopied_partition_is_not_found(
    api: ApiHarness, query: dict[str, Any], field: str
) -> None:
    """As in mm2-offset-map; the problem names which of the two is unknown."""
    answer = ask(api, **query)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem["title"], problem["field"]) == (404, "Not Found", field)
    assert problem["translation"]["status"] == "refused"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"offset": -1}, "query.offset"),
        ({"offset": MAX_OFFSET + 1}, "query.offset"),
        ({"offset": "9" * 5000}, "query.offset"),
        ({"offset": "many"}, "query.offset"),
        ({"offset": ""}, "query.offset"),
        ({"partition": -1}, "query.partition"),
        ({"partition": 2**31}, "query.partition"),
        ({"topic": ""}, "query.topic"),
        ({"topic": "x" * 250}, "query.topic"),
        ({"topic": "<script>alert(1)</script>"}, "query.topic"),
        ({"topic": "a\nb"}, "query.topic"),
        ({"topic": "a\x00b"}, "query.topic"),
        ({"strategy": "best"}, "query.strategy"),
    ],
)
@pytest.mark.parametrize("path", ["", "/latest"])
def test_a_wrong_query_names_its_field(
    api: ApiHarness, path: str, query: dict[str, Any], field: str
) -> None:
    """The answer never shows the value."""
    answer = ask(api, path, **query)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field
    assert answer.json()["errors"][0]["field"] == field
    assert "script" not in answer.text


def test_all_missing_fields_are_named(api: ApiHarness) -> None:
    """One answer lists all missing fields."""
    answer = api.client.get(f"{BASE}/translate")
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["errors"]] == [
        "query.topic",
        "query.partition",
        "query.offset",
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"", "body"),
        (b"[]", "body"),
        (b'{"topic": "orders", "partition": 0}', "body.offset"),
        (b'{"topic": "orders", "partition": true, "offset": 1}', "body.partition"),
        (b'{"topic": "orders", "partition": 0, "offset": 1.5}', "body.offset"),
        (b'{"topic": "orders", "partition": 0, "offset": "x"}', "body.offset"),
        (b'{"topic": "orders", "partition": 0, "offset": null}', "body.offset"),
        (b'{"topic": "orders", "partition": 0, "offset": NaN}', "body.offset"),
        (b'{"topic": "\\ud800", "partition": 0, "offset": 1}', "body"),
        (b'{"topic": ["orders"], "partition": 0, "offset": 1}', "body.topic"),
        (b'{"offset": ' + b"9" * 5000 + b"}", "body"),
        (b"[" * 100_000, "body"),
        (b'{"topic": "\xff"}', "body"),
    ],
)
def test_a_wrong_body_names_its_field(api: ApiHarness, body: bytes, field: str | None) -> None:
    """Also if the body is not JSON."""
    answer = api.client.post(
        f"{BASE}/translate", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400
    assert answer.json().get("field") == field


def batch(api: ApiHarness, items: list[Any], path: str = "", **query: str | int) -> httpx.Response:
    body = {"topicName": "orders", "offsetList": items}
    return api.client.post(f"{BASE}/translate/batch{path}", json=body, params=query)


def item(partition: object, offset: object) -> dict[str, object]:
    return {"partition": partition, "startOffset": offset}


@pytest.mark.parametrize("path", ["", "/latest"])
def test_a_batch_answers_by_partition(api: ApiHarness, path: str) -> None:
    """In the order of the request; the source's end is a valid position, later ones are refused."""
    items = [item(0, 100), item(1, 60), item(0, 300), item("0", "301")]
    answer = batch(api, items, path)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["topicName"], body["sourceCluster"], body["targetCluster"]) == (
        "orders",
        "east",
        "west",
    )
    first, second = body["partitionResults"]
    assert (first["partition"], first["status"]) == (0, "PARTIAL_SUCCESS")
    assert first["offsetTranslations"][0] == {
        "sourceOffset": 100,
        "targetOffset": 98,
        "translationMethod": "OFFSET_SYNC",
        "errorMessages": None,
        "success": True,
        "strategy": "safe",
        "status": "exact",
        "low": 98,
        "high": 98,
        "reason": "is the sync 100 -> 98",
        "basis": "sync",
    }
    assert [each["targetOffset"] for each in first["offsetTranslations"]] == [98, 196, None]
    assert first["offsetTranslations"][2]["basis"] == "outside-source"
    assert (second["partition"], second["status"]) == (1, "SUCCESS")
    summary = body["summary"]
    assert isinstance(summary.pop("processTimeMs"), int)
    assert summary == {
        "totalRequested": 4,
        "successCount": 3,
        "failureCount": 1,
        "partitionProcessed": 2,
    }
    assert api.source.requests == 1
    assert api.reads == (2 if path else 1)


@pytest.mark.parametrize(
    ("bad", "partition", "message"),
    [
        (item(0, -1), 0, "-1 is not a position"),
        (item(0, 2**63), 0, f"{2**63} is not a position"),
        (item(0, 10**40), 0, "is not a position"),
        (item(0, "many"), 0, "'many' is not a position"),
        (item(-1, 5), -1, "-1 is not a partition"),
        (item("x", 5), "x", "'x' is not a partition"),
        (item(2**31, 5), 2**31, "is not a partition"),
        (item(9, 5), 9, "MirrorMaker 2 never copied it"),
        (item(0, 299), None, None),
    ],
)
def test_a_bad_item_fails_alone(
    api: ApiHarness, bad: dict[str, Any], partition: int | str | None, message: str | None
) -> None:
    """Each bad item has its own message; the last case is valid, and nothing fails."""
    body = batch(api, [item(1, 50), bad]).json()
    assert body["partitionResults"][0]["status"] == "SUCCESS"
    assert body["summary"]["failureCount"] == (0 if message is None else 1)
    if message is not None:
        (failed,) = body["partitionResults"][1:]
        assert (failed["partition"], failed["status"]) == (partition, "FAILED")
        (result,) = failed["offsetTranslations"]
        assert (result["sourceOffset"], result["targetOffset"]) == (bad["startOffset"], None)
        assert result["success"] is False
        assert message in result["errorMessages"]


@pytest.mark.parametrize(
    ("items", "status", "field"),
    [
        ([item(0, 1)] * 100_001, 413, "body.offsetList"),
        ([1] * 1000, 400, "body.offsetList.0"),
        ([item(0, 1), {"partition": 0}], 400, "body.offsetList.1.startOffset"),
        ([item(0, None)], 400, "body.offsetList.0.startOffset"),
        ([item(partition=True, offset=1)], 400, "body.offsetList.0.partition"),
        ([item(0, "1" * 33)], 400, "body.offsetList.0.startOffset"),
    ],
)
def test_a_malformed_batch_is_refused_whole(
    api: ApiHarness, items: list[Any], status: int, field: str
) -> None:
    """Too many items, or an item without its fields, which is named by its index."""
    answer = batch(api, items)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert len(answer.content) < 2000
    if status == 413:
        assert "100001" in answer.json()["detail"]


def test_the_largest_batch_is_answered(api: ApiHarness) -> None:
    """Each of 100,000 items has an answer."""
    body = batch(api, [item(0, number % 300) for number in range(100_000)]).json()
    assert body["summary"]["successCount"] == 100_000


def test_an_empty_batch_has_no_results(api: ApiHarness) -> None:
    """As mm2-offset-map answers it."""
    answer = batch(api, [])
    assert answer.status_code == 200
    body = answer.json()
    assert body["partitionResults"] == []
    assert body["summary"] == {
        "totalRequested": 0,
        "successCount": 0,
        "failureCount": 0,
        "processTimeMs": body["summary"]["processTimeMs"],
        "partitionProcessed": 0,
    }


def test_each_item_of_an_unknown_topic_fails(api: ApiHarness) -> None:
    """As mm2-offset-map answers it."""
    body = {"topicName": "unknown", "offsetList": [item(0, 1), item(1, 2)]}
    answer = api.client.post(f"{BASE}/translate/batch", json=body)
    assert answer.status_code == 200
    results = answer.json()["partitionResults"]
    assert [(each["partition"], each["status"]) for each in results] == [
        (0, "FAILED"),
        (1, "FAILED"),
    ]
    (failed,) = results[0]["offsetTranslations"]
    assert "MirrorMaker 2 never copied it" in failed["errorMessages"]


def test_an_unreachable_source_fails_a_batch(api: ApiHarness) -> None:
    """An unreachable source is an error that names check_source; the check is never skipped."""
    api.source.known_watermarks.clear()
    answer = batch(api, [item(0, 301)])
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert "check_source=false" in answer.json()["detail"]
    unchecked = batch(api, [item(0, 301)], check_source="false").json()
    assert unchecked["summary"]["successCount"] == 1
    assert api.source.requests == 1


@pytest.mark.parametrize("path", ["/translate/latest", "/refresh"])
def test_a_broker_that_dies_is_unavailable(api: ApiHarness, path: str) -> None:
    """The syncs in memory are still served."""

    def fail() -> SyncsSnapshot:
        raise ClusterUnreachableError("target: did not answer")

    api.read = fail
    answer = api.client.post(f"{BASE}/refresh") if path == "/refresh" else ask(api, "/latest")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["detail"] == "target: did not answer"
    assert ask(api).status_code == 200
