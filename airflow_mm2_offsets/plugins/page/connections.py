"""Routes that ask the clusters: the connections, one with its plots, and the translator."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated

from airflow.utils.session import create_session
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from airflow_mm2_offsets.api.batch import translate_batch
from airflow_mm2_offsets.api.models import MAX_NAME
from airflow_mm2_offsets.api.pairs import PairProvider, ServedPair
from airflow_mm2_offsets.api.problems import Problem
from airflow_mm2_offsets.api.workers import ClusterWorkers
from airflow_mm2_offsets.core import Translation
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError, PositionError
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.plugins.page import records
from airflow_mm2_offsets.plugins.page.access import User
from airflow_mm2_offsets.plugins.page.mirror import read_mirror
from airflow_mm2_offsets.plugins.page.rendering import render
from airflow_mm2_offsets.plugins.pairs import DEFAULT

router = APIRouter()

MOST_TOPICS = 1000
"""How many topics the translator's form suggests."""
Text = Annotated[str, Query(max_length=MAX_NAME, pattern="^[^\x00]*$")]


def _connection(user: User, conn_id: Text = "") -> str:
    name = conn_id.strip() or DEFAULT
    user.require_connection(name)
    return name


Connection = Annotated[str, Depends(_connection)]
"""The id of a connection that the user may read."""


async def _served(request: Request, conn_id: Connection) -> ServedPair:
    pairs: PairProvider = request.app.state.pairs
    return await pairs.get(conn_id)


Served = Annotated[ServedPair, Depends(_served)]
"""The pair of that connection."""


@router.get("/connections")
def show_connections(user: User) -> HTMLResponse:
    """Show the connections that the user may see: Airflow's, those of jobs, and those of tasks."""
    with create_session() as session:
        dags = list(filter(user.sees_dag, records.linked_dags(session, "connection")))
        linked = records.newest_links(session, "connection", dags)
        names = {*records.connection_ids(session), *(each.conn_id or "" for each in linked)}
    with suppress(ConfigurationError):
        for job in jobs_of_file()[0]:
            names |= {job.mm2_conn_id, job.mm2_back_conn_id or ""}
    return render("connections", names=sorted(filter(user.sees_connection, names - {""})))


@router.get("/connection")
async def show_connection(
    conn_id: Connection,
    served: Served,
    workers: ClusterWorkers,
    *,
    text: Text = "",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> HTMLResponse:
    """Show how each partition of a connection is copied."""
    return await workers.run(lambda: _render_connection(conn_id, served, text.strip(), page))


def _render_connection(conn_id: str, served: ServedPair, text: str, page: int) -> HTMLResponse:
    mirror, problem = None, ""
    try:
        mirror = read_mirror(served, text=text, number=page)
    except (Problem, Mm2OffsetsError) as error:
        problem = _sentence(error)
    return render(
        "connection",
        conn_id=conn_id,
        pair=served.pair,
        syncs=served.cache.state.syncs,
        mirror=mirror,
        problem=problem,
        text=text,
    )


@router.get("/translate")
async def show_translation(
    conn_id: Connection,
    served: Served,
    workers: ClusterWorkers,
    *,
    topic: Text = "",
    partition: Text = "",
    position: Text = "",
) -> HTMLResponse:
    """Show the translator, and the answer for the position that was given to it."""
    given = {"topic": topic.strip(), "partition": partition.strip(), "position": position.strip()}
    return await workers.run(lambda: _render_translation(conn_id, served, given))


def _render_translation(conn_id: str, served: ServedPair, given: Mapping[str, str]) -> HTMLResponse:
    answer, problem = None, ""
    missing = [name for name, value in given.items() if not value]
    if not missing:
        try:
            answer = _translate(served, **given)
        except (Problem, Mm2OffsetsError) as error:
            problem = _sentence(error)
    elif len(missing) < len(given):
        problem = f"give {' and '.join(missing)}, too"
    return render(
        "translate",
        HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK,
        conn_id=conn_id,
        pair=served.pair,
        answer=answer,
        problem=problem,
        topics=_topics(served),
        **given,
    )


def _translate(served: ServedPair, topic: str, partition: str, position: str) -> Translation:
    """Translate by the syncs that the topic holds now; the source's watermarks are compared."""
    index = served.latest()
    (answer,) = translate_batch(index, topic, [(partition, position)], source=served.source)
    if isinstance(answer, PositionError):
        raise answer
    return answer


def _sentence(error: Problem | Mm2OffsetsError) -> str:
    return str(error.detail if isinstance(error, Problem) else error)


def _topics(served: ServedPair) -> Sequence[str]:
    """Return the topics that have syncs, for the form to suggest."""
    syncs = served.cache.state.syncs
    return sorted({each.topic for each in syncs.index})[:MOST_TOPICS] if syncs else ()
