"""Reads Airflow's database for the page: connections, links of tasks, XComs, tasks of a run."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from airflow.models.connection import Connection
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_mm2_offsets.operators.links import KEY_PREFIX

MOST_LINKS = 500
"""How many of the newest links of a page are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRef:
    """A task of a DAG run that has a page."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTask:
    """What a task's link says of it; see ``operators.links``."""

    task: TaskRef
    ended: datetime
    conn_id: str | None
    mode: str | None
    is_dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTry:
    """One try of a task."""

    task: TaskRef
    try_number: int
    operator: str
    """The name of its class."""
    state: str | None
    started: datetime | None
    ended: datetime | None


def connection_ids(session: Session) -> list[str]:
    """Return the ids of the connections of type ``mm2`` in the database.

    Airflow can't list those of environment variables and secrets backends.
    """
    query = select(Connection.conn_id).where(Connection.conn_type == "mm2")
    return sorted(session.scalars(query))


def newest_links(session: Session, page: str, most: int = MOST_LINKS) -> list[LinkedTask]:
    """Return the tasks that have a link to a page, the newest first."""
    query = (
        select(XComModel)
        .where(XComModel.key == f"{KEY_PREFIX}{page}")
        .order_by(XComModel.timestamp.desc())
        .limit(most)
    )
    return list(_linked(session.scalars(query)))


def links_of_run(session: Session, dag_id: str, run_id: str) -> dict[str, list[LinkedTask]]:
    """Return the tasks of a DAG run that have a link, by its page."""
    query = select(XComModel).where(
        XComModel.dag_id == dag_id,
        XComModel.run_id == run_id,
        XComModel.key.startswith(KEY_PREFIX, autoescape=True),
    )
    by_page: dict[str, list[LinkedTask]] = {}
    for row in session.scalars(query):
        by_page.setdefault(row.key.removeprefix(KEY_PREFIX), []).extend(_linked([row]))
    return by_page


def xcom(session: Session, task: TaskRef, key: str = "return_value") -> Any:  # noqa: ANN401 - any JSON
    """Return an XCom of a task as it lies in the database; None where there is none.

    What an XCom backend keeps elsewhere is not fetched: the API server must not read it.
    """
    query = XComModel.get_many(
        run_id=task.run_id,
        key=key,
        dag_ids=task.dag_id,
        task_ids=task.task_id,
        map_indexes=task.map_index,
        limit=1,
    )
    row: Any = session.scalars(query).first()
    return None if row is None else _json(row.value)


def tries_of(session: Session, dag_id: str, run_id: str) -> list[TaskTry]:
    """Return every try of every task of a DAG run, by the time of its start."""
    tries = [
        TaskTry(
            task=TaskRef(
                dag_id=dag_id, run_id=run_id, task_id=each.task_id, map_index=each.map_index
            ),
            try_number=each.try_number,
            operator=each.operator or "",
            state=each.state,
            started=each.start_date,
            ended=each.end_date,
        )
        for model in (TaskInstanceHistory, TaskInstance)
        for each in session.execute(_columns(model, dag_id, run_id))
    ]
    return sorted(tries, key=_order)


def _columns(model: Any, dag_id: str, run_id: str) -> Any:  # noqa: ANN401 - two models
    columns = (
        *(model.task_id, model.map_index, model.try_number, model.operator),
        *(model.state, model.start_date, model.end_date),
    )
    return select(*columns).where(model.dag_id == dag_id, model.run_id == run_id)


def _order(each: TaskTry) -> tuple[bool, float, str, int, int]:
    begun = each.started.timestamp() if each.started else 0.0
    return (
        each.started is None,
        begun,
        each.task.task_id,
        each.task.map_index,
        each.try_number,
    )


def _linked(rows: Any) -> Iterator[LinkedTask]:  # noqa: ANN401 - SQLAlchemy's
    for row in rows:
        address = _json(row.value)
        if not isinstance(address, str):
            continue  # Somebody else's XCom of this key.
        query: Mapping[str, str] = dict(parse_qsl(urlsplit(address).query))
        yield LinkedTask(
            task=TaskRef(
                dag_id=row.dag_id,
                run_id=row.run_id,
                task_id=row.task_id,
                map_index=row.map_index,
            ),
            ended=row.timestamp,
            conn_id=query.get("conn_id"),
            mode=query.get("mode"),
            is_dry_run=query.get("is_dry_run") == "true",
        )


def _json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value that lies as JSON or as the text of JSON, whichever Airflow wrote."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
