"""A plan that XCom holds in brief, read whole from its file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.brief import brief_plan
from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.planning.plan_file import read_plan, save_plan
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from tests.support.plans import plans
from tests.unit.planning.test_plan_file import PLAN


@pytest.fixture
def path(tmp_path: Path) -> UPath:
    return UPath(tmp_path / "plan.json")


@pytest.fixture
def brief(path: UPath) -> dict[str, Any]:
    save_plan(path, PLAN)
    return brief_plan(PLAN.to_json(), str(path))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans())
def test_a_brief_leads_back_to_the_whole(plan: FailoverPlan, path: UPath) -> None:
    """What was stored and briefed is the same plan again."""
    save_plan(path, plan)
    whole = whole_plan(brief_plan(plan.to_json(), str(path)))
    assert whole == plan.to_json()


def test_what_is_whole_reads_no_file() -> None:
    """A plan that XCom holds whole is returned as it is."""
    content = PLAN.to_json()
    assert whole_plan(content) is content


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, "the file is gone"),
        ("", "it is damaged"),
        ("[]", "it is damaged"),
        ('{"digest": "7"}', "it was changed: its digest is '7'"),
    ],
)
def test_a_file_that_is_not_the_plan_is_an_error(
    path: UPath, brief: dict[str, Any], text: str | None, named: str
) -> None:
    """One error names the file, what is wrong with it, and the next step."""
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(PlanError, match=rf"plan\.json: {named}.*; XCom holds only the 1 wor"):
        whole_plan(brief)


def test_a_half_written_file_is_damaged(path: UPath, brief: dict[str, Any]) -> None:
    """Bytes that are no text are not taken for a storage that refuses: no retry mends them."""
    path.write_bytes(b"\xff{}")
    with pytest.raises(PlanError, match=r"plan\.json: it is damaged.*; XCom holds") as caught:
        whole_plan(brief)
    assert not caught.value.retryable


def test_the_plan_of_another_run_is_an_error(path: UPath, brief: dict[str, Any]) -> None:
    """A whole and sound plan of another digest is never taken for the one in XCom."""
    save_plan(path, replace(PLAN, syncs_read=7))
    with pytest.raises(PlanError, match="it is another one: its digest is"):
        whole_plan(brief)


def test_a_location_that_no_library_opens_is_an_error(brief: dict[str, Any]) -> None:
    """The location is named."""
    with pytest.raises(PlanError, match=r"nosuch://lake/plan\.json"):
        whole_plan(brief | {"location": "nosuch://lake/plan.json"})


def test_a_brief_is_never_taken_for_the_whole(path: UPath, brief: dict[str, Any]) -> None:
    """Copied into a plan's file, it is an error that says where the whole one is."""
    named = r"it is a brief, which lacks 0 partitions; the whole is in .*plan\.json"
    with pytest.raises(ValueError, match=named):
        FailoverPlan.from_json(brief)
    path.write_text(json.dumps(brief))
    with pytest.raises(PlanError, match=named):
        read_plan(path)
