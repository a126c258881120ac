"""The tasks of a DAG run on a time axis, with the job's downtime marked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_mm2_offsets.plugins.page.records import TaskTry

STOPS = frozenset({"StopSparkStreamingOperator", "SparkStoppedSensor"})
"""Operators that end once the source job has provably stopped."""
STARTS = frozenset({"SparkStartedSensor"})
"""Operators that end once the target job has committed its first batch."""
_SUCCESS = "success"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One try of a task."""

    label: str
    """The task, and which try and map index where there are several."""
    state: str
    begin: float
    """Seconds since the first task's start."""
    end: float
    is_running: bool

    @property
    def seconds(self) -> float:
        """How long it took; so far, if it runs."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Downtime:
    """From the proof that the source job has stopped to the first batch on the target."""

    begin: float
    """Seconds since the first task's start."""
    end: float
    is_over: bool
    """False: no job has committed a batch on the target yet."""

    @property
    def seconds(self) -> float:
        """How long no job has processed records."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A DAG run as bars."""

    began: datetime
    seconds: float
    """From the first start to the last end, or to now."""
    bars: Sequence[Bar]
    waiting: Sequence[str]
    """The tasks that have not started, or were skipped, with their states."""
    downtime: Downtime | None
    """None: the run stopped no job, or a drill let it run on."""


def make_timeline(tries: Iterable[TaskTry], now: datetime, *, is_drill: bool) -> Timeline | None:
    """Return the timeline of the tries of a DAG run's tasks; None if no task has started.

    Args:
        tries: In the order of their starts.
        now: Where the bars of running tasks end.
        is_drill: The job ran on: there was no downtime.
    """
    tries = list(tries)
    begun = [each for each in tries if each.started is not None]
    starts = [each.started for each in begun if each.started is not None]
    if not starts:
        return None
    began = min(starts)
    is_running = any(each.ended is None for each in begun)
    last = now if is_running else max(each.ended for each in begun if each.ended is not None)
    total = (last - began).total_seconds()

    def bars() -> Iterator[Bar]:
        for each in begun:
            if each.started is not None:
                ended = each.ended or now
                yield Bar(
                    label=_label(each, tries),
                    state=each.state or "none",
                    begin=(each.started - began).total_seconds(),
                    end=max(0.0, (ended - began).total_seconds()),
                    is_running=each.ended is None,
                )

    return Timeline(
        began=began,
        seconds=total,
        bars=list(bars()),
        waiting=[
            f"{_label(each, tries)} ({each.state or 'not started'})"
            for each in tries
            if each.started is None
        ],
        downtime=None if is_drill else _downtime(begun, began, total),
    )


def _downtime(tries: Sequence[TaskTry], began: datetime, total: float) -> Downtime | None:
    """Return from the last stop's end to the first start's end after it.

    Several jobs of a fleet have no downtime together: None.
    """
    stopped = _ends(tries, STOPS)
    jobs = {each.task.map_index for each in tries if each.operator in STOPS}
    if not stopped or len(jobs) > 1:
        return None
    begin = max(stopped)
    started = [each for each in _ends(tries, STARTS) if each >= begin]
    return Downtime(
        begin=(begin - began).total_seconds(),
        end=(min(started) - began).total_seconds() if started else total,
        is_over=bool(started),
    )


def _ends(tries: Iterable[TaskTry], operators: frozenset[str]) -> list[datetime]:
    return [
        each.ended
        for each in tries
        if each.operator in operators and each.state == _SUCCESS and each.ended is not None
    ]


def _label(each: TaskTry, tries: Sequence[TaskTry]) -> str:
    """Return the task's id, with what tells it from others of that id."""
    same = [other for other in tries if other.task == each.task]
    mapped = f" [{each.task.map_index}]" if each.task.map_index >= 0 else ""
    tried = f", try {each.try_number}" if len(same) > 1 else ""
    return f"{each.task.task_id}{mapped}{tried}"
