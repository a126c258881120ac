"""What the overview shows of each connection: its newest tasks that returned something."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.plugins.page.overview import MOST_RUNS, CheckLine, ConnectionRow, make_rows
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef


def report(*lags: tuple[CheckStatus, str]) -> dict[str, Any]:
    checks = [
        ReadinessCheck(name=CheckName.REPLICATION_LAG, status=status, value=value)
        for status, value in lags
    ]
    checks.append(ReadinessCheck(name=CheckName.SYNC_AGE, status=CheckStatus.OK, value="2 s"))
    return ReadinessReport(
        checks=tuple(checks), mode=FailoverMode.PLANNED, created_at="2026-01-01T00:00:00+00:00"
    ).to_json()


FAILED = report((CheckStatus.FAILED, "9 records"), (CheckStatus.FAILED, "5 more"))
READY = report((CheckStatus.OK, "0 records"))


def linked(
    run: str,
    *,
    conn_id: str = "mm2",
    mode: str = "planned",
    is_dry_run: bool = False,
    map_index: int = -1,
) -> LinkedTask:
    return LinkedTask(
        task=TaskRef(dag_id="dag", run_id=run, task_id="t", map_index=map_index),
        ended=datetime(2026, 1, 1, tzinfo=UTC),
        conn_id=conn_id,
        mode=mode,
        is_dry_run=is_dry_run,
    )


def only_row(
    readiness: list[LinkedTask], reports: list[LinkedTask], results: dict[LinkedTask, Any]
) -> ConnectionRow:
    by_task = {each.task: result for each, result in results.items()}

    def read(tasks: Collection[TaskRef]) -> Mapping[TaskRef, Mapping[str, Any]]:
        assert len({each.run_id for each in tasks}) == 1
        return {task: by_task[task] for task in tasks if task in by_task}

    (row,) = make_rows(["mm2"], readiness, reports, read)
    return row


def test_the_newest_report_that_is_there_counts() -> None:
    """One that returned nothing is passed over, and that is told; another connection's, too."""
    crashed, other, new, old = (
        linked("crashed"),
        linked("other", conn_id="else"),
        linked("new"),
        linked("old"),
    )
    row = only_row([crashed, other, new, old], [], {new: FAILED, old: READY, other: READY})
    assert row.readiness is not None
    assert row.readiness.task == new
    assert row.readiness.verdicts == [("not_ready", 1)]
    assert row.readiness.newer_has_no_result
    again = only_row([new, old], [], {new: FAILED, old: READY})
    assert again.readiness is not None
    assert not again.readiness.newer_has_no_result


def test_all_jobs_of_a_fleet_count() -> None:
    """The last one to end does not speak for the others; the worst comes first."""
    jobs = [linked("run", map_index=number) for number in range(3)]
    outcomes = ["moved", "failed_in_stop", "moved"]
    found = {job: {"outcome": outcome} for job, outcome in zip(jobs, outcomes, strict=True)}
    row = only_row(jobs, jobs, found | {})
    assert row.failover is not None
    assert row.failover.outcomes == [("failed_in_stop", 1), ("moved", 2)]
    ready = only_row(jobs, [], dict(zip(jobs, [READY, FAILED, READY], strict=True)))
    assert ready.readiness is not None
    assert ready.readiness.verdicts == [("not_ready", 1), ("ready", 2)]
    assert ready.lines[0] == CheckLine(status="failed", value="9 records")


def test_lines_are_those_of_the_report() -> None:
    """Of several lines the worst; what was not asked is not known."""
    check = linked("check")
    row = only_row([check], [], {check: FAILED})
    assert row.lines == [
        CheckLine(status="failed", value="9 records"),
        CheckLine(status="ok", value="2 s"),
        None,
    ]


def test_somebody_elses_xcom_breaks_nothing() -> None:
    """Whatever lies under the key: the row is whole."""
    for odd in ({}, {"checks": ["x"]}, {"checks": 7}, {"checks": [{"name": "sync_age"}]}):
        check = linked("check")
        row = only_row([check], [check], {check: odd})
        assert len(row.lines) == 3
        assert row.readiness is not None
        assert row.readiness.verdicts == [("unknown", 1)]
        assert row.failover is not None
        assert row.failover.outcomes == [("unknown", 1)]


def test_dry_runs_count_as_neither_failover_nor_drill() -> None:
    """They moved nothing."""
    dry, drill = linked("dry", is_dry_run=True), linked("drill", mode="drill")
    move = linked("move", mode="disaster")
    row = only_row([], [dry, drill, move], {each: {"outcome": "x"} for each in (dry, drill, move)})
    assert row.failover is not None
    assert row.drill is not None
    assert (row.failover.task, row.drill.task) == (move, drill)


def test_a_connection_without_tasks_has_an_empty_row() -> None:
    """It is listed all the same."""
    row = only_row([], [], {})
    assert (row.readiness, row.failover, row.drill, row.lines) == (None, None, None, [None] * 3)


def test_few_runs_are_read() -> None:
    """A check that crashes every time must not cost a query for each of its runs."""
    tasks = [linked(str(number)) for number in range(MOST_RUNS + 1)]
    assert only_row(tasks, [], {tasks[-1]: READY}).readiness is None
