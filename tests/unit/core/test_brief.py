"""What XCom holds of a plan or forecast that is long."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.brief import (
    WORST,
    brief_forecast,
    brief_plan,
    concern_of,
    is_brief,
    risk_of,
)
from tests.support.plans import plans


def _rank(row: dict[str, Any]) -> int:
    """Return the place of a row's kind, in the words of the documentation."""
    if row["target"] is None:
        return 0
    if row["fallback"]:
        return 1
    if int(row["target"]) > int(row["low"]):
        return 2
    return 3 if row["max_reread"] is None else 4


@given(plans())
def test_a_brief_shows_the_worst_partitions(plan: FailoverPlan) -> None:
    """No partition that is left out is refused, unproved, unsafe or wider before one shown."""
    whole = plan.to_json()
    brief = brief_plan(whole, "s3://lake/plan.json")
    shown = brief["worst_partitions"]
    left = [row for row in whole["partitions"] if row not in shown]
    assert len(shown) == min(WORST, len(whole["partitions"]))
    assert brief["partitions_left_out"] == len(left)
    assert all(_rank(row) <= _rank(other) for row in shown for other in left)
    widest = max((row["max_reread"] for row in left if _rank(row) == 4), default=0)
    assert all(row["max_reread"] >= widest for row in shown if _rank(row) == 4)
    assert [*map(concern_of, shown)] == sorted(map(concern_of, shown), reverse=True)


@given(plans())
def test_a_brief_keeps_all_else(plan: FailoverPlan) -> None:
    """Head, totals and the whole plan's digest stay; of topic ids those of shown partitions."""
    whole = plan.to_json()
    brief = brief_plan(whole, "s3://lake/plan.json")
    assert is_brief(brief)
    assert not is_brief(whole)
    assert brief["location"] == "s3://lake/plan.json"
    changed = {"partitions", "worst_partitions", "clusters"}
    assert {name: brief[name] for name in whole if name not in changed} == {
        name: whole[name] for name in whole if name not in changed
    }
    topics = {row["topic"] for row in brief["worst_partitions"]}
    assert {*brief["clusters"]["source"]["topic_ids"]} == topics
    assert brief["clusters"]["source"]["cluster_id"] == "one"
    assert json.loads(json.dumps(brief)) == brief


COUNTS = st.one_of(st.none(), st.integers(0, 2**40).map(str))


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=60))
def test_a_brief_forecast_shows_the_greatest_risk(counts: list[tuple[str | None, ...]]) -> None:
    """What is unknown is worst, then the most records at risk; read again decides between equals.

    Counts may be text of any length: they are compared as numbers.
    """
    rows = [
        {"partition": number, "at_risk": {"at_most": risk}, "read_again": {"at_most": again}}
        for number, (risk, again) in enumerate(counts)
    ]
    brief = brief_forecast({"partitions": rows, "digest": "d"}, "s3://lake/forecast.json")
    shown = brief["worst_partitions"]
    known = [row["at_risk"]["at_most"] for row in shown]
    unknown = sum(risk is None for risk, _ in counts)
    assert known[:unknown] == [None] * min(unknown, WORST)
    greatest = sorted((int(risk) for risk, _ in counts if risk is not None), reverse=True)
    assert [int(risk) for risk in known[unknown:]] == greatest[: max(0, WORST - unknown)]
    assert [*map(risk_of, shown)] == sorted(map(risk_of, shown), reverse=True)
