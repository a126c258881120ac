"""What templates show: people's words for numbers, and never a value's markup."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_mm2_offsets.plugins.page import rendering
from airflow_mm2_offsets.plugins.page.plan_table import Filter, Sort, TableQuery, table_page
from airflow_mm2_offsets.plugins.page.records import TaskRef
from airflow_mm2_offsets.plugins.page.rendering import ago, clock, duration, render, reread, span

MARKUP = "<script>alert(1)</script>"
TEMPLATES = Path(rendering.__file__).parent / "templates"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (59.6, "60 s"),
        (125, "2 min 5 s"),
        (7_500, "2 h 5 min"),
        (200_000, "2 days"),
        (None, "unknown"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float | None, shown: str) -> None:
    """With two units at most."""
    assert duration(seconds) == shown


def test_times() -> None:
    """Ages of times and of ISO texts; a text that is no time is shown as it is."""
    before = datetime.now(UTC) - timedelta(minutes=3)
    assert ago(before).startswith("3 min")
    assert ago(before.isoformat()).startswith("3 min")
    assert ago("yesterday") == "yesterday"
    assert clock(0) == "1970-01-01 00:00:00 UTC"
    assert span(0, 60_000) == ("00:00:00", "00:01:00")
    assert span(0, 3 * 86_400_000) == ("1970-01-01", "1970-01-04")
    assert reread(None) == "unknown"


def test_a_time_that_no_calendar_has() -> None:
    """Producers choose the timestamps of records."""
    assert clock(10**17) == "unknown"
    assert span(0, 10**17) == ("1970-01-01", "unknown")
    assert ago("2026-01-01T00:00:00") == "unknown"  # without a zone


def test_values_are_escaped() -> None:
    """In text and in attributes; a field that an older release lacks is left empty."""
    task = TaskRef(dag_id=MARKUP, run_id='"><b>', task_id=MARKUP)
    row = {
        "topic": MARKUP,
        "partition": 0,
        "target_topic": MARKUP,
        "position": "1",
        "target": None,
        "low": None,
        "high": None,
        "status": "exact",
        "reason": MARKUP,
        "basis": MARKUP,
        "max_reread": 0,
        "fallback": None,
        "shift": None,
    }
    query = TableQuery(text=MARKUP)
    html = bytes(
        render(
            "plan",
            plan={"verdict": "ready", "strategy": "safe", "totals": {"partitions": 1}},
            why_brief=MARKUP,
            table=table_page([row], query),
            query=query,
            task=task,
            filters=list(Filter),
            sorts=list(Sort),
        ).body
    ).decode()
    assert html.count("<script") == 1  # our own
    assert "<b>" not in html
    assert "&lt;script&gt;alert(1)" in html


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda each: each.name)
def test_templates_need_no_inline_script_or_style(template: Path) -> None:
    """The pages' policy allows none, and no template marks a value as safe."""
    text = template.read_text()
    for forbidden in ("|safe", "| safe", "style=", "onclick", "onload", "javascript:", "http"):
        assert forbidden not in text
    assert text.count("<script") == (1 if template.name == "base.html" else 0)
