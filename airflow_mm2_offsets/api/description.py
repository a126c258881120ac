"""Describes the app: ``/openapi.json`` for programs, ``/docs`` for people, both behind the login.

FastAPI's own routes would be open to all, and its pages load their scripts from another server.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from airflow_mm2_offsets.api.body import add_body_schemas
from airflow_mm2_offsets.api.docs_page import POLICY, docs_page
from airflow_mm2_offsets.api.problems import Json


def add_description(
    app: FastAPI, login: Sequence[Any], *, bodies: Sequence[type[BaseModel]]
) -> None:
    """Add the routes of the description, which is made once.

    Args:
        app: The app, with all other routes.
        login: The dependencies that check a request's login.
        bodies: The models of the bodies that routes take.
    """

    @cache
    def description() -> dict[str, Any]:
        return add_body_schemas(app.openapi(), *bodies)

    @app.get("/openapi.json", include_in_schema=False, dependencies=login)
    async def openapi() -> Json:
        return Json(description())

    @app.get("/docs", include_in_schema=False, dependencies=login)
    async def docs(request: Request) -> HTMLResponse:
        page = docs_page(description(), prefix=request.scope.get("root_path", ""))
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})
