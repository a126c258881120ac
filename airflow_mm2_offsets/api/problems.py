"""Turns errors into RFC 9457 problems, which hold no secret."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPMethod, HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterUnreachableError,
    ConnectError,
    Mm2OffsetsError,
    PositionError,
    SyncsTopicError,
    TopicNotFoundError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5
_MAX_ERRORS = 10
_MAX_PART = 100
_UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE

_STATUS: Mapping[type[Mm2OffsetsError], HTTPStatus] = {
    PositionError: HTTPStatus.BAD_REQUEST,
    TopicNotFoundError: HTTPStatus.NOT_FOUND,
    SyncsTopicError: _UNAVAILABLE,
    ClusterUnreachableError: _UNAVAILABLE,
    ClusterRefusedError: HTTPStatus.BAD_GATEWAY,
    ConnectError: HTTPStatus.BAD_GATEWAY,
}
"""Every other Mm2OffsetsError is 500: the server's settings or its archive are wrong."""


class FieldError(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class ProblemBody(BaseModel):
    """The body of an error (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = Field(None, examples=["query.offset", "body.offsetList.3.startOffset"])
    """The first field at fault."""
    errors: list[FieldError] | None = None
    translation: dict[str, Any] | None = None
    """The refusal, if a position was refused."""
    id: str | None = None
    """Look for it in the server's log."""
    cluster: str | None = Field(None, examples=["source"])
    """The subject of the error: this and the fields below."""
    servers: str | None = None
    topic: str | None = None
    partition: int | None = None
    position: str | None = None
    file: str | None = None
    setting: str | None = None


class Problem(HTTPException):
    """An error as an answer. It is an HTTPException, which FastAPI does not catch."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Say what is wrong; see ``ProblemBody``."""
        if status == _UNAVAILABLE:
            headers = {"Retry-After": str(RETRY_SECONDS)} | dict(headers or {})
        super().__init__(status, detail, headers)
        self.more = {"field": field} | more

    def response(self) -> JSONResponse:
        """Return what to answer."""
        body = {
            "type": "about:blank",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": self.detail,
            **{name: value for name, value in self.more.items() if value is not None},
        }
        return Json(body, self.status_code, self.headers, media_type=MEDIA_TYPE)


class Json(JSONResponse):
    """JSON in ASCII: it can hold any input, such as half a surrogate pair.

    Times are texts that Java's ``Instant.parse`` reads on every version: they end in Z. Other
    values may be objects with a method ``to_json``. The elements of long lists should be such
    objects: the encoder holds Python's lock, and gives it up only while it calls that method.
    """

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - whatever is JSON
        """Return the bytes."""
        text = json.dumps(content, separators=(",", ":"), allow_nan=False, default=_to_json)
        return text.encode("ascii")


def _to_json(value: Any) -> Any:  # noqa: ANN401 - as json calls it
    if isinstance(value, datetime):
        text = value.astimezone(UTC).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    return value.to_json()


def _schema(description: str) -> dict[str, Any]:
    schema = ProblemBody.model_json_schema()
    # The nested model can't be referred to from the description of the app.
    schema["properties"]["errors"]["anyOf"][0]["items"] = schema.pop("$defs")["FieldError"]
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": _schema("The request is wrong, or has no answer."),
    "5XX": _schema("The server, or a cluster that it needs, failed."),
}


def install(app: FastAPI) -> None:
    """Make every error of ``app`` a problem."""
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(Mm2OffsetsError, _our_problem)


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, Problem):
        assert isinstance(error, HTTPException)  # noqa: S101 - the handler's class
        headers = error.headers
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers = {"Allow": ", ".join(sorted(_methods(request)))}
        error = Problem(error.status_code, str(error.detail), headers=headers)
    return error.response()


def _methods(request: Request) -> Iterator[str]:
    """Yield the methods that any route with the path takes: Starlette names the first route's."""
    for method in HTTPMethod:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            yield method


async def _validation_problem(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler's class
    return validation_problem(error.errors()).response()


def validation_problem(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of pydantic's errors, without the values of the request."""
    field_errors = [
        # A key of the request may be as long as its body.
        {"field": ".".join(str(part)[:_MAX_PART] for part in each["loc"]), "message": each["msg"]}
        for each in errors[:_MAX_ERRORS]
    ]
    first = field_errors[0]
    too_many = errors[0]["type"] == "too_long"
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE if too_many else HTTPStatus.BAD_REQUEST,
        f"{first['field']}: {first['message']}",
        field=first["field"],
        errors=field_errors,
    )


async def _our_problem(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Mm2OffsetsError)  # noqa: S101 - the handler's class
    matching = (status for kind, status in _STATUS.items() if isinstance(error, kind))
    return problem_of(error, next(matching, HTTPStatus.INTERNAL_SERVER_ERROR)).response()


def problem_of(error: Mm2OffsetsError, status: int, *, detail: str = "", **more: Any) -> Problem:
    """Return the problem of an error, with the error's fields.

    Args:
        error: Its message becomes the detail.
        status: The HTTP status.
        detail: Replaces the error's message.
        more: Further fields, see ``ProblemBody``.
    """
    fields = error.to_json()
    message = fields.pop("message")
    del fields["kind"]
    return Problem(status, detail or message, **more, **fields)
