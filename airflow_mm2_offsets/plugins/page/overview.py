"""What the page shows of jobs and moves: by their journals, and by what tasks have found."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from airflow_mm2_offsets.core.policy import DRILL
from airflow_mm2_offsets.core.readiness import CheckStatus
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.overview import JobOverview, UnreadJob
from airflow_mm2_offsets.moves.status import MoveStatus
from airflow_mm2_offsets.operators.links import airflow_address
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef, TaskTry

MOST_RUNS: Final = 20
"""How many of a job's newest tasks are looked at for one that returned something."""
_WORST_FIRST: Final = (
    *(CheckStatus.FAILED, CheckStatus.WARNING, CheckStatus.UNKNOWN, CheckStatus.OK),
    CheckStatus.NOT_ASKED,
)
_FAILED: Final = frozenset({"failed", "up_for_retry"})
_NOT_SHOWN: Final = frozenset({"skipped", "removed"})
_REPORT: Final = "report"
"""The task that fails because others have: its message is no cause."""
_ASKED_IN: Final = re.compile(r"(?P<task_id>[^\[]+)(\[(?P<map_index>\d+)\])?")

ReadResults: TypeAlias = Callable[[Collection[TaskRef]], Mapping[TaskRef, Mapping[str, Any]]]
"""Returns what tasks returned."""
RunName: TypeAlias = tuple[str, str]
"""DAG id and run id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """One readiness check."""

    status: str
    """See ``core.readiness.CheckStatus``."""
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestTask:
    """The newest task of one kind and one job that returned something."""

    task: LinkedTask
    result: Mapping[str, Any]
    newer_has_no_result: bool
    """Whether a newer one has returned nothing: it was skipped, or failed before its end."""

    def line_of(self, name: str) -> CheckLine | None:
        """Return the worst line of a check of a readiness report; None where it has none."""
        lines = [
            CheckLine(status=str(check.get("status")), value=str(check.get("value")))
            for check in _mappings(self.result.get("checks"))
            if check.get("name") == name
        ]
        return min(lines, key=lambda line: _place(line.status), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """What is known of one job."""

    overview: JobOverview | UnreadJob
    readiness: LatestTask | None = None
    drill: LatestTask | None = None

    @property
    def job(self) -> SparkJob:
        """The job."""
        return self.overview.job

    @property
    def problem(self) -> str:
        """Why its journal was not read; empty where it was."""
        return self.overview.problem if isinstance(self.overview, UnreadJob) else ""

    @property
    def lag(self) -> CheckLine | None:
        """How far MirrorMaker 2 was behind, as the last readiness report has it."""
        return self.readiness.line_of(CheckName.REPLICATION_LAG) if self.readiness else None


def make_rows(
    overviews: Sequence[JobOverview | UnreadJob],
    readiness: Iterable[LinkedTask],
    reports: Iterable[LinkedTask],
    read: ReadResults,
) -> list[JobRow]:
    """Return a row for each job.

    Args:
        overviews: The jobs that the user may see, by their journals.
        readiness: The tasks that wrote readiness reports, the newest first.
        reports: The tasks that reported moves and drills, the newest first.
        read: Is asked for the newest of each job, and for older ones where those returned nothing.
    """
    names = {each.job.name for each in overviews}
    ready = _newest(readiness, names, read)
    drills = _newest((each for each in reports if each.policy == DRILL.name), names, read)
    return [
        JobRow(overview=each, readiness=ready.get(each.job.name), drill=drills.get(each.job.name))
        for each in overviews
    ]


def _newest(
    tasks: Iterable[LinkedTask], names: Collection[str], read: ReadResults
) -> dict[str, LatestTask]:
    """Return the newest task of each job that returned something."""
    of_job: dict[str, list[LinkedTask]] = {}
    for each in tasks:
        if each.job in names and not each.is_dry_run:
            of_job.setdefault(each.job, []).append(each)
    found: dict[str, LatestTask] = {}
    for number in range(MOST_RUNS):
        asked = [
            own[number] for name, own in of_job.items() if name not in found and number < len(own)
        ]
        if not asked:
            break
        results = read([each.task for each in asked])
        found |= {
            each.job: LatestTask(
                task=each, result=results[each.task], newer_has_no_result=number > 0
            )
            for each in asked
            if each.task in results
        }
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveView:
    """A move's status, with the places in Airflow that it names; each is an address, or empty."""

    status: MoveStatus
    run: str = ""
    """The DAG run that moves the job."""
    job_run: str = ""
    """The job's own run, which the move has started."""
    answer: str = ""
    """Where a person answers."""
    log: str = ""
    """The log of the task whose failure is the cause."""


