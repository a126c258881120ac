"""What the page shows of jobs and moves: newest tasks, causes, and the places in Airflow."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.overview import UnreadJob
from airflow_mm2_offsets.moves.status import MoveStatus
from airflow_mm2_offsets.plugins.page.overview import (
    MOST_RUNS,
    CheckLine,
    JobRow,
    find_failure,
    label_of,
    make_rows,
    make_view,
    runs_of,
    shown_tries,
    tries_of_job,
)
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef, TaskTry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = ("mm2_failover", "manual__1")


def report(*lags: tuple[CheckStatus, str]) -> dict[str, Any]:
    checks = [
        ReadinessCheck(name=CheckName.REPLICATION_LAG, status=status, value=value)
        for status, value in lags
    ]
    return ReadinessReport(
        checks=tuple(checks), policy=PLANNED, created_at="2026-01-01T00:00:00+00:00"
    ).to_json()


FAILED = report((CheckStatus.OK, "0 records"), (CheckStatus.FAILED, "9 records"))
READY = report((CheckStatus.OK, "0 records"))


def linked(
    run: str, *, job: str = "orders", policy: str = "planned", is_dry_run: bool = False
) -> LinkedTask:
    task = TaskRef(dag_id="dag", run_id=run, task_id="t")
    return LinkedTask(task=task, ended=NOW, policy=policy, is_dry_run=is_dry_run, job=job)


def rows(
    readiness: list[LinkedTask],
    reports: list[LinkedTask],
    results: dict[LinkedTask, Any],
    names: tuple[str, ...] = ("orders",),
) -> list[JobRow]:
    by_task = {each.task: result for each, result in results.items()}

    def read(tasks: Collection[TaskRef]) -> Mapping[TaskRef, Mapping[str, Any]]:
        return {task: by_task[task] for task in tasks if task in by_task}

    homes = (Home(cluster="east", folder="/east"), Home(cluster="west", folder="/west"))
    overviews = [UnreadJob(job=SparkJob(name=name, homes=homes), problem="-") for name in names]
    return make_rows(overviews, readiness, reports, read)


class TestRows:
    """What tasks have found of each job."""

    def test_the_newest_report_that_is_there_counts(self) -> None:
        """One that returned nothing is passed over, and that is told; another job's, too."""
        crashed, other = linked("crashed"), linked("other", job="clicks")
        new, old = linked("new"), linked("old")
        results = {new: FAILED, old: READY, other: READY}
        orders, clicks = rows([crashed, other, new, old], [], results, ("orders", "clicks"))
        assert orders.readiness is not None
        assert (orders.readiness.task, orders.readiness.newer_has_no_result) == (new, True)
        assert clicks.readiness is not None
        assert (clicks.readiness.task, clicks.readiness.newer_has_no_result) == (other, False)

    def test_the_lag_is_the_worst_that_the_report_has(self) -> None:
        """Without a report, or where it was not asked, it is not known."""
        check = linked("check")
        (row,) = rows([check], [], {check: FAILED})
        assert row.lag == CheckLine(status="failed", value="9 records")
        (row,) = rows([check], [], {check: report()})
        assert row.lag is None
        (row,) = rows([], [], {})
        assert (row.lag, row.readiness, row.drill) == (None, None, None)

    def test_only_drills_are_last_drills(self) -> None:
        """A move is in the journal, and a dry run has done nothing."""
        move, drill = linked("move"), linked("drill", policy="drill")
        dry = linked("dry", policy="drill", is_dry_run=True)
        results = {each: {"outcome": each.task.run_id} for each in (move, dry, drill)}
        (row,) = rows([], [move, dry, drill], results)
        assert row.drill is not None
        assert row.drill.result["outcome"] == "drill"

    @pytest.mark.parametrize(
        "odd", [{}, {"checks": ["x"]}, {"checks": 7}, {"checks": [{"name": "replication_lag"}]}]
    )
    def test_somebody_elses_xcom_breaks_nothing(self, odd: dict[str, Any]) -> None:
        """Whatever lies under the key: the row is there."""
        check = linked("check", policy="drill")
        (row,) = rows([check], [check], {check: odd})
        assert row.lag in {None, CheckLine(status="None", value="None")}

    def test_few_runs_are_read(self) -> None:
        """A check that crashes every time must not cost a query for each of its runs."""
        tasks = [linked(str(number)) for number in range(MOST_RUNS + 1)]
        (row,) = rows(tasks, [], {tasks[-1]: READY})
        assert row.readiness is None


