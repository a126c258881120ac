"""docs/versions.md: its table is what the sessions of noxfile.py have written."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.versions import PAGE, Ran, VersionResult, committed, table, with_table

RESULT = VersionResult(
    what="Airflow",
    version="3.1.8",
    python="3.11",
    ran=(Ran(what="unit tests", tests=3700, failed=0),),
    date="2026-11-23",
)
JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="{errors}" failures="{failures}"
skipped="3" tests="10" time="1.5" timestamp="2026-11-23T00:00:00" hostname="vm"/></testsuites>
"""


def test_the_page_shows_the_committed_results() -> None:
    """A row that was edited by hand, or a result without its row, is found."""
    page = PAGE.read_text()
    results = committed()
    assert results
    assert with_table(page, table(results.values())) == page


def test_every_version_passed() -> None:
    """What README promises has run without a failure."""
    assert [str(each) for each in committed().values() if not each.passed] == []


@pytest.mark.parametrize(
    ("errors", "failures", "passed"), [(0, 0, True), (1, 0, False), (0, 2, False)]
)
def test_failures_and_errors_fail_a_version(
    tmp_path: Path, errors: int, failures: int, *, passed: bool
) -> None:
    """Skipped tests are not counted as run."""
    report = tmp_path / "report.xml"
    report.write_text(JUNIT.format(errors=errors, failures=failures))
    ran = Ran.read("unit tests", report)
    assert (ran.tests, ran.failed) == (7, errors + failures)
    assert ran.passed is passed
    assert replace(RESULT, ran=(ran,)).passed is passed


def test_a_run_without_a_report_has_failed(tmp_path: Path) -> None:
    """Pytest may have died; a session that ran nothing proves nothing either."""
    assert not Ran.read("unit tests", tmp_path / "report.xml").passed
    assert not Ran(what="unit tests", tests=0, failed=0).passed
    assert not replace(RESULT, ran=()).passed


def test_rows_are_in_the_order_of_their_versions() -> None:
    """3.10 follows 3.9."""
    versions = ("3.10", "3.9", "3.9.1")
    rows = table(replace(RESULT, version=version) for version in versions).splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["3.9", "3.9.1", "3.10"]
