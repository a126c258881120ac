"""The tasks of a DAG run on a time axis, with the job's downtimes marked."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from airflow_mm2_offsets.operators.links import ROLLS_BACK, STARTS, STOPS
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef, TaskTry

_SUCCESS = "success"
_NOT_STARTED = frozenset({"none", "scheduled", "queued", "up_for_retry", "restarting"})
"""States before a start. A try that Airflow repeats may still have the times of the one before."""
_PROOF = {STOPS: "proof", STARTS: "batch_id", ROLLS_BACK: "job"}
"""The field of a task's result that shows what it says."""
_RUNNING = frozenset({"runs", "restarted"})
"""What ``RollbackFailoverOperator`` says of a job that runs on the source again."""


_Since: TypeAlias = Callable[[datetime], float]
"""Returns the seconds from the first task's start to a time."""


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
    """From the proof that the job has stopped until it was seen to run again."""

    begin: float
    """Seconds since the first task's start."""
    end: float
    """Where it is not over: the end of the axis."""
    proof: str
    """What showed that the job had stopped; see ``StopSparkStreamingOperator``."""
    is_over: bool
    """False: no task of this run has seen the job run again."""

    @property
    def seconds(self) -> float:
        """How long no job has processed records; so far, if it is not over."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A DAG run as bars."""

    began: datetime
    seconds: float
    """From the first start to the last end; to now, while the run has not ended."""
    bars: Sequence[Bar]
    waiting: Sequence[str]
    """The tasks that have not started, with their states."""
    downtimes: Sequence[Downtime]
    """Empty: the run has stopped no job, a drill let it run on, or there are several jobs."""
    has_ended: bool
    """Whether the run has ended: then nothing watches for the job any more."""


def make_timeline(
    tries: Sequence[TaskTry],
    jobs: Iterable[LinkedTask],
    results: Mapping[TaskRef, Mapping[str, Any]],
    *,
    now: datetime | None,
) -> Timeline | None:
    """Return the timeline of a DAG run; None if no task has started.

    Args:
        tries: In the order of their starts.
        jobs: The tasks that stop, start or roll back the job, by their links; none for a drill,
            whose job runs on.
        results: What these returned.
        now: Where the axis ends while the run has not ended; None once it has.
    """
    started = list(filter(_has_started, tries))
    starts = [each.started for each in started if each.started]
    if not starts:
        return None
    began, counts = min(starts), Counter(each.task for each in tries)
    last = now or max(each.ended or each.started or began for each in started)

    def since(time: datetime) -> float:
        return max(0.0, (time - began).total_seconds())

    return Timeline(
        began=began,
        seconds=since(last),
        bars=[_bar(each, since, last, counts) for each in started],
        waiting=[
            f"{_label(each, counts)} ({each.state.replace('_', ' ')})"
            for each in tries
            if not _has_started(each)
        ],
        downtimes=list(_downtimes(_moments(tries, jobs, results, since), since(last))),
        has_ended=now is None,
    )


def _has_started(each: TaskTry) -> bool:
    return each.started is not None and each.state not in _NOT_STARTED


def _bar(each: TaskTry, since: _Since, last: datetime, counts: Counter[TaskRef]) -> Bar:
    return Bar(
        label=_label(each, counts),
        state=each.state,
        begin=since(each.started or last),
        end=since(each.ended or last),
        is_running=each.ended is None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """A task of the run has shown that the job stands still, or runs."""

    at: float
    runs: bool
    proof: str = ""


def _moments(
    tries: Iterable[TaskTry],
    jobs: Iterable[LinkedTask],
    results: Mapping[TaskRef, Mapping[str, Any]],
    since: _Since,
) -> list[_Moment]:
    """Return what the tasks have shown, by time; nothing of several jobs, which move apart."""
    kinds = {each.task: each.job for each in jobs if each.job}
    if len({task.map_index for task, kind in kinds.items() if kind == STOPS}) > 1:
        return []
    moments = []
    for each in tries:
        kind = kinds.get(each.task, "")
        if kind not in _PROOF or each.state != _SUCCESS or each.ended is None:
            continue
        result = results.get(each.task, {})
        # Airflow deletes the XComs of older tries: their success has to do. A task that a user has
        # marked as success has returned nothing, and shows nothing.
        if each.is_last and _PROOF[kind] not in result:
            continue
        if kind == ROLLS_BACK and each.is_last and result["job"] not in _RUNNING:
            continue
        proof = str(result.get("proof", "")) if each.is_last else ""
        moments.append(_Moment(at=since(each.ended), runs=kind != STOPS, proof=proof))
    return sorted(moments, key=lambda moment: moment.at)


def _downtimes(moments: Iterable[_Moment], last: float) -> Iterator[Downtime]:
    """Yield a downtime from each stop to the next sign that the job runs, whatever is between."""
    stop: _Moment | None = None
    for moment in moments:
        if moment.runs and stop is not None:
            yield Downtime(begin=stop.at, end=moment.at, proof=stop.proof, is_over=True)
            stop = None
        elif not moment.runs and stop is None:
            stop = moment
    if stop is not None:
        yield Downtime(begin=stop.at, end=last, proof=stop.proof, is_over=False)


def _label(each: TaskTry, counts: Counter[TaskRef]) -> str:
    """Return the task's id, with what tells it from others of that id."""
    mapped = f" [{each.task.map_index}]" if each.task.map_index >= 0 else ""
    numbered = f", try {each.try_number}" if counts[each.task] > 1 else ""
    return f"{each.task.task_id}{mapped}{numbered}"
