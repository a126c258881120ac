"""The plan of a failover, over HTTP."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.planning.plan import plan_failover
from tests.support.pairs import Pair
from tests.unit.api.api_harness import BASE, ApiHarness


def plan(api: ApiHarness, **body: object) -> httpx.Response:
    return api.client.post(f"{BASE}/plan", json=body)


@pytest.fixture
def planned(clusters: Pair) -> ApiHarness:
    clusters.write("orders", range(30))
    clusters.copy("orders", range(30))
    clusters.sync("orders", (0, 0), (29, 29))
    clusters.write("other", range(5))
    clusters.copy("other", range(5))
    return ApiHarness(pair=clusters.pair)


def test_a_plan_is_the_one_of_xcom(planned: ApiHarness, clusters: Pair) -> None:
    """Its fields equal those of the operators' plan, and it can be read back."""
    answer = plan(planned, positions={"orders": {"0": "10"}}, pending={"orders": {"0": 12}})
    assert answer.status_code == 200
    made = plan_failover(clusters.pair, {"orders": {0: 10}}, pending={"orders": {0: 12}})
    expected = replace(made, created_at=answer.json()["created_at"])
    assert answer.json() == expected.to_json()
    assert FailoverPlan.from_json(answer.json()).target_positions() == {"orders": {0: 10}}
    assert answer.json()["partitions"][0]["pending"] == 2


def test_a_refused_plan_is_an_answer(planned: ApiHarness) -> None:
    """The answer has status 200; its verdict says refused, and the caller may set a fallback."""
    refused = plan(planned, positions={"other": {"0": 3}}, read_source=False).json()
    assert refused["verdict"] == "refused"
    chosen = plan(
        planned, positions={"other": {"0": 3}}, read_source=False, on_unmapped="earliest"
    ).json()
    assert chosen["verdict"] == "ready"
    assert chosen["partitions"][0]["fallback"]["kind"] == "earliest"


def test_records_that_a_transform_changes_are_allowed_by_name(clusters: Pair) -> None:
    """If a record differs from its copy the plan is refused, unless changed_records is set."""
    clusters.write("orders", range(30))
    clusters.copy("orders", range(100, 130))
    clusters.sync("orders", (0, 0), (29, 29))
    api, body = ApiHarness(pair=clusters.pair), {"positions": {"orders": {"0": 29}}}
    refused = plan(api, **body).json()
    assert refused["verdict"] == "refused"
    assert "changed_records" in refused["partitions"][0]["reason"]
    allowed = plan(api, **body, changed_records=True).json()
    assert allowed["verdict"] == "ready"
    assert allowed["partitions"][0]["target"] == "29"


def test_an_unknown_time_is_required(planned: ApiHarness) -> None:
    """If no time can be found, the caller must set unmapped_time."""
    body = {"positions": {"other": {"0": 3}}, "read_source": False, "on_unmapped": "timestamp"}
    answer = plan(planned, **body)
    assert (answer.status_code, answer.json()["field"]) == (409, "body.unmapped_time")
    for time in ("2020-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"):
        given = plan(planned, **body, unmapped_time=time)
        assert given.json()["partitions"][0]["fallback"]["kind"] == "timestamp"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body.positions"),
        ({"positions": {}}, "body.positions"),
        ({"positions": {"orders": {}}}, "body.positions.orders"),
        ({"positions": {"orders": {"0": -1}}}, "body.positions.orders.0"),
        ({"positions": {"orders": {"0": 2**63}}}, "body.positions.orders.0"),
        ({"positions": {"<b>": {"0": 1}}}, "body.positions.<b>.[key]"),
        ({"positions": {"orders": {"x": 1}}}, "body.positions.orders.x.[key]"),
        ({"positions": {"orders": {"0": 1, "00": 1}}}, "body.positions.orders.00.[key]"),
        ({"positions": {"orders": {"0": 1}}, "unmapped_time": "soon"}, "body.unmapped_time"),
        (
            {"positions": {"orders": {"0": 1}}, "unmapped_time": "2020-01-01T00:00:00"},
            "body.unmapped_time",
        ),
        ({"positions": {"orders": {"0": 1}}, "on_unmaped": "fail"}, "body.on_unmaped"),
        ({"positions": {"orders": {"0": 1}}, "unmapped_margin": -1}, "body.unmapped_margin"),
        ({"positions": {"orders": {"0": 1}}, "strategy": "best"}, "body.strategy"),
        ({"positions": {"orders": {"0": 1}}, "changed_records": "x"}, "body.changed_records"),
    ],
)
def test_a_wrong_plan_names_its_field(api: ApiHarness, body: dict[str, Any], field: str) -> None:
    """A misspelt option is refused."""
    answer = plan(api, **body)
    assert answer.status_code == 400
    assert answer.json().get("field") == field


def test_the_described_maximum_is_valid_as_a_float_too(planned: ApiHarness) -> None:
    """The described maximum is below 2**63 as a float too, so that such clients can send it."""
    schemas = planned.client.get("/openapi.json").json()["components"]["schemas"]
    number, _ = schemas["TranslateRequest"]["properties"]["offset"]["anyOf"]
    assert number["maximum"] == 2**63 - 1024
    for highest in (number["maximum"], float(number["maximum"]), 2**63 - 1):
        answer = plan(planned, positions={"orders": {"0": highest}})
        assert answer.status_code == 200, answer.text
    assert plan(planned, positions={"orders": {"0": 2.0**63}}).status_code == 400


def test_a_long_name_is_not_sent_back_whole(api: ApiHarness) -> None:
    """A name in the request may be as long as the body; the answer shows its beginning."""
    answer = plan(api, positions={"x" * 10**6: {"0": 1}})
    assert answer.status_code == 400
    assert len(answer.content) < 2000


def test_too_many_partitions_are_counted(api: ApiHarness) -> None:
    """The limit is for the sum over all topics."""
    half = {str(number): 1 for number in range(60_000)}
    answer = plan(api, positions={"one": half, "two": half})
    assert answer.status_code == 413
    assert "120000" in answer.json()["detail"]


def test_an_unknown_topic_is_not_found(planned: ApiHarness) -> None:
    """The message names the cluster."""
    answer = plan(planned, positions={"orders": {"7": 1}})
    assert answer.status_code == 404
    assert "source" in answer.json()["detail"]
