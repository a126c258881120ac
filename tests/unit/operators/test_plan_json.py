"""A plan's way through XCom and file."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    PartitionPlan,
    Status,
    Strategy,
    Translation,
)
from airflow_mm2_offsets.core.ids import ClusterIds, PairIds

OFFSETS = st.integers(0, 2**63 - 1)


@st.composite
def translations(draw: st.DrawFn) -> Translation:
    """Return an answer that is in itself consistent, or a refusal."""
    low, target, high = sorted(draw(st.lists(OFFSETS, min_size=3, max_size=3)))
    answer = Translation(
        topic=draw(st.text(min_size=1)),
        partition=draw(st.integers(0, 2**31 - 1)),
        position=draw(OFFSETS),
        status=draw(st.sampled_from([Status.EXACT, Status.BOUNDED])),
        basis=draw(st.sampled_from(Basis)),
        reason=draw(st.text()),
        target=target,
        low=low,
        high=draw(st.none() | st.just(high)),
    )
    return answer.refused(answer.basis, answer.reason) if draw(st.booleans()) else answer


IDS = st.builds(
    ClusterIds,
    cluster_id=st.none() | st.text(),
    topic_ids=st.dictionaries(st.text(), st.none() | st.text(), max_size=2),
)
PLANS = st.builds(
    FailoverPlan,
    created_at=st.datetimes().map(lambda when: when.isoformat()),
    strategy=st.sampled_from(Strategy),
    syncs_read=st.integers(0),
    syncs_skipped=st.integers(0),
    ids=st.builds(PairIds, source=IDS, target=IDS),
    run_id=st.none() | st.text(),
    partitions=st.lists(
        st.builds(
            PartitionPlan,
            translation=translations(),
            target_topic=st.text(min_size=1),
            pending=OFFSETS,
        ),
        max_size=5,
    ).map(tuple),
)


@given(plan=PLANS)
def test_nothing_of_a_plan_is_lost(plan: FailoverPlan) -> None:
    """Written as JSON text and read again, a plan is equal, whatever it holds."""
    assert FailoverPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@given(plan=PLANS)
def test_no_offset_is_rounded(plan: FailoverPlan) -> None:
    """Whoever reads JSON's numbers as doubles, as browsers do, still sees every position."""
    text = json.dumps(plan.to_json())
    seen = json.loads(text, parse_int=lambda digits: int(float(digits)))
    for planned, shown in zip(plan.partitions, seen["partitions"], strict=True):
        assert shown["position"] == str(planned.translation.position)
        expected = planned.translation.target
        assert shown["target"] == (None if expected is None else str(expected))


@given(plan=PLANS, data=st.data())
def test_a_plan_that_was_edited_is_refused(plan: FailoverPlan, data: st.DataObject) -> None:
    """Whatever one field is changed to, the plan is not read again."""
    written = json.loads(json.dumps(plan.to_json()))
    place = data.draw(st.sampled_from([written, *written["partitions"]]))
    field = data.draw(st.sampled_from(sorted(place)))
    value = data.draw(st.none() | st.just("7") | st.just(7))
    assume(place[field] != value)
    place[field] = value
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        FailoverPlan.from_json(written)


def test_a_plan_of_before_run_ids_is_read() -> None:
    """Its JSON lacks the field, and its digest was made without; nor has a plan made by hand it."""
    plan = FailoverPlan(
        created_at="", strategy=Strategy.SAFE, syncs_read=0, syncs_skipped=0, partitions=()
    )
    assert "run_id" not in plan.to_json()
    assert FailoverPlan.from_json(plan.to_json()).run_id is None


def test_a_changed_run_id_is_noticed() -> None:
    """An auditor can rely on it: the digest covers it."""
    plan = FailoverPlan(
        created_at="",
        strategy=Strategy.SAFE,
        syncs_read=0,
        syncs_skipped=0,
        partitions=(),
        run_id="manual__1",
    )
    with pytest.raises(ValueError, match="digest"):
        FailoverPlan.from_json(plan.to_json() | {"run_id": "manual__2"})
