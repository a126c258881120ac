"""Whose the seconds of a failover were."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from demo.timeline import AIRFLOW, KAFKA, OURS, SPARK, Interval, Timeline, read_intervals
from stack.airflow_api import TaskRun

BEGIN = datetime(2026, 11, 22, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def run(task_id: str, ended: float | None, state: str = "success") -> TaskRun:
    end = None if ended is None else at(ended)
    return TaskRun(task_id=task_id, state=state, seconds=1.0, pid=None, ended=end)


def timeline(first_record: float = 40.0) -> Timeline:
    return Timeline.of(
        [
            run("wait_started", 50),
            run("check", 10),
            run("verify", None),
            run("approve", 12, "skipped"),
        ],
        {
            "check": [Interval(begin=at(4), end=at(9), owner=OURS)],
            "wait_started": [
                Interval(begin=at(11), end=at(12), owner=OURS),
                Interval(begin=at(14), end=at(48), owner=SPARK),
            ],
        },
        triggered=BEGIN,
        first_record=at(first_record),
    )


def test_what_is_nobody_elses_is_airflows() -> None:
    """A step begins where the one before ended; the last one counts up to the first record."""
    steps = timeline().steps
    assert list(steps) == ["check", "wait_started"]
    assert (steps["check"][OURS], steps["check"][AIRFLOW]) == (5, 5)
    last = steps["wait_started"]
    assert (last[OURS], last[SPARK], last[AIRFLOW]) == (1, 26, 3)


@pytest.mark.parametrize("first_record", [7.0, 40.0, 49.5, 60.0])
def test_the_sum_is_the_time_to_the_first_record(first_record: float) -> None:
    """No second is counted twice, and none is left out, wherever the first record comes."""
    assert sum(timeline(first_record).totals.values()) == pytest.approx(first_record)


def test_the_table_has_a_column_for_each_owner_with_a_share() -> None:
    """An owner without any seconds has no column."""
    header, *_, total = str(timeline()).splitlines()[1:]
    assert header.split() == ["step", AIRFLOW, *OURS.split(), SPARK, "sum"]
    assert total.split() == ["in", "all", "8.0", "6.0", "26.0", "40.0"]
    assert KAFKA not in header


def log(path: Path, *events: tuple[float, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [
        json.dumps({"timestamp": at(time).isoformat(), "event": event}) for time, event in events
    ]
    path.write_text("\n".join(["a line of another program", *lines]))


def test_intervals_are_read_from_the_logs(tmp_path: Path) -> None:
    """A deferred task executes twice and waits in between; what prepares it is not counted.

    A group of lines that the operator itself closes is part of its execution.
    """
    folder = tmp_path / "task_id=wait_replicated"
    execution = ("::group::Pre Execute", "::endgroup::", "::group::Post Execute", "::endgroup::")
    first = zip((0, 2, 3, 4), execution, strict=True)
    second = zip((20, 22, 25, 26), execution, strict=True)
    own_group = (24, "::endgroup::")
    log(folder / "attempt=1.log", *first, *sorted([*second, own_group]))
    log(
        folder / "attempt=1.log.trigger.7.log",
        (5, "trigger mm2_failover/run/wait_replicated/-1/1 (ID 7) starting"),
        (6, "Trigger waits"),
        (19, "Trigger fired event"),
        (19, "trigger completed"),
    )
    found = read_intervals(tmp_path, run("wait_replicated", 26))
    assert found == [
        Interval(begin=at(2), end=at(3), owner=OURS),
        Interval(begin=at(22), end=at(25), owner=OURS),
        Interval(begin=at(5), end=at(19), owner=KAFKA),
    ]


def test_a_task_without_logs_has_no_intervals(tmp_path: Path) -> None:
    """All its time is Airflow's."""
    assert read_intervals(tmp_path, run("check", 3)) == []
