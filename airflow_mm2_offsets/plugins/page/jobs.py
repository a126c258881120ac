"""Routes that read the file of jobs: all jobs, and one job with its moves and its journal."""

from http import HTTPStatus
from typing import Annotated, Final

from airflow.utils.session import create_session
from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse

from airflow_mm2_offsets.api.workers import JournalWorkers
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.overview import HISTORY, JobOverview, history_of, overviews_of
from airflow_mm2_offsets.plugins.page import records
from airflow_mm2_offsets.plugins.page.access import User
from airflow_mm2_offsets.plugins.page.overview import make_rows, make_view, runs_of
from airflow_mm2_offsets.plugins.page.rendering import render

router = APIRouter()

JOURNAL_SECONDS: Final = 10.0
"""How long the page waits for the journals."""
MOST_ENTRIES: Final = 200
"""How many of a journal's newest entries are shown."""
JobName = Annotated[str, Query(min_length=1, max_length=250, pattern="^[^\x00]*$")]


@router.get("/")
async def show_jobs(user: User, workers: JournalWorkers) -> HTMLResponse:
    """Show each job that the user may see: where it runs, and what became of its last move."""
    return await workers.run(lambda: _render_jobs(user))


def sees_job(user: User, job: SparkJob) -> bool:
    """Tell whether a user may read a job: the runs of its DAG; without one, its connection."""
    return user.sees_dag(job.dag) if job.dag else user.sees_connection(job.mm2_conn_id)


def _render_jobs(user: User) -> HTMLResponse:
    try:
        jobs, file = jobs_of_file()
    except ConfigurationError as error:
        return render("jobs", problem=str(error), rows=[], file="")
    overviews = overviews_of(
        [job for job in jobs if sees_job(user, job)], storage_path, timeout=JOURNAL_SECONDS
    )
    with create_session() as session:
        dags = list(filter(user.sees_dag, records.linked_dags(session, "readiness", "report")))
        rows = make_rows(
            overviews,
            records.newest_links(session, "readiness", dags),
            records.newest_links(session, "report", dags),
            lambda tasks: records.results(session, tasks),
        )
    return render("jobs", problem="", rows=rows, file=file, most=records.MOST_LINKS)


@router.get("/job")
async def show_job(user: User, workers: JournalWorkers, name: JobName) -> HTMLResponse:
    """Show one job: its last move, all its moves, and its journal."""
    return await workers.run(lambda: _render_job(user, name))


def _render_job(user: User, name: str) -> HTMLResponse:
    jobs, file = jobs_of_file()
    job = next((each for each in jobs if each.name == name), None)
    if job is None or not sees_job(user, job):
        raise HTTPException(
            HTTPStatus.NOT_FOUND, f"{file} has no job {name}, or you may not read its DAG's runs"
        )
    (overview,) = overviews_of([job], storage_path, timeout=JOURNAL_SECONDS)
    if not isinstance(overview, JobOverview):
        return render("job", HTTPStatus.BAD_GATEWAY, job=job, problem=overview.problem)
    with create_session() as session:
        known = records.known_runs(session, runs_of(overview.moves))
    newest = overview.entries[-MOST_ENTRIES:]
    return render(
        "job",
        job=job,
        problem="",
        overview=overview,
        views=[make_view(each, known) for each in reversed(overview.moves)],
        columns=HISTORY,
        history=history_of(reversed(newest)),
    )
