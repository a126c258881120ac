"""The overview: of each connection, what its newest tasks have found."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from airflow_mm2_offsets.plugins.page.records import LinkedTask

DRILL = "drill"
FACTS = ("replication_lag", "sync_age", "archive_age")
"""The readiness checks that the overview shows; see ``core.readiness_names``."""

Xcom: TypeAlias = Callable[[LinkedTask], Any]
"""Returns what a task returned; None if nothing is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One readiness check."""

    status: str
    """See ``core.readiness.CheckStatus``."""
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A task of a connection, and what it returned."""

    task: LinkedTask
    result: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """The readiness report's; see ``core.readiness.ReadinessVerdict``."""
        return str(self.result.get("verdict", "unknown"))

    @property
    def outcome(self) -> str:
        """The failover report's; see ``core.report.Outcome``."""
        return str(self.result.get("outcome", "unknown"))

    def facts(self) -> Iterator[Fact | None]:
        """Yield each of ``FACTS``: the first line that speaks of it, which is the worst."""
        checks: Sequence[Mapping[str, Any]] = self.result.get("checks") or ()
        for name in FACTS:
            found = next((each for each in checks if each.get("name") == name), None)
            yield (
                None
                if found is None
                else Fact(status=str(found.get("status")), value=str(found.get("value")))
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow:
    """What is known of one connection."""

    conn_id: str
    readiness: Reading | None = None
    failover: Reading | None = None
    drill: Reading | None = None

    @property
    def facts(self) -> list[Fact | None]:
        """Lag, age of the syncs and age of the archive, as the last readiness report has them."""
        return list(self.readiness.facts()) if self.readiness else [None] * len(FACTS)


def make_rows(
    conn_ids: Iterable[str],
    readiness: Sequence[LinkedTask],
    reports: Sequence[LinkedTask],
    xcom: Xcom,
) -> list[ConnectionRow]:
    """Return a row for each connection, by id.

    Args:
        conn_ids: The connections that the user may see.
        readiness: The tasks that wrote readiness reports, the newest first.
        reports: The tasks that wrote failover reports, the newest first.
        xcom: Is asked for the newest of each connection only.
    """
    done = [each for each in reports if not each.is_dry_run]
    moves = [each for each in done if each.mode != DRILL]
    drills = [each for each in done if each.mode == DRILL]
    return [
        ConnectionRow(
            conn_id=conn_id,
            readiness=_newest(readiness, conn_id, xcom),
            failover=_newest(moves, conn_id, xcom),
            drill=_newest(drills, conn_id, xcom),
        )
        for conn_id in sorted(set(conn_ids))
    ]


def _newest(tasks: Iterable[LinkedTask], conn_id: str, xcom: Xcom) -> Reading | None:
    """Return the newest task of a connection that returned something."""
    for task in tasks:
        if task.conn_id == conn_id and isinstance(result := xcom(task), Mapping):
            return Reading(task=task, result=result)
    return None
