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
from airflow_mm2_offsets.core.summary import fold, summarize_folded

INDEX = SyncIndex(
    OffsetSync(topic="orders", partition=0, upstream=upstream, downstream=downstream)
    for upstream, downstream in ((11, 0), (32, 21), (42, 25))
)


def _plan(strategy: Strategy) -> FailoverPlan:
    answers = [INDEX.translate("orders", 0, 40, strategy=strategy)]
    return FailoverPlan(
        created_at="2026-11-21T09:10:00+00:00",
        strategy=strategy,
        syncs_read=3,
        syncs_skipped=0,
        partitions=plan_partitions(answers, Naming(source_alias="a", target_alias="b")),
    )


def test_what_an_unsafe_strategy_can_lose_is_said() -> None:
    """The straight line takes 29 where the truth is from 22 on: seven records may be lost."""
    summary = summarize(_plan(Strategy.LINEAR))
    assert summary.startswith("NOT SAFE: 1 partition (0 exact, 0 bounded, 0 refused, 1 not safe)")
    assert "By strategy linear up to 7 may be lost; strategy safe loses none." in summary
    assert "READY" not in summary


@pytest.mark.parametrize("strategy", [Strategy.SAFE, Strategy.KAFKA])
def test_no_danger_is_claimed_where_there_is_none(strategy: Strategy) -> None:
    """The lower bound, and what MirrorMaker 2 answers, lose nothing."""
    summary = summarize(_plan(strategy))
    assert summary.startswith("READY: 1 partition (")
    assert "NOT SAFE" not in summary


def test_a_folded_plan_is_one_paragraph() -> None:
    """Verdict, worst partitions and where the rest is; no line ends, however long a reason is."""
    plan = _plan(Strategy.LINEAR)
    text = summarize_folded(plan, plan.partitions, "9 partitions more: s3://lake/plan.json")
    assert "\n" not in text
    assert text.startswith("NOT SAFE: 1 partition (")
    assert "Worst: orders[0] at 40 starts at 29, may lose 7, and reads " in text
    assert text.endswith(" 9 partitions more: s3://lake/plan.json.")
    assert summarize(plan, (), "9 more").endswith("\n\n9 more")


def test_a_table_is_left_out_where_lines_are_folded() -> None:
    """Headline and what to do stay, in one paragraph; a headline alone stays as it is."""
    text = "NOT READY: 1 failed\n\nname  status\nacls  failed\n\nWhat to do\nacls: grant\nx: y"
    folded = "NOT READY: 1 failed. What to do: acls: grant; x: y. The XCom table has all lines."
    assert fold(text) == folded
    assert fold("CLEAN: compared nothing.") == "CLEAN: compared nothing."