def tried(
    task_id: str, state: str, *, minute: int = 0, index: int = -1, number: int = 1
) -> TaskTry:
    return TaskTry(
        task=TaskRef(dag_id=RUN[0], run_id=RUN[1], task_id=task_id, map_index=index),
        try_number=number,
        state=state,
        started=NOW,
        ended=NOW + timedelta(minutes=minute),
    )


class TestFailure:
    """Why a run does not go on."""

    def test_the_first_failure_is_the_cause(self) -> None:
        """What fails after it fails because of it, and the report only says so."""
        tries = [
            tried("move.report", "failed"),
            tried("move.verify", "failed", minute=9),
            tried("move.translate", "failed", minute=2),
            tried("move.check", "success", minute=1),
        ]
        message = "orders[2]: position 7381 is beyond the source's end"
        found = find_failure(tries, {tries[2].task: message, tries[1].task: "later"})
        assert found is not None
        assert found.text == f"move.translate: {message}"
        assert find_failure(tries[-1:], {}) is None

    def test_a_failure_of_another_kind_is_in_the_log(self) -> None:
        """Only errors of this package are kept for the page."""
        found = find_failure([tried("move.check", "up_for_retry", index=3)], {})
        assert found is not None
        assert found.text == "move.check[3] failed; its log says why"

    def test_one_job_of_a_fleet_has_its_own_failure(self) -> None:
        """By the mapped groups of its tasks that have ended."""
        tries = [
            tried("preview", "success"),
            tried("wave_1.move.check", "failed", index=0),
            tried("wave_1.move.check", "success", index=1),
            tried("wave_1.move.stop_source", "running", index=1),
            tried("wave_2.move.check", "success", index=1),
        ]
        of_job = LinkedTask(task=tries[2].task, ended=NOW, job="clicks")
        own = tries_of_job(tries, [of_job])
        assert [label_of(each) for each in own] == [
            "preview",
            "wave_1.move.check[1]",
            "wave_1.move.stop_source[1]",
        ]
        assert find_failure(own, {}) is None

    def test_skipped_tasks_are_not_shown(self) -> None:
        """In a dry run most of them are."""
        tries = [tried("check", "success"), tried("approve", "skipped"), tried("old", "removed")]
        assert [each.task.task_id for each in shown_tries(tries)] == ["check"]


def status(**more: Any) -> MoveStatus:
    values: dict[str, Any] = {
        "job": "orders",
        "policy": "planned",
        "state": "stopped",
        "here": "east (/east)",
        "there": "west (/west)",
        "since": NOW,
        "stopped_at": NOW,
        "arrived_at": None,
        "next": "Wait.",
        "run": ":".join(RUN),
    }
    return MoveStatus(**{**values, **more})


class TestView:
    """A status with its places in Airflow."""

    def test_it_leads_to_what_airflow_has(self) -> None:
        """The run, the job's run, the question, and the log of what failed."""
        asks = status(asked_in="move.approve[2]", job_dag="stream", job_run="manual__1+00:00__x")
        runs = runs_of([asks])
        assert runs == {RUN, ("stream", "manual__1+00:00__x")}
        failure = find_failure([tried("check", "failed", number=2)], {})
        view = make_view(asks, runs, failure)
        assert view.run == "dags/mm2_failover/runs/manual__1"
        assert view.job_run == "dags/stream/runs/manual__1%2B00%3A00__x"
        assert view.answer == f"{view.run}/tasks/move.approve/mapped/2/required_actions"
        assert view.log == f"{view.run}/tasks/check?try_number=2"
        assert view.status.cause == "check failed; its log says why"

    def test_no_link_leads_nowhere(self) -> None:
        """Airflow has deleted the run, or a person has stopped the job by a command."""
        for run in (":".join(RUN), "cli:anna@host 2026-01-01T00:00:00.000+00:00"):
            view = make_view(status(run=run, asked_in="approve", job_run="x"), set())
            assert (view.run, view.job_run, view.answer, view.log) == ("", "", "", "")

    def test_a_status_survives_the_report(self) -> None:
        """The page reads it of the report's XCom, where no journal has it; secrets do not."""
        asks = status(deadline=NOW, numbers={"lost_at_most": 3}, asked_in="approve")
        assert MoveStatus.from_json(asks.to_json()) == asks
        secret = status(cause="s3://key:word@bucket is gone").to_json()
        assert "word" not in str(secret)
        for odd in ({}, {**secret, "since": 7}, {**secret, "since": "2026-01-01T00:00:00"}):
            with pytest.raises(ValueError, match=r"zone|missing"):
                MoveStatus.from_json(odd)
