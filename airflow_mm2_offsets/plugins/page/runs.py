"""Routes that show what tasks have found: a plan, a readiness report, a run."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any

from airflow.utils.session import create_session
from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import HTMLResponse
from pydantic import AfterValidator

from airflow_mm2_offsets.api.workers import JournalWorkers, PlanWorkers
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.overview import JobOverview, overviews_of
from airflow_mm2_offsets.moves.status import MoveStatus
from airflow_mm2_offsets.plugins.page import records
from airflow_mm2_offsets.plugins.page.access import User
from airflow_mm2_offsets.plugins.page.jobs import JOURNAL_SECONDS
from airflow_mm2_offsets.plugins.page.overview import (
    find_failure,
    make_view,
    name_of_run,
    runs_of,
    shown_tries,
    tries_of_job,
)
from airflow_mm2_offsets.plugins.page.plan_table import (
    Filter,
    Sort,
    TableQuery,
    parse_rows,
    table_page,
)
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef
from airflow_mm2_offsets.plugins.page.rendering import render
from airflow_mm2_offsets.plugins.page.stored_plans import read_whole_plan

router = APIRouter()

_ID = Query(min_length=1, max_length=250, pattern="^[^\x00]*$")  # as long as Airflow's own
_TOLD = ("plan", "readiness", "report")
"""The pages that tell what a task returned."""
Id = Annotated[str, _ID]
# Airflow 3.1 does not escape the id in the address of a tab: its + arrives as a space, which no id
# of a run holds.
RunId = Annotated[str, _ID, AfterValidator(lambda run_id: run_id.replace(" ", "+"))]
SearchText = Annotated[str, Query(max_length=250)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000)]
MapIndex = Annotated[int, Query(ge=-1, le=2**31 - 1)]


def _task(user: User, dag_id: Id, run_id: RunId, task_id: Id, map_index: MapIndex = -1) -> TaskRef:
    user.require_dag(dag_id)
    return TaskRef(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)


Task = Annotated[TaskRef, Depends(_task)]
"""A task whose XComs the user may read."""


@router.get("/plan")
async def show_plan(
    task: Task,
    workers: PlanWorkers,
    *,
    text: SearchText = "",
    status: Filter = Filter.ALL,
    sort: Sort = Sort.WORST,
    page: PageNumber = 1,
) -> HTMLResponse:
    """Show the plan that a task has made; few at once, for it may be long or lie in a file."""
    query = TableQuery(text=text, status=status, sort=sort, page=page)
    return await workers.run(lambda: _render_plan(task, query))


def _render_plan(task: TaskRef, query: TableQuery) -> HTMLResponse:
    plan, why_brief = read_whole_plan(_result(task, "a plan"))
    rows = parse_rows(plan)
    if rows is None or "totals" not in plan:
        raise _not_found(task, "has returned something else than a plan of this release")
    return render(
        "plan",
        plan=plan,
        why_brief=why_brief,
        table=table_page(rows, query),
        query=query,
        task=task,
        filters=list(Filter),
        sorts=list(Sort),
    )


@router.get("/readiness")
def show_readiness(task: Task) -> HTMLResponse:
    """Show the readiness report that a task has written."""
    report = _result(task, "a readiness report")
    checks = report.get("checks")
    if not isinstance(checks, list) or not all(isinstance(each, Mapping) for each in checks):
        raise _not_found(task, "has returned something else than a readiness report")
    return render("readiness", report=report, task=task)


def _result(task: TaskRef, what: str) -> Mapping[str, Any]:
    """Return what a task returned.

    Raises:
        HTTPException: There is nothing in Airflow's database.
    """
    with create_session() as session:
        found = records.results(session, {task})
    if task not in found:
        raise _not_found(
            task,
            f"has no {what} in Airflow's database: it has returned none yet, its XComs were "
            f"cleared, or an XCom backend keeps them elsewhere",
        )
    return found[task]


def _not_found(task: TaskRef, why: str) -> HTTPException:
    place = f"task {task.task_id} of run {task.run_id} of DAG {task.dag_id}"
    return HTTPException(HTTPStatus.NOT_FOUND, f"{place} {why}")


@router.get("/run")
async def show_run(
    user: User, workers: JournalWorkers, dag_id: Id, run_id: RunId, job: SearchText = ""
) -> HTMLResponse:
    """Show what a DAG run does to its jobs: the tab of a DAG run calls it for runs of any DAG.

    Args:
        user: Of the request.
        workers: Bound how many journals are read at once.
        dag_id: The DAG.
        run_id: Its run.
        job: The job that is shown, of a run that moves several; empty: all.
    """
    user.require_dag(dag_id)
    return await workers.run(lambda: _render_run(dag_id, run_id, job))


def _render_run(dag_id: str, run_id: str, job: str) -> HTMLResponse:
    with create_session() as session:
        links = records.links_of_run(session, dag_id, run_id)
        linked = [task for page in links.values() for task in page]
        own = [each for each in linked if each.job == job] if job else linked
        index = max((each.task.map_index for each in own), default=-1) if job else -1
        tries = records.tries_of(session, dag_id, run_id, index)
        problems = records.problems_of_run(session, dag_id, run_id)
        told = [each for page in _TOLD for each in links.get(page, ()) if each in own]
        results = records.results(session, [each.task for each in told])
    if not tries:
        raise HTTPException(
            HTTPStatus.NOT_FOUND, f"DAG {dag_id} has no run {run_id} with such tasks"
        )
    statuses = _statuses(dag_id, run_id, own, results)
    with create_session() as session:
        known = records.known_runs(session, runs_of(statuses))
    views = []
    for status in statuses:
        of_job = tries_of_job(tries, (each for each in linked if each.job == status.job))
        views.append(make_view(status, known, find_failure(of_job, problems)))
    pages = {
        page: [each for each in links.get(page, ()) if each in own and each.task in results]
        for page in ("plan", "readiness")
    }
    return render(
        "run",
        dag_id=dag_id,
        run_id=run_id,
        job=job,
        views=views,
        failure=None if views else find_failure(tries, problems),
        tries=shown_tries(tries_of_job(tries, own) if job else tries),
        is_cut=len(tries) >= records.MOST_TRIES,
        has_our_tasks=bool(linked),
        pages={page: tasks for page, tasks in pages.items() if tasks},
        remarks=_remarks(links.get("report", ()), results),
    )


def _statuses(
    dag_id: str,
    run_id: str,
    linked: Sequence[LinkedTask],
    results: Mapping[TaskRef, Mapping[str, Any]],
) -> list[MoveStatus]:
    """Return the status of each job of a run: by its journal, else by the run's report.

    A drill, and a run that has begun no move, are in no journal. Nor is the journal known of a job
    that is not in the file of jobs.
    """
    names = {each.job for each in linked if each.job}
    by_name = {
        status.job: status
        for each in linked
        if (status := _reported(results.get(each.task, {}).get("status"))) is not None
    }
    with suppress(ConfigurationError):
        jobs = [each for each in jobs_of_file()[0] if each.name in names]
        for overview in overviews_of(jobs, storage_path, timeout=JOURNAL_SECONDS):
            moves = overview.moves if isinstance(overview, JobOverview) else ()
            own = [each for each in moves if name_of_run(each) == (dag_id, run_id)]
            by_name |= {each.job: each for each in own}
    return [by_name[name] for name in sorted(by_name)]


def _reported(status: object) -> MoveStatus | None:
    """Return the status of a report; None where something else lies there."""
    with suppress(ValueError):
        return MoveStatus.from_json(status) if isinstance(status, Mapping) else None
    return None


def _remarks(
    reports: Iterable[LinkedTask], results: Mapping[TaskRef, Mapping[str, Any]]
) -> list[str]:
    """Return what the run's reports could not find out."""
    found = [results.get(each.task, {}).get("remarks") for each in reports]
    return [str(each) for remarks in found if isinstance(remarks, list) for each in remarks]
