"""Reads the JSON body of a request after the login, and parses a large one in a thread.

FastAPI parses a parameter's body before any dependency runs, on the event loop. A client without a
login could then occupy the server with one large body. Here the body is a dependency too, so that
it comes after the login.
"""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from airflow_mm2_offsets.api.problems import Problem, validation_problem

INLINE_BYTES = 64 * 1024
"""Up to this size a body is parsed on the event loop: a thread would take longer."""
_REFERENCE = "#/components/schemas/{model}"

Model = TypeVar("Model", bound=BaseModel)


def json_body(model: type[Model]) -> Callable[[Request], Coroutine[Any, Any, Model]]:
    """Return a dependency that reads a request's body as ``model``.

    A route that uses it passes ``body_schema(model)`` as its ``openapi_extra``.

    The dependency raises a ``Problem`` unless the body is JSON of such a model.
    """

    async def read(request: Request) -> Model:
        _require_json(request.headers.get("content-type", ""))
        try:
            content = await request.body()
        except ClientDisconnect:
            raise Problem(HTTPStatus.BAD_REQUEST, "the client hung up within the body") from None
        if len(content) <= INLINE_BYTES:
            return _parse(model, content)
        return await run_in_threadpool(_parse, model, content)

    return read


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the ``openapi_extra`` of a route with such a body."""
    reference = {"$ref": _REFERENCE.format(model=model.__name__)}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": reference}}}
    }


def add_body_schemas(openapi: dict[str, Any], *models: type[BaseModel]) -> dict[str, Any]:
    """Add to an OpenAPI description the models that its bodies refer to."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template=_REFERENCE
    )
    openapi["components"]["schemas"].update(schemas["$defs"])
    return openapi


def _require_json(content_type: str) -> None:
    """Refuse the types that a page of another site may send in a user's name, without asking."""
    name = content_type.partition(";")[0].strip().lower()
    if name != "application/json" and not (
        name.startswith("application/") and name.endswith("+json")
    ):
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"the body must be JSON, and its Content-Type is {name[:100] or 'missing'}; send "
            f"Content-Type: application/json",
            field="header.content-type",
        )


def _parse(model: type[Model], content: bytes) -> Model:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        # The values and the URLs of pydantic's documents are not for the answer.
        errors = error.errors(include_url=False, include_context=False, include_input=False)
    raise validation_problem([each | {"loc": ("body", *each["loc"])} for each in errors])
