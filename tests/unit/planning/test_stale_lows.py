"""A sync of an older epoch, whose record the target holds no more."""

import pytest

from airflow_mm2_offsets.core import Basis
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from tests.support.pairs import Pair

TRUNCATED, END = 80, 160


@pytest.fixture
def truncated(clusters: Pair) -> Pair:
    """The target lost 80 to 99 and grew again; MirrorMaker 2 was then set back to 30.

    Of what it copied right after the loss, only the last sync is left.
    """
    clusters.write("orders", range(END))
    clusters.copy("orders", [*range(TRUNCATED), *range(100, END), *range(30, 51)])
    clusters.sync("orders", (0, 0), (50, 50), (95, 95), (159, 139), (30, 140), (50, 160))
    return clusters


@pytest.mark.parametrize("position", [97, 100, 105, 110])
def test_an_answer_that_rests_on_it_is_refused(truncated: Pair, position: int) -> None:
    """The copies of 100 and later lie before the offset that the sync names."""
    plan = plan_failover(truncated.pair, {"orders": {0: position}})
    assert [each.basis for each in plan.refused] == [Basis.RECORDS_DIFFER]


@pytest.mark.parametrize("position", [10, 40, 60, 79])
def test_other_answers_stay(truncated: Pair, position: int) -> None:
    """Their copies, and those of all later records, lie at or after them."""
    plan = plan_failover(truncated.pair, {"orders": {0: position}})
    (answer,) = (each.translation for each in plan.partitions)
    assert answer.target is not None
    assert answer.target <= TRUNCATED


def test_records_that_nobody_reads_are_not_compared(truncated: Pair) -> None:
    """As the user chose."""
    options = PlanOptions(max_evidence_bytes=0)
    plan = plan_failover(truncated.pair, {"orders": {0: 97}}, options=options)
    assert not plan.refused
