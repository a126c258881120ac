"""Whose the seconds were, from the trigger of a failover to the first record on the target."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from airflow_mm2_offsets.core.summary import table
from stack.airflow_api import TaskRun

AIRFLOW, OURS, SPARK, KAFKA, PEOPLE = "Airflow", "this package", "Spark", "Kafka", "people"
OWNERS = (AIRFLOW, OURS, SPARK, KAFKA, PEOPLE)
AWAITED: Mapping[str, str] = {
    "stop_source": SPARK,
    "wait_replicated": KAFKA,
    "approve": PEOPLE,
    "wait_started": SPARK,
    "tear_down": SPARK,
}
"""What the trigger of each deferred task waits for."""
PREPARE = "::group::Pre Execute"
BEGIN_EXECUTE, END_EXECUTE = "::endgroup::", "::group::Post Execute"
BEGIN_WAIT, END_WAIT = " starting", "Trigger fired event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A time that is somebody's."""

    begin: datetime
    end: datetime
    owner: str

    def seconds(self, begin: datetime, end: datetime) -> float:
        """Return how many of its seconds lie between two times."""
        return max(0.0, (min(self.end, end) - max(self.begin, begin)).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The seconds of each step by owner; their sum is the time to the first record."""

    steps: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(
        cls,
        tasks: Iterable[TaskRun],
        intervals: Mapping[str, Iterable[Interval]],
        *,
        triggered: datetime,
        first_record: datetime,
    ) -> Self:
        """Divide the time: what is nobody else's was Airflow's, between the tasks and within them.

        Args:
            tasks: The tasks of the run. A step lasts from the end of the one before to its own.
            intervals: By task, when it executed and when its trigger waited.
            triggered: When the run was asked for.
            first_record: When the target job had put out its first record.
        """
        steps: dict[str, Mapping[str, float]] = {}
        begin = triggered
        for task in sorted(
            (each for each in tasks if each.ended and each.state != "skipped"),
            key=lambda each: each.ended or triggered,
        ):
            end = min(task.ended or begin, first_record)
            if end > begin:
                steps[task.task_id] = _divide(begin, end, intervals.get(task.task_id, ()))
                begin = end
        if first_record > begin:
            steps["first record"] = {SPARK: (first_record - begin).total_seconds()}
        return cls(steps=steps)

    @property
    def totals(self) -> dict[str, float]:
        """The seconds of each owner."""
        totals = dict.fromkeys(OWNERS, 0.0)
        for seconds in self.steps.values():
            for owner, took in seconds.items():
                totals[owner] += took
        return totals

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"steps": {step: dict(by) for step, by in self.steps.items()}, **self.totals}

    def __str__(self) -> str:
        """Return a table: a row for each step, a column for each owner."""
        owners = [owner for owner in OWNERS if round(self.totals[owner], 1)]
        rows = [
            (step, *_cells(by, owners))
            for step, by in {**self.steps, "in all": self.totals}.items()
        ]
        title = "From the trigger to the first record on the target, in seconds:"
        return f"{title}\n{table(('step', *owners, 'sum'), rows)}"


def _divide(begin: datetime, end: datetime, intervals: Iterable[Interval]) -> dict[str, float]:
    seconds = dict.fromkeys(OWNERS, 0.0)
    for each in intervals:
        seconds[each.owner] += each.seconds(begin, end)
    seconds[AIRFLOW] += (end - begin).total_seconds() - sum(seconds.values())
    return seconds


def _cells(by: Mapping[str, float], owners: Iterable[str]) -> Iterator[str]:
    yield from (f"{by.get(owner, 0.0):.1f}" for owner in owners)
    yield f"{sum(by.values()):.1f}"


def read_intervals(folder: Path, task: TaskRun) -> list[Interval]:
    """Read from a task's logs when its operator executed, and when its trigger waited.

    Args:
        folder: The logs of the run.
        task: The task.
    """
    logs = sorted((folder / f"task_id={task.task_id}").glob("attempt=*.log*"))
    return [interval for log in logs for interval in _intervals(log, task)]


def _intervals(log: Path, task: TaskRun) -> Iterator[Interval]:
    is_wait = ".trigger." in log.name
    begins, ends = (BEGIN_WAIT, END_WAIT) if is_wait else (BEGIN_EXECUTE, END_EXECUTE)
    owner = AWAITED.get(task.task_id, OURS) if is_wait else OURS
    begin: datetime | None = None
    preparing = is_wait
    for at, event in _events(log):
        if event == PREPARE:
            preparing = True
        elif preparing and event.endswith(begins):
            begin, preparing = at, is_wait
        elif begin is not None and event.startswith(ends):
            yield Interval(begin=begin, end=at, owner=owner)
            begin = None


def _events(log: Path) -> Iterator[tuple[datetime, str]]:
    for line in log.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
            yield datetime.fromisoformat(entry["timestamp"]), str(entry["event"])
        except (ValueError, KeyError, TypeError):
            continue  # a line of another program
