"""The overview: of each connection, what its newest tasks have found."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from airflow_mm2_offsets.core.policy import DRILL
from airflow_mm2_offsets.core.readiness import CheckStatus
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef

CHECKS = ("replication_lag", "sync_age", "archive_age")
"""The readiness checks that the overview shows; see ``core.readiness_names``."""
MOST_JOBS = 100
"""How many jobs of a fleet's run are counted."""
MOST_RUNS = 20
"""How many of a connection's newest runs are looked at for one that returned something."""
_WORST_FIRST = (
    *(CheckStatus.FAILED, CheckStatus.WARNING, CheckStatus.UNKNOWN, CheckStatus.OK),
    CheckStatus.NOT_ASKED,
)

Results: TypeAlias = Mapping[TaskRef, Mapping[str, Any]]
ReadResults: TypeAlias = Callable[[Collection[TaskRef]], Results]
"""Returns what tasks of one DAG run returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """One readiness check."""

    status: str
    """See ``core.readiness.CheckStatus``."""
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRun:
    """The newest tasks of one kind and one DAG run: one of each job."""

    task: LinkedTask
    """The newest of them."""
    results: Sequence[Mapping[str, Any]]
    newer_has_no_result: bool
    """Whether a newer run has returned nothing: its task was skipped, or failed before its end."""

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        """The verdicts of readiness reports, each with the number of jobs; the worst first."""
        counts = Counter(str(each.get("verdict", "unknown")) for each in self.results)
        worst_first = ("not_ready", "ready_with_warnings", "ready")
        return sorted(counts.items(), key=lambda count: _place(count[0], worst_first))

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        """The outcomes of failover reports, each with the number of jobs; failures first."""
        counts = Counter(str(each.get("outcome", "unknown")) for each in self.results)
        return sorted(counts.items(), key=lambda count: not count[0].startswith("failed"))

    def line_of(self, name: str) -> CheckLine | None:
        """Return the worst line of a check; None where no report has one."""
        lines = [
            CheckLine(status=str(check.get("status")), value=str(check.get("value")))
            for result in self.results
            for check in _mappings(result.get("checks"))
            if check.get("name") == name
        ]
        return min(lines, key=lambda line: _place(line.status, _WORST_FIRST), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow:
    """What is known of one connection."""

    conn_id: str
    readiness: LatestRun | None = None
    failover: LatestRun | None = None
    drill: LatestRun | None = None

    @property
    def lines(self) -> list[CheckLine | None]:
        """Each of ``CHECKS``, as the last readiness report has it."""
        return [self.readiness.line_of(name) if self.readiness else None for name in CHECKS]


def make_rows(
    conn_ids: Iterable[str],
    readiness: Sequence[LinkedTask],
    reports: Sequence[LinkedTask],
    read: ReadResults,
) -> list[ConnectionRow]:
    """Return a row for each connection, by id.

    Args:
        conn_ids: The connections that the user may see.
        readiness: The tasks that wrote readiness reports, the newest first.
        reports: The tasks that wrote failover reports, the newest first.
        read: Is asked for the newest of each connection only.
    """
    real = [each for each in reports if not each.is_dry_run]
    failovers = [each for each in real if each.policy != DRILL.name]
    drills = [each for each in real if each.policy == DRILL.name]
    return [
        ConnectionRow(
            conn_id=conn_id,
            readiness=_newest(readiness, conn_id, read),
            failover=_newest(failovers, conn_id, read),
            drill=_newest(drills, conn_id, read),
        )
        for conn_id in sorted(set(conn_ids))
    ]


def _newest(tasks: Iterable[LinkedTask], conn_id: str, read: ReadResults) -> LatestRun | None:
    """Return the tasks of the newest DAG run of a connection that returned something."""
    runs: dict[tuple[str, str], list[LinkedTask]] = {}
    for each in tasks:
        if each.conn_id == conn_id:
            runs.setdefault((each.task.dag_id, each.task.run_id), []).append(each)
    for number, linked in enumerate(islice(runs.values(), MOST_RUNS)):
        found = read([each.task for each in linked[:MOST_JOBS]])
        if found:
            newest = next(each for each in linked if each.task in found)
            return LatestRun(
                task=newest, results=list(found.values()), newer_has_no_result=number > 0
            )
    return None


def _place(name: str, worst_first: Sequence[str]) -> int:
    """Return the place of a status or verdict; one that this release does not know is the worst."""
    return worst_first.index(name) if name in worst_first else -1


def _mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list that somebody else may have written."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
