"""What the report of a move has, as a document and as Markdown."""

import json
from typing import Any

from airflow_mm2_offsets.core.report import MoveReport, Step, order_steps

NEXT = "orders was not moved."


def _report(**values: Any) -> MoveReport:
    return MoveReport(
        **{
            "status": {"job": "orders", "state": "given up", "next": NEXT},
            "lines": ["Job orders (planned, east -> west): given up.", f"Next: {NEXT}"],
            "run": {"dag_id": "d", "run_id": "r", "logical_date": None, "triggered by": "ann"},
            "steps": (
                Step(task_id="a.check", state="success", seconds=2.0),
                Step(task_id="a.approve", state="failed"),
                Step(task_id="a.start_target", state="upstream_failed"),
            ),
            **values,
        }
    )


def test_a_report_is_json_and_markdown() -> None:
    """With its steps, who triggered it, and what could not be found out."""
    report = _report(
        summaries={"Forecast": "a|b"},
        results={"verified": {"differences": 0}},
        remarks=("the DAG run: gone",),
    )
    document = json.loads(json.dumps(report.to_json()))
    assert (document["schema_version"], document["outcome"]) == (2, "given up")
    assert document["steps"][0] == {"task_id": "a.check", "state": "success", "seconds": 2.0}
    assert document["verified"] == {"differences": 0}
    text = report.to_markdown()
    for line in (
        "# Job orders: given up",
        "- Job orders (planned, east -> west): given up.",
        "| triggered by | ann |",
        "| a.check | success | 2.0 |",
        "| a.approve | failed |  |",
        "## Forecast\n\n```text\na|b\n```",
        "- the DAG run: gone",
    ):
        assert line in text


def test_only_a_task_that_failed_itself_is_named() -> None:
    """Not those that Airflow did not run for that."""
    assert _report().failed == ("a.approve",)


def test_what_comes_next_is_said_once() -> None:
    """The roll-back often says the same as the status."""
    assert _report(rollback={"next": NEXT}).next == (NEXT,)
    assert _report(rollback={"next": "The run x starts it."}).next == (NEXT, "The run x starts it.")
    assert "## Rolled back\n\nThe run x" in _report(rollback={"next": "The run x"}).to_markdown()


def test_steps_are_in_the_order_of_a_move() -> None:
    """Also with a group's prefix; tasks of the user's own come last."""
    names = ("g.start_target", "mine", "g.check", "g.hand_over", "g.approve")
    steps = tuple(Step(task_id=name, state="x") for name in names)
    assert [step.task_id for step in order_steps(steps)] == [
        *("g.check", "g.approve", "g.hand_over", "g.start_target", "mine"),
    ]
