"""Keeping a plan in a file."""

from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    OffsetSync,
    Strategy,
    SyncIndex,
    plan_partitions,
)
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import ConfigurationError, PlanError
from airflow_mm2_offsets.planning.plan_file import check_plan, read_plan, save_plan

SYNC = OffsetSync(topic="orders", partition=0, upstream=2**60, downstream=7)
POSITIONS = {"orders": {0: 2**60}}
PLAN = FailoverPlan(
    created_at="2026-11-21T08:00:00+00:00",
    strategy=Strategy.SAFE,
    syncs_read=1,
    syncs_skipped=0,
    partitions=plan_partitions(
        [SyncIndex([SYNC]).translate("orders", 0, 2**60)],
        Naming(source_alias="a", target_alias="b"),
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> UPath:
    return UPath(tmp_path / "plans" / "plan.json")


def test_what_was_saved_is_loaded(path: UPath) -> None:
    """A plan comes back as it was, offsets beyond 2**53 too."""
    assert read_plan(path) is None
    save_plan(path, PLAN)
    assert read_plan(path) == PLAN
    check_plan(PLAN, path, POSITIONS, None, PairIds())


def test_a_plan_of_other_positions_is_refused(path: UPath) -> None:
    """A plan is never used for positions that it is not of; both are named."""
    with pytest.raises(PlanError, match=rf"2026-11-21T08.* \({POSITIONS}\) than these"):
        check_plan(PLAN, path, {"orders": {0: 2**60 + 1}}, None, PairIds())
    with pytest.raises(PlanError, match=r"orders\[0\]: 0 pending records in .* and 3 now"):
        check_plan(PLAN, path, POSITIONS, {"orders": {0: 2**60 + 3}}, PairIds())


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"7", b'"plan"', b"{}", b'{"schema_version": 99}', b"\xff\xfe"],
)
def test_what_is_no_plan_is_named(path: UPath, text: bytes) -> None:
    """A file that was cut short, or is something else, is an error that names it."""
    path.parent.mkdir()
    path.write_bytes(text)
    with pytest.raises(PlanError, match=r"plan\.json: is not a usable plan: .*; delete") as caught:
        read_plan(path)
    assert not caught.value.retryable


@pytest.mark.parametrize("field", ["partitions", "strategy", "digest"])
def test_a_plan_that_lacks_a_part_is_named(path: UPath, field: str) -> None:
    """A plan with a field of another kind is no plan."""
    save_plan(path, PLAN)
    text = path.read_text()
    path.write_text(text.replace(f'"{field}"', '"else"'))
    with pytest.raises(PlanError, match=f"is not a usable plan: it lacks '{field}'"):
        read_plan(path)


def test_a_folder_in_the_way_is_named(path: UPath) -> None:
    """Where the plan can't be written, the path is named."""
    path.mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"plan\.json"):
        save_plan(path, replace(PLAN, syncs_read=2))
