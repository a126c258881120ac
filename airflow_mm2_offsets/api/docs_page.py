"""The page ``/docs``: the OpenAPI description as people read it; ``description`` serves it.

The server makes the page. It has no script and loads nothing, so it works where there is no
internet, and a policy forbids all else.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, TypeAlias

from airflow_mm2_offsets.api.schema_html import (
    Schema,
    code,
    fields_table,
    kind_of,
    meaning,
    presence,
    table,
)

Description: TypeAlias = Mapping[str, Any]

# The colours are the system's, for light and dark.
_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
h3 { border-top: 1px solid GrayText; margin-top: 2rem; padding-top: 1rem; }
h3, code { font-family: ui-monospace, monospace; overflow-wrap: break-word; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
caption { font-weight: bold; text-align: start; }
th, td { border: 1px solid GrayText; padding: 0.25rem 0.5rem; text-align: start; }
td { vertical-align: top; }
@media (max-width: 40rem) { table { display: block; overflow-x: auto; } }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'none'"
)
"""The page's Content-Security-Policy: its own style, and nothing else."""


def docs_page(description: Description, *, prefix: str) -> str:
    """Return the page of an OpenAPI description.

    Args:
        description: It may use what FastAPI and pydantic make; more is shown as ``any``.
        prefix: The path at which the app is mounted; the paths of routes begin with it.
    """
    info = description["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    content = "\n".join(
        (
            f"<h1>{title}</h1>",
            f"<p>{escape(info['summary'])}</p>",
            '<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>',
            *_login(description),
            *_routes(description, prefix),
            *_models(description),
        )
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{content}\n</main></body></html>\n"
    )


def _login(description: Description) -> Iterator[str]:
    schemes = description["components"].get("securitySchemes", {})
    if schemes:
        kinds = (code(scheme.get("scheme") or scheme["type"]) for scheme in schemes.values())
        yield f"<p>Login: {' or '.join(kinds)}.</p>"


def _operations(description: Description) -> Iterator[tuple[str, str, Schema]]:
    """Yield method, path and description of each route."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _routes(description: Description, prefix: str) -> Iterator[str]:
    yield '<h2>Routes</h2><nav aria-label="Routes"><ul>'
    for method, path, operation in _operations(description):
        name, text = escape(f"{method} {prefix}{path}"), escape(operation.get("description", ""))
        yield f'<li><a href="#{_anchor(operation)}">{name}</a> {text}</li>'
    yield "</ul></nav>"
    for method, path, operation in _operations(description):
        name = escape(f"{method} {prefix}{path}")
        yield f'<h3 id="{_anchor(operation)}">{name}</h3>'
        yield f"<p>{escape(operation.get('description', ''))}</p>"
        yield from _parameters(operation)
        yield from _body(operation)
        yield _answers(operation)


def _anchor(operation: Schema) -> str:
    return escape(operation["operationId"])


def _parameters(operation: Schema) -> Iterator[str]:
    parameters = operation.get("parameters")
    if parameters:
        rows = (
            (
                code(each["name"]),
                kind_of(each["schema"]),
                presence(each["schema"], required=each.get("required", False)),
                meaning(each["schema"]),
            )
            for each in parameters
        )
        yield table("Parameters of the query", ("Name", "Type", "Required", "Meaning"), rows)


def _body(operation: Schema) -> Iterator[str]:
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body: {kind_of(content['schema'])}, {code(media_type)}</p>"


def _answers(operation: Schema) -> str:
    rows = (
        (code(status), kind_of(content["schema"]), code(media_type), escape(answer["description"]))
        for status, answer in operation["responses"].items()
        for media_type, content in answer.get("content", {}).items()
    )
    return table("Answers", ("Status", "Body", "Content-Type", "Meaning"), rows)


def _models(description: Description) -> Iterator[str]:
    yield "<h2>Models</h2>"
    models = description["components"]["schemas"] | dict(_models_within(description["paths"]))
    for name, schema in sorted(models.items()):
        yield f'<h3 id="{escape(name)}">{escape(name)}</h3>'
        yield f"<p>{escape(schema.get('description', ''))}</p>"
        if "properties" in schema:
            yield fields_table(f"Fields of {name}", schema)
        else:
            yield f"<p>{kind_of(schema)}</p>"


def _models_within(part: object) -> Iterator[tuple[str, Schema]]:
    """Yield the models that stand in a part of the description itself, such as the problem."""
    if isinstance(part, Mapping):
        if "properties" in part and "title" in part:
            yield part["title"], part
        for value in part.values():
            yield from _models_within(value)
    elif isinstance(part, list):
        for value in part:
            yield from _models_within(value)
