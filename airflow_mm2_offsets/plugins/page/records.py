"""Reads Airflow's database for the page: connections, links of tasks, XComs, tasks of a run."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from airflow.models.connection import Connection
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from airflow_mm2_offsets.operators.links import KEY_PREFIX, PROBLEM

MOST_LINKS = 500
"""How many of the newest links to a page are looked at."""
MOST_TRIES = 500
"""How many of a run's tries are read."""
MOST_OF_RUN = 5000
"""How many of a run's links and problems are read."""
ALL_JOBS = -1
"""In place of a map index: all tasks. It is also the map index of a task that is not mapped."""
_RESULT = "return_value"
_LINK_COLUMNS = (
    *(XComModel.dag_id, XComModel.run_id, XComModel.task_id, XComModel.map_index),
    *(XComModel.value, XComModel.timestamp),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRef:
    """A task of a DAG run."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTask:
    """What a task's link says of it; see ``operators.links``."""

    task: TaskRef
    ended: datetime
    """When Airflow kept the link: at the end of the task's last try."""
    conn_id: str | None = None
    policy: str | None = None
    is_dry_run: bool = False
    job: str = ""
    """The name of the job that the task moves, checks or drills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTry:
    """One try of a task."""

    task: TaskRef
    try_number: int
    state: str
    """Airflow's; ``none`` for a task that was not scheduled yet."""
    started: datetime | None
    ended: datetime | None
    is_last: bool = True
    """Whether it is the newest try; XComs are of that one."""


def connection_ids(session: Session) -> list[str]:
    """Return the ids of the connections of type ``mm2`` in the database.

    Airflow can't list those of environment variables and secrets backends.
    """
    query = select(Connection.conn_id).where(Connection.conn_type == "mm2")
    return sorted(session.scalars(query))


def linked_dags(session: Session, *pages: str) -> list[str]:
    """Return the ids of the DAGs of which a task has a link to one of some pages."""
    keys = [f"{KEY_PREFIX}{page}" for page in pages]
    query = select(XComModel.dag_id).where(XComModel.key.in_(keys)).distinct()
    return sorted(session.scalars(query))


def newest_links(
    session: Session, page: str, dag_ids: Collection[str], most: int = MOST_LINKS
) -> list[LinkedTask]:
    """Return the tasks of some DAGs that have a link to a page, the newest first."""
    query = (
        select(*_LINK_COLUMNS)
        .where(XComModel.key == f"{KEY_PREFIX}{page}", XComModel.dag_id.in_(dag_ids))
        .order_by(XComModel.timestamp.desc())
        .limit(most)
    )
    return list(_linked(session.execute(query)))


def links_of_run(session: Session, dag_id: str, run_id: str) -> dict[str, list[LinkedTask]]:
    """Return the tasks of a DAG run that have a link, by its page."""
    query = (
        select(XComModel.key, *_LINK_COLUMNS)
        .where(
            XComModel.dag_id == dag_id,
            XComModel.run_id == run_id,
            XComModel.key.startswith(KEY_PREFIX, autoescape=True),
        )
        .order_by(XComModel.timestamp)
        .limit(MOST_OF_RUN)
    )
    by_page: dict[str, list[LinkedTask]] = {}
    for key, *row in session.execute(query):
        by_page.setdefault(key.removeprefix(KEY_PREFIX), []).extend(_linked([row]))
    return by_page


def problems_of_run(session: Session, dag_id: str, run_id: str) -> dict[TaskRef, str]:
    """Return why tasks of a DAG run have failed, in their newest try."""
    query = (
        select(XComModel.task_id, XComModel.map_index, XComModel.value)
        .where(XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.key == PROBLEM)
        .limit(MOST_OF_RUN)
    )
    return {
        TaskRef(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index): text
        for task_id, map_index, value in session.execute(query)
        if isinstance(text := _json(value), str)
    }


def results(session: Session, tasks: Collection[TaskRef]) -> dict[TaskRef, Mapping[str, Any]]:
    """Return what tasks returned, where that is a JSON object.

    What an XCom backend keeps elsewhere is not fetched: the API server must not read it.
    """
    columns = (XComModel.dag_id, XComModel.run_id, XComModel.task_id, XComModel.map_index)
    names = [(each.dag_id, each.run_id, each.task_id, each.map_index) for each in tasks]
    query = select(*columns, XComModel.value).where(
        XComModel.key == _RESULT, tuple_(*columns).in_(names)
    )
    return {
        TaskRef(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index): result
        for dag_id, run_id, task_id, map_index, value in session.execute(query)
        if isinstance(result := _json(value), Mapping)
    }


def known_runs(session: Session, runs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which of some DAG runs, by DAG id and run id, Airflow has."""
    columns = (DagRun.dag_id, DagRun.run_id)
    query = select(*columns).where(tuple_(*columns).in_(list(runs)))
    return {(dag_id, run_id) for dag_id, run_id in session.execute(query)}


def tries_of(
    session: Session, dag_id: str, run_id: str, map_index: int = ALL_JOBS
) -> list[TaskTry]:
    """Return the first ``MOST_TRIES`` tries of a DAG run's tasks, by the time of their start.

    Args:
        session: Of Airflow's database.
        dag_id: The DAG.
        run_id: Its run.
        map_index: The tasks of this index, and those that are not mapped; ``ALL_JOBS``: all.
    """
    past = {
        (each.task, each.try_number): each
        for each in _read_tries(session, TaskInstanceHistory, dag_id, run_id, map_index)
    }
    last = [
        # A task that was cleared has a row in the history for its last try. Its own row keeps the
        # number and the times of that try until the next one begins.
        replace(each, try_number=each.try_number + 1, started=None, ended=None)
        if (each.task, each.try_number) in past
        else each
        for each in _read_tries(session, TaskInstance, dag_id, run_id, map_index)
    ]
    return sorted([*past.values(), *last], key=_order)[:MOST_TRIES]


def _read_tries(
    session: Session,
    model: type[TaskInstance | TaskInstanceHistory],
    dag_id: str,
    run_id: str,
    map_index: int,
) -> Iterator[TaskTry]:
    columns = (
        *(model.task_id, model.map_index, model.try_number),
        *(model.state, model.start_date, model.end_date),
    )
    query = (
        select(*columns)
        .where(
            model.dag_id == dag_id,
            model.run_id == run_id,
            *_of_job(model, map_index),
        )
        .order_by(model.start_date.is_(None), model.start_date)
        .limit(MOST_TRIES)
    )
    for task_id, index, number, state, started, ended in session.execute(query):
        task = TaskRef(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=index)
        yield TaskTry(
            task=task,
            try_number=number,
            state=state or "none",
            started=started,
            ended=ended,
            is_last=model is TaskInstance,
        )


def _of_job(model: Any, map_index: int) -> list[Any]:  # noqa: ANN401 - SQLAlchemy's
    """Return the condition for the tasks of one job, and those that all jobs share."""
    return [] if map_index == ALL_JOBS else [model.map_index.in_({map_index, ALL_JOBS})]


def _order(each: TaskTry) -> tuple[bool, float, str, int, int]:
    started = each.started.timestamp() if each.started else 0.0
    return (
        *(each.started is None, started),
        *(each.task.task_id, each.task.map_index, each.try_number),
    )


def _linked(rows: Any) -> Iterator[LinkedTask]:  # noqa: ANN401 - rows of SQLAlchemy
    """Yield tasks by their links; a user may have written an XCom of such a key, of any value."""
    for dag_id, run_id, task_id, map_index, value, timestamp in rows:
        address, query = _json(value), dict[str, str]()
        if isinstance(address, str):
            with suppress(ValueError):
                query = dict(parse_qsl(urlsplit(address).query))
        conn_id = query.get("conn_id")
        yield LinkedTask(
            task=TaskRef(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index),
            ended=timestamp,
            # A task that failed before its templates were rendered names none.
            conn_id=None if conn_id is None or "{{" in conn_id else conn_id,
            policy=query.get("policy"),
            is_dry_run=query.get("is_dry_run") == "true",
            job=query.get("job", ""),
        )


def _json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value that lies as JSON or as the text of JSON, whichever Airflow wrote."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
