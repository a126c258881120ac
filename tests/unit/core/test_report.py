"""What a failover's report says of each way in which one ends."""

import json
from typing import Any

import pytest

from airflow_mm2_offsets.core.report import (
    NEXT,
    FailoverReport,
    Outcome,
    Step,
    order_steps,
    outcome,
)

BEFORE, AFTER = "failed_before_handover", "failed_after_handover"
IN_STOP = "failed_in_stop"
BACK = {"done": "rolled_back", "next": "The job may run."}
NONE = {"done": "nothing_to_undo", "next": "There was nothing to undo."}


def _steps(**states: str) -> tuple[Step, ...]:
    return tuple(Step(task_id=name, state=state) for name, state in states.items())


@pytest.mark.parametrize(
    ("mode", "states", "is_handed_over", "rollback", "expected"),
    [
        ("planned", {"wait_started": "success"}, True, None, "moved"),
        ("drill", {"wait_started": "success", "tear_down": "success"}, False, None, "drilled"),
        ("drill", {"tear_down": "failed"}, False, None, "failed_drill"),
        ("planned", {"check": "failed", "roll_back": "success"}, False, NONE, "failed_before_stop"),
        ("planned", {"stop_source": "failed", "roll_back": "success"}, False, BACK, "rolled_back"),
        ("planned", {"stop_source": "success", "approve": "failed"}, False, None, BEFORE),
        ("planned", {"stop_source": "success", "translate": "failed", "roll_back": "success"},
         False, {"done": "kept"}, BEFORE),
        ("planned", {"stop_source": "success", "translate": "failed", "roll_back": "failed"},
         False, BACK, BEFORE),
        ("planned", {"submit_target": "failed", "roll_back": "failed"}, True, None, AFTER),
        ("disaster", {"wait_started": "success", "verify": "failed"}, True, None, AFTER),
        ("planned", {"cancel_source": "failed", "roll_back": "success"}, False, NONE, IN_STOP),
        ("planned", {"cancel_source": "success", "stop_source": "failed"}, False, None, IN_STOP),
        ("planned", {"cancel_source": "success", "stop_source": "success", "forecast": "failed"},
         False, None, BEFORE),
        ("planned", {"hand_over": "success", "submit_target": "failed"}, None, None, AFTER),
        ("planned", {"check": "skipped"}, False, None, "unfinished"),
        ("planned", {}, False, None, "unfinished"),
    ],
)  # fmt: skip
def test_outcomes(
    mode: str,
    states: dict[str, str],
    is_handed_over: bool,  # noqa: FBT001
    rollback: dict[str, str] | None,
    expected: str,
) -> None:
    """Each has a sentence on what to do next."""
    found = outcome(mode, _steps(**states), is_handed_over=is_handed_over, rollback=rollback)
    assert found == expected
    assert NEXT[found]


def _report(**values: Any) -> FailoverReport:
    return FailoverReport(
        **{
            "mode": "planned",
            "outcome": Outcome.MOVED,
            "run": {"dag_id": "d", "run_id": "r", "logical_date": None, "triggered_by": "ann"},
            "folders": {"source": "s3://eu/orders", "target": "s3://us/orders"},
            "steps": (Step(task_id="a.check", state="success", seconds=2.0),),
            **values,
        }
    )


def test_a_report_is_json_and_markdown() -> None:
    """With numbers, steps, who triggered and who approved; parts that are missing are empty."""
    at_risk = {"at_least": "0", "at_most": None}
    report = _report(
        results={
            "stopped": {"proof": "acknowledged"},
            "plan": {"totals": {"exact": 2, "max_reread": None}, "partitions": []},
            "forecast": {"totals": {"at_risk": at_risk}, "summary": "a|b"},
            "approval": {"why": "ann has approved it"},
            "started": None,
        },
        remarks=("the lock: gone",),
    )
    document = json.loads(json.dumps(report.to_json()))
    assert (document["schema_version"], document["outcome"]) == (1, "moved")
    assert document["steps"] == [{"task_id": "a.check", "state": "success", "seconds": 2.0}]
    assert document["numbers"]["forecast"] == {"at_risk": at_risk}
    assert (document["stopped"], document["started"]) == ({"proof": "acknowledged"}, None)
    text = report.to_markdown()
    for line in (
        "# Failover (planned): moved",
        "| triggered by | ann |",
        "| approval | ann has approved it |",
        "| plan: max reread | unknown |",
        "| forecast: at risk | 0 to unknown |",
        "| a.check | success | 2.0 |",
        "```text\na|b\n```",
        "- the lock: gone",
    ):
        assert line in text
    assert "logical date" not in text


def test_a_dry_run_lists_what_it_would_do() -> None:
    """And says that it has done nothing of it."""
    report = _report(outcome=Outcome.UNFINISHED, intents=("It would stop the job.",))
    assert report.next == ("This was a dry run: nothing was changed.",)
    assert "- It would stop the job." in report.to_markdown()


def test_what_the_roll_back_says_comes_next() -> None:
    """Beside the sentence of the outcome, unless there was nothing to undo."""
    for rollback, count in ((BACK, 2), (NONE, 1)):
        report = _report(outcome=Outcome.ROLLED_BACK, results={"rollback": rollback})
        assert len(report.next) == count


def test_steps_are_in_the_order_of_a_failover() -> None:
    """Also with a group's prefix; tasks of the user's own come last."""
    steps = _steps(**{"g.submit_target": "x", "mine": "x", "g.check": "x", "g.roll_back": "x"})
    assert [step.task_id for step in order_steps(steps)] == [
        *("g.check", "g.submit_target", "g.roll_back", "mine"),
    ]
