"""Routes that show what tasks have found: the overview, a plan, a readiness report, a run."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from airflow.utils.session import create_session
from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import HTMLResponse
from pydantic import AfterValidator

from airflow_mm2_offsets.api.workers import PlanWorkers
from airflow_mm2_offsets.core.policy import DRILL
from airflow_mm2_offsets.plugins.page import records
from airflow_mm2_offsets.plugins.page.access import User
from airflow_mm2_offsets.plugins.page.overview import make_rows
from airflow_mm2_offsets.plugins.page.plan_table import (
    Filter,
    Sort,
    TableQuery,
    parse_rows,
    table_page,
)
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef, TaskTry
from airflow_mm2_offsets.plugins.page.rendering import render
from airflow_mm2_offsets.plugins.page.stored_plans import read_whole_plan
from airflow_mm2_offsets.plugins.page.timeline import Timeline, make_timeline

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


@router.get("/")
def show_overview(user: User) -> HTMLResponse:
    """Show every connection that the user may see, with what its newest tasks have found."""
    with create_session() as session:
        dag_ids = list(filter(user.sees_dag, records.linked_dags(session)))
        readiness = records.newest_links(session, "readiness", dag_ids)
        reports = records.newest_links(session, "report", dag_ids)
        used = {each.conn_id for each in (*readiness, *reports) if each.conn_id}
        conn_ids = filter(user.sees_connection, used.union(records.connection_ids(session)))
        rows = make_rows(conn_ids, readiness, reports, partial(records.results, session))
    return render("overview", rows=rows, most=records.MOST_LINKS)


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
def show_run(user: User, dag_id: Id, run_id: RunId, map_index: MapIndex = -1) -> HTMLResponse:
    """Show a DAG run's tasks over time, its downtimes, and how it ended.

    The tab of a DAG run calls it for runs of any DAG. Of a fleet, ``map_index`` chooses one job.
    """
    user.require_dag(dag_id)
    with create_session() as session:
        tries = records.tries_of(session, dag_id, run_id, map_index)
        if not tries:
            raise HTTPException(
                HTTPStatus.NOT_FOUND, f"DAG {dag_id} has no run {run_id} with such tasks"
            )
        links = records.links_of_run(session, dag_id, run_id, map_index)
        linked = [task for page in links.values() for task in page]
        # What the other tasks returned may be long, such as the positions of a job.
        told = {
            each.task
            for page, tasks in links.items()
            for each in tasks
            if each.job or page in _TOLD
        }
        results = records.results(session, told)
        has_ended = records.has_ended(session, dag_id, run_id)
    pages = {
        page: [each for each in tasks if each.task in results] for page, tasks in links.items()
    }
    return render(
        "run",
        dag_id=dag_id,
        run_id=run_id,
        map_index=map_index,
        timeline=_timeline(tries, linked, results, has_ended=has_ended),
        is_cut=len(tries) >= records.MOST_TRIES,
        has_our_tasks=bool(linked),
        pages={page: pages[page] for page in ("plan", "readiness") if pages.get(page)},
        reports=[results[each.task] for each in pages.get("report", ())],
    )


def _timeline(
    tries: list[TaskTry],
    linked: list[LinkedTask],
    results: Mapping[TaskRef, Mapping[str, Any]],
    *,
    has_ended: bool,
) -> Timeline | None:
    is_drill = any(each.policy == DRILL.name for each in linked)
    now = None if has_ended else datetime.now(UTC)
    return make_timeline(tries, () if is_drill else linked, results, now=now)
