"""The page's app: the routes of ``jobs``, ``runs`` and ``connections``, and errors as pages."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from airflow_mm2_offsets.api.pairs import PairProvider
from airflow_mm2_offsets.api.problems import validation_problem
from airflow_mm2_offsets.api.workers import Kind, make_workers
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.plugins.page import connections, jobs, runs
from airflow_mm2_offsets.plugins.page.access import User
from airflow_mm2_offsets.plugins.page.rendering import ASSETS, asset, render

_LIMITS: Mapping[Kind, int] = {Kind.CLUSTERS: 4, Kind.PLANS: 2, Kind.JOURNALS: 4}
"""The page's requests that work at once; with those of the REST API fewer than Starlette's 40."""


def make_page(pairs: PairProvider) -> FastAPI:
    """Return the app; every route needs Airflow's login.

    Args:
        pairs: Finds the pair of a connection; the REST API serves the same ones.
    """
    app = FastAPI(title="MirrorMaker 2", openapi_url=None, redirect_slashes=False)
    app.state.pairs = pairs
    app.state.workers = make_workers(_LIMITS)
    app.include_router(jobs.router)
    app.include_router(runs.router)
    app.include_router(connections.router)
    app.add_api_route("/static/{name}", _static, methods=["GET"])
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Mm2OffsetsError, _failed)
    app.add_exception_handler(Exception, _unexpected)
    return app


def _static(_user: User, name: Annotated[str, Path()]) -> Response:
    """Return the style sheet or the script."""
    if name not in ASSETS:
        raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such file")
    return asset(name)


async def _refused(request: Request, error: Exception) -> HTMLResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler's class
    login = None
    if error.status_code == HTTPStatus.UNAUTHORIZED:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        login = f"../../api/v2/auth/login?{urlencode({'next': here})}"
    page = _error_page(error.status_code, str(error.detail), login)
    page.headers.update(error.headers or {})
    return page


async def _invalid(_request: Request, error: Exception) -> HTMLResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler's class
    problem = validation_problem(error.errors())
    return _error_page(problem.status_code, str(problem.detail))


async def _failed(_request: Request, error: Exception) -> HTMLResponse:
    return _error_page(HTTPStatus.BAD_GATEWAY, str(error))


async def _unexpected(_request: Request, error: Exception) -> HTMLResponse:
    """Say no more than the error's kind: its text may hold anything. The server logs it."""
    kind = type(error).__name__
    return _error_page(
        HTTPStatus.INTERNAL_SERVER_ERROR, f"unexpected {kind}; see the API server's log"
    )


def _error_page(status: int, detail: str, login: str | None = None) -> HTMLResponse:
    title = HTTPStatus(status).phrase
    return render("error", status, title=title, detail=detail, login=login)
