"""A plan's way through XCom and file."""

import json

from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    PlannedPartition,
    Status,
    Strategy,
    Translation,
)

OFFSETS = st.integers(0, 2**63 - 1)
TRANSLATIONS = st.builds(
    Translation,
    topic=st.text(min_size=1),
    partition=st.integers(0, 2**31 - 1),
    position=OFFSETS,
    status=st.sampled_from(Status),
    basis=st.sampled_from(Basis),
    reason=st.text(),
    target=st.none() | OFFSETS,
    low=st.none() | OFFSETS,
    high=st.none() | OFFSETS,
)
PLANS = st.builds(
    FailoverPlan,
    created_at=st.datetimes().map(lambda when: when.isoformat()),
    strategy=st.sampled_from(Strategy),
    syncs_read=st.integers(0),
    syncs_skipped=st.integers(0),
    partitions=st.lists(
        st.builds(
            PlannedPartition,
            translation=TRANSLATIONS,
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