def name_of_run(status: MoveStatus) -> RunName:
    """Return the DAG run that moves a job; a person's command is none, and has no such run."""
    dag_id, _, run_id = status.run.partition(":")
    return dag_id, run_id


def runs_of(statuses: Iterable[MoveStatus]) -> set[RunName]:
    """Return the DAG runs that statuses name: Airflow may have deleted them, or be another one."""
    runs: set[RunName] = set()
    for each in statuses:
        runs |= {name_of_run(each), (each.job_dag or "", each.job_run or "")}
    return {(dag_id, run_id) for dag_id, run_id in runs if dag_id and run_id}


def make_view(
    status: MoveStatus, known: Collection[RunName], failure: "Failure | None" = None
) -> MoveView:
    """Return a status with its places in Airflow.

    Args:
        status: The move's.
        known: The DAG runs that Airflow has.
        failure: Why the run does not go on.
    """
    run, job_run = name_of_run(status), (status.job_dag or "", status.job_run or "")
    asked = _ASKED_IN.fullmatch(status.asked_in or "")
    answer = ""
    if asked and run in known:
        index = int(asked["map_index"] or -1)
        answer = f"{airflow_address(*run, asked['task_id'], index)}/required_actions"
    return MoveView(
        status=status.with_cause(failure.text) if failure else status,
        run=airflow_address(*run) if run in known else "",
        job_run=airflow_address(*job_run) if job_run in known else "",
        answer=answer,
        log=log_of(failure.task) if failure else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A task that has failed, or that Airflow tries again."""

    task: TaskTry
    message: str
    """Its error; empty where only its log has it."""

    @property
    def text(self) -> str:
        """Task and message as one sentence."""
        name = label_of(self.task)
        return f"{name}: {self.message}" if self.message else f"{name} failed; its log says why"


def find_failure(tries: Iterable[TaskTry], problems: Mapping[TaskRef, str]) -> Failure | None:
    """Return the first task of a run that has failed: what comes after it failed because of it."""
    failed = [
        each
        for each in tries
        if each.is_last
        and each.state in _FAILED
        and each.task.task_id.rpartition(".")[2] != _REPORT
    ]
    last = {each.task: each.ended.timestamp() if each.ended else float("inf") for each in failed}
    first = min(failed, key=lambda each: last[each.task], default=None)
    if first is None:
        return None
    return Failure(task=first, message=problems.get(first.task, ""))


def tries_of_job(tries: Iterable[TaskTry], linked: Iterable[LinkedTask]) -> list[TaskTry]:
    """Return the tries that concern one job: its own tasks, and those that all jobs share.

    Args:
        tries: Of a DAG run.
        linked: The job's tasks that have ended; the others are in the same mapped groups.
    """
    groups = {_group(each.task) for each in linked}
    return [each for each in tries if each.task.map_index < 0 or _group(each.task) in groups]


def shown_tries(tries: Iterable[TaskTry]) -> list[TaskTry]:
    """Return the tries without those of tasks that were skipped."""
    return [each for each in tries if each.state not in _NOT_SHOWN]


def label_of(each: TaskTry) -> str:
    """Return a task's id, with its map index if it is mapped."""
    index = each.task.map_index
    return each.task.task_id if index < 0 else f"{each.task.task_id}[{index}]"


def log_of(each: TaskTry) -> str:
    """Return the address of a try's log in Airflow."""
    task = each.task
    address = airflow_address(task.dag_id, task.run_id, task.task_id, task.map_index)
    return f"{address}?try_number={each.try_number}"


def _group(task: TaskRef) -> tuple[str, int]:
    return task.task_id.rpartition(".")[0], task.map_index


def _place(status: str) -> int:
    """Return the place of a status; one that this release does not know is the worst."""
    known = [each.value for each in _WORST_FIRST]
    return known.index(status) if status in known else -1


def _mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list that somebody else may have written."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
