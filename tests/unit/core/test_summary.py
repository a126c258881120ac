"""The plan as text."""

import pytest

from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    OffsetSync,
    Strategy,
    SyncIndex,
    plan_partitions,
    summarize,
)

INDEX = SyncIndex(
    OffsetSync(topic="orders", partition=0, upstream=upstream, downstream=downstream)
    for upstream, downstream in ((32, 21), (42, 25))
)


def _plan(strategy: Strategy) -> FailoverPlan:
    answers = [INDEX.translate("orders", 0, 40, strategy=strategy)]
    return FailoverPlan(
        created_at="2026-11-21T09:10:00+00:00",
        strategy=strategy,
        syncs_read=2,
        syncs_skipped=0,
        partitions=plan_partitions(answers, Naming(source_alias="a", target_alias="b")),
    )


def test_what_an_unsafe_strategy_can_lose_is_said() -> None:
    """The straight line takes 29 where the truth is from 22 on: seven records may be lost."""
    summary = summarize(_plan(Strategy.LINEAR))
    assert "NOT SAFE: by strategy linear up to 7 may be lost." in summary


@pytest.mark.parametrize("strategy", [Strategy.SAFE, Strategy.KAFKA])
def test_no_danger_is_claimed_where_there_is_none(strategy: Strategy) -> None:
    """The lower bound, and what MirrorMaker 2 answers, lose nothing."""
    summary = summarize(_plan(strategy))
    assert summary.startswith("READY: 1 partition (")
    assert "NOT SAFE" not in summary
