"""What the overview shows of each connection: its newest tasks that returned something."""

from datetime import UTC, datetime
from typing import Any

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.plugins.page.overview import ConnectionRow, Fact, make_rows
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef

REPORT = ReadinessReport(
    checks=(
        ReadinessCheck(
            name=CheckName.REPLICATION_LAG, status=CheckStatus.FAILED, value="9 records"
        ),
        ReadinessCheck(name=CheckName.REPLICATION_LAG, status=CheckStatus.FAILED, value="5 more"),
        ReadinessCheck(name=CheckName.SYNC_AGE, status=CheckStatus.OK, value="2 s"),
    ),
    mode=FailoverMode.PLANNED,
    created_at="2026-01-01T00:00:00+00:00",
).to_json()


def linked(
    name: str, *, conn_id: str = "mm2", mode: str = "planned", is_dry_run: bool = False
) -> LinkedTask:
    return LinkedTask(
        task=TaskRef(dag_id="dag", run_id="run", task_id=name),
        ended=datetime(2026, 1, 1, tzinfo=UTC),
        conn_id=conn_id,
        mode=mode,
        is_dry_run=is_dry_run,
    )


def only_row(
    readiness: list[LinkedTask], reports: list[LinkedTask], xcoms: dict[str, Any]
) -> ConnectionRow:
    (row,) = make_rows(["mm2"], readiness, reports, lambda each: xcoms.get(each.task.task_id))
    return row


def test_the_newest_report_that_is_there_counts() -> None:
    """One whose XCom was cleared is passed over; another connection's, too."""
    tasks = [linked("cleared"), linked("other", conn_id="else"), linked("new"), linked("old")]
    row = only_row(tasks, [], {"new": REPORT, "old": {}, "other": {}})
    assert row.readiness is not None
    assert row.readiness.task.task.task_id == "new"
    assert row.readiness.verdict == "not_ready"


def test_facts_are_those_of_the_report() -> None:
    """Of several lines the first, which is the worst; what was not asked is not known."""
    row = only_row([linked("check")], [], {"check": REPORT})
    assert row.facts == [
        Fact(status="failed", value="9 records"),
        Fact(status="ok", value="2 s"),
        None,
    ]


def test_dry_runs_count_as_neither_failover_nor_drill() -> None:
    """They moved nothing."""
    reports = [
        linked("dry", is_dry_run=True),
        linked("drill", mode="drill"),
        linked("move", mode="disaster"),
    ]
    row = only_row([], reports, {each.task.task_id: {"outcome": "x"} for each in reports})
    assert row.failover is not None
    assert row.drill is not None
    assert (row.failover.task.task.task_id, row.drill.task.task.task_id) == ("move", "drill")


def test_a_connection_without_tasks_has_an_empty_row() -> None:
    """It is listed all the same."""
    row = only_row([], [], {})
    assert (row.readiness, row.failover, row.drill, row.facts) == (None, None, None, [None] * 3)
