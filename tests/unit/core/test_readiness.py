"""The report's verdict, its forms, and the page that lists its checks."""

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import NEXT_STEPS, CheckName

PAGE = Path(__file__).parents[3] / "docs" / "readiness.md"

CHECKS = st.builds(
    ReadinessCheck,
    name=st.sampled_from(CheckName),
    status=st.sampled_from(CheckStatus),
    value=st.text(),
    remedy=st.text(),
    threshold=st.none() | st.text(),
)


def _report(*checks: ReadinessCheck) -> ReadinessReport:
    return ReadinessReport(checks=checks, policy=PLANNED, created_at="2026-11-22T20:00:00+00:00")


def _check(status: CheckStatus, value: str = "x", remedy: str = "") -> ReadinessCheck:
    return ReadinessCheck(name=CheckName.HOLES, status=status, value=value, remedy=remedy)


@given(st.lists(CHECKS))
def test_the_verdict_follows_from_the_worst_status(checks: list[ReadinessCheck]) -> None:
    """Failed makes it not ready; a warning or what is unknown is told; all else is ready."""
    report = _report(*checks)
    found = {check.status for check in checks}
    if CheckStatus.FAILED in found:
        assert report.verdict == "not_ready"
    elif found & {CheckStatus.WARNING, CheckStatus.UNKNOWN}:
        assert report.verdict == "ready_with_warnings"
    else:
        assert report.verdict == "ready"
    assert bool(report.problems) == (CheckStatus.FAILED in found)
    written = json.loads(json.dumps(report.to_json()))
    assert sum(written["totals"].values()) == len(checks)


@given(st.lists(CHECKS, min_size=1))
def test_a_markdown_table_has_a_row_for_each_check(checks: list[ReadinessCheck]) -> None:
    """Whatever a value holds: bars and line ends do not break the table."""
    rows = _report(*checks).to_markdown().split("\n")[4:]
    assert len(rows) == len(checks)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_a_failed_check_always_says_what_to_do() -> None:
    """Its own step, or that of its name; where all is well there is nothing to do."""
    assert _check(CheckStatus.FAILED, remedy="copy it").next_step == "copy it"
    assert _check(CheckStatus.FAILED).next_step == NEXT_STEPS[CheckName.HOLES]
    assert _check(CheckStatus.OK).next_step == ""
    assert NEXT_STEPS.keys() == set(CheckName)


def test_the_summary_reads_as_a_table() -> None:
    """The verdict first, then each check, then what to do."""
    text = _report(_check(CheckStatus.OK, "none"), _check(CheckStatus.FAILED, "4\nlost")).summary()
    head, _, columns, first, second, _, title, step = text.splitlines()
    assert head == "NOT READY for planned, as of 2026-11-22T20:00:00+00:00: 1 ok, 1 failed"
    assert columns.split() == ["check", "status", "value"]
    assert [first.split(), second.split()] == [
        ["holes", "ok", "none"],
        ["holes", "failed", "4", "lost"],
    ]
    assert (title, step) == ("What to do", f"holes: {NEXT_STEPS[CheckName.HOLES]}")


def test_equal_problems_are_listed_once() -> None:
    """Two checks may find the same thing."""
    failed = _check(CheckStatus.FAILED, "4 lost", "copy them")
    assert _report(failed, failed).problems == ["4 lost; copy them"]


def test_the_page_lists_every_check_in_order() -> None:
    """docs/readiness.md has a row for each name, with what it asks and what to do."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|(.*)\| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [name for name, *_ in rows] == list(CheckName)
