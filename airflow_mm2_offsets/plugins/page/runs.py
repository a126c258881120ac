"""Routes that show what tasks have found: the overview, a plan, a readiness report, a run."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from airflow.utils.session import create_session
from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.plugins.page.access import Access, User
from airflow_mm2_offsets.plugins.page.overview import DRILL, make_rows
from airflow_mm2_offsets.plugins.page.plan_table import Shown, Sort, TableQuery, table_page
from airflow_mm2_offsets.plugins.page.records import (
    LinkedTask,
    TaskRef,
    TaskTry,
    connection_ids,
    links_of_run,
    newest_links,
    tries_of,
    xcom,
)
from airflow_mm2_offsets.plugins.page.rendering import render
from airflow_mm2_offsets.plugins.page.timeline import make_timeline

router = APIRouter()

_MOST_ID = 250  # Airflow's ID_LEN
Id = Annotated[str, Query(min_length=1, max_length=_MOST_ID)]
Text = Annotated[str, Query(max_length=_MOST_ID)]
OfTask = TypeVar("OfTask", LinkedTask, TaskTry)
MapIndex = Annotated[int, Query(ge=-1, le=2**31 - 1)]


@router.get("/")
def show_overview(user: User) -> HTMLResponse:
    """Show every connection that the user may see, with what its newest tasks have found."""
    with create_session() as session:
        readiness = _seen(user, newest_links(session, "readiness"))
        reports = _seen(user, newest_links(session, "report"))
        used = {each.conn_id for each in (*readiness, *reports) if each.conn_id}
        seen = filter(user.sees_connection, used.union(connection_ids(session)))
        rows = make_rows(seen, readiness, reports, lambda each: xcom(session, each.task))
    return render("overview", rows=rows)


def _seen(user: Access, tasks: list[LinkedTask]) -> list[LinkedTask]:
    """Return the tasks of the DAGs that the user may see."""
    allowed = {dag_id: user.sees_dag(dag_id) for dag_id in {each.task.dag_id for each in tasks}}
    return [each for each in tasks if allowed[each.task.dag_id]]


def _task(user: User, dag_id: Id, run_id: Id, task_id: Id, map_index: MapIndex = -1) -> TaskRef:
    user.require_dag(dag_id)
    return TaskRef(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)


Task = Annotated[TaskRef, Depends(_task)]
"""A task whose XComs the user may read."""


@router.get("/plan")
def show_plan(
    task: Task,
    text: Text = "",
    shown: Shown = Shown.ALL,
    sort: Sort = Sort.WORST,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> HTMLResponse:
    """Show the plan that a task has made."""
    with create_session() as session:
        content = _result(session, task, "partitions", "a plan")
    problem = None
    try:
        content = whole_plan(content, storage_path)
    except Mm2OffsetsError as error:  # its file is gone: the worst rows are in the XCom
        problem = str(error)
    query = TableQuery(text=text, shown=shown, sort=sort, page=page)
    return render(
        "plan",
        plan=content,
        problem=problem,
        table=table_page(content["partitions"], query),
        task=task,
        shown=list(Shown),
        sorts=list(Sort),
    )


@router.get("/readiness")
def show_readiness(task: Task) -> HTMLResponse:
    """Show the readiness report that a task has written."""
    with create_session() as session:
        report = _result(session, task, "checks", "a readiness report")
    return render("readiness", report=report, task=task)


def _result(session: Session, task: TaskRef, field: str, what: str) -> Mapping[str, Any]:
    """Return what a task returned.

    Raises:
        HTTPException: It is not there, or something else.
    """
    result = xcom(session, task)
    if isinstance(result, Mapping) and field in result:
        return result
    found = "has returned nothing yet, or its XComs were cleared"
    if result is not None:
        found = "has returned something else; an XCom backend may keep it elsewhere"
    raise HTTPException(
        HTTPStatus.NOT_FOUND,
        f"task {task.task_id} of run {task.run_id} of DAG {task.dag_id} {found}: it is not {what}",
    )


@router.get("/run")
def show_run(user: User, dag_id: Id, run_id: Id, map_index: MapIndex = -1) -> HTMLResponse:
    """Show a DAG run's tasks over time, its downtime, and how it ended.

    The tab of a DAG run calls it for runs of any DAG. Of a fleet, ``map_index`` chooses one job.
    """
    user.require_dag(dag_id)
    with create_session() as session:
        tries = _of_job(tries_of(session, dag_id, run_id), map_index)
        if not tries:
            raise HTTPException(
                HTTPStatus.NOT_FOUND, f"DAG {dag_id} has no run {run_id} with such tasks"
            )
        links = links_of_run(session, dag_id, run_id)
        links = {page: each for page in links if (each := _of_job(links[page], map_index))}
        ends = links.get("report", [])
        results = [xcom(session, each.task) for each in ends]
    return render(
        "run",
        dag_id=dag_id,
        run_id=run_id,
        map_index=map_index,
        timeline=make_timeline(
            tries, datetime.now(UTC), is_drill={each.mode for each in ends} == {DRILL}
        ),
        links=links,
        reports=[each for each in results if isinstance(each, Mapping) and "outcome" in each],
    )


def _of_job(tasks: Iterable[OfTask], map_index: int) -> list[OfTask]:
    """Return the tasks of one job of a fleet, with those that all jobs share; -1: all tasks."""
    return [each for each in tasks if map_index == -1 or each.task.map_index in {-1, map_index}]
