"""An answer above the safe lower bound: its status and the plan's verdict are not safe."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    OffsetSync,
    Status,
    Strategy,
    SyncIndex,
    Verdict,
)
from airflow_mm2_offsets.core.partition_plan import Fallback, OnUnmapped, plan_partitions
from airflow_mm2_offsets.errors import TranslationRefusedError

INDEX = SyncIndex(
    OffsetSync(topic="orders", partition=0, upstream=upstream, downstream=downstream)
    for upstream, downstream in ((0, 0), (32, 21), (42, 25))
)
UNSAFE = (Strategy.LINEAR, Strategy.KAFKA)


def _plan(position: int, strategy: Strategy) -> FailoverPlan:
    answers = [INDEX.translate("orders", 0, position, strategy=strategy)]
    return FailoverPlan(
        created_at="2026-11-21T09:10:00+00:00",
        strategy=strategy,
        syncs_read=3,
        syncs_skipped=0,
        partitions=plan_partitions(answers, Naming(source_alias="a", target_alias="b")),
    )


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("position", range(50))
def test_the_status_is_that_of_the_answer(strategy: Strategy, position: int) -> None:
    """Not safe is above the lower bound, exact is the truth, and bounded is all between."""
    answer = INDEX.translate("orders", 0, position, strategy=strategy)
    assert answer.target is not None
    assert answer.low is not None
    expected = Status.EXACT if answer.low == answer.high == answer.target else Status.BOUNDED
    assert answer.status is (Status.NOT_SAFE if answer.target > answer.low else expected)
    assert (answer.max_lost > 0) == (answer.status is Status.NOT_SAFE)
    assert strategy in UNSAFE or answer.status is not Status.NOT_SAFE


def test_a_plan_that_may_lose_records_is_not_ready() -> None:
    """No job gets its positions, and the error names partition, strategy and both answers."""
    plan = _plan(40, Strategy.LINEAR)
    assert plan.verdict is Verdict.NOT_SAFE
    with pytest.raises(TranslationRefusedError) as caught:
        plan.target_positions()
    assert "orders[0] at 40" in str(caught.value)
    assert "strategy linear answers 29" in str(caught.value)
    assert "strategy safe answers 22" in str(caught.value)


def test_its_json_says_so_and_is_read_back() -> None:
    """Verdict, total and status; a plan by the strategy safe has no such total."""
    plan = _plan(40, Strategy.LINEAR)
    written = plan.to_json()
    assert written["verdict"] == "not_safe"
    assert written["totals"]["not_safe"] == 1
    assert written["partitions"][0]["status"] == "not_safe"
    assert FailoverPlan.from_json(written) == plan
    assert "not_safe" not in _plan(40, Strategy.SAFE).to_json()["totals"]


def test_an_answer_of_another_strategy_that_loses_nothing_is_ready() -> None:
    """The straight line is right at a sync."""
    assert _plan(32, Strategy.LINEAR).verdict is Verdict.READY


def test_a_plan_of_an_earlier_release_is_not_ready_either() -> None:
    """It says bounded where the answer is above its lower bound."""
    plan = _plan(40, Strategy.LINEAR)
    line = plan.partitions[0]
    old = replace(line, translation=replace(line.translation, status=Status.BOUNDED))
    assert replace(plan, partitions=(old,)).verdict is Verdict.NOT_SAFE


def test_a_chosen_fallback_is_not_its_strategys() -> None:
    """A user chose it for a refused partition; a refusal counts before all else."""
    plan = _plan(40, Strategy.LINEAR)
    line = plan.partitions[0]
    refused = replace(line, translation=line.translation.refused(line.translation.basis, "gone"))
    chosen = Fallback(kind=OnUnmapped.EARLIEST, position=0, reason="the first offset")
    assert replace(plan, partitions=(refused, line)).verdict is Verdict.REFUSED
    fallen_back = replace(refused, fallback=chosen)
    assert replace(plan, partitions=(fallen_back,)).verdict is Verdict.READY
