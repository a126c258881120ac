"""The parts of an OpenAPI schema as HTML: its type, its limits, its fields; ``docs_page`` uses it.

Every text of the description is escaped here, so what is returned is safe to join.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "minProperties": "keys at least {}",
    "maxProperties": "keys at most {}",
    "maxItems": "elements at most {}",
    "pattern": "matches {}",
}


def code(value: object) -> str:
    """Return a value as HTML code."""
    return f"<code>{escape(str(value))}</code>"


def table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; caption and head are texts, the cells of ``rows`` HTML."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"
    )


def fields_table(caption: str, schema: Schema) -> str:
    """Return a table of an object's fields."""
    required = schema.get("required", ())
    rows = (
        (code(name), kind_of(field), presence(field, required=name in required), meaning(field))
        for name, field in schema["properties"].items()
    )
    return table(caption, ("Field", "Type", "Required", "Meaning"), rows)


def presence(schema: Schema, *, required: bool) -> str:
    """Return whether a value must be there, or what it is without one."""
    if required:
        return "yes"
    default = schema.get("default")
    return "no" if default is None else f"no: {code(json.dumps(default))}"


def meaning(schema: Schema) -> str:
    """Return the description, the limits and an example of a value."""
    parts = [escape(schema["description"])] if "description" in schema else []
    if limits := sorted({*_limits(schema)}):
        parts.append("; ".join(limits))
    if examples := schema.get("examples"):
        parts.append(f"Example: {code(json.dumps(examples[0]))}")
    return "<br>".join(parts)


def kind_of(schema: Schema) -> str:
    """Return the type of a value; a model is a link to its fields."""
    if model := _model_of(schema):
        return link(model)
    if "anyOf" in schema:
        return " or ".join(map(kind_of, schema["anyOf"]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return " or ".join(code(json.dumps(value)) for value in values)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {kind_of(schema['items'])}"
    if kind == "object":
        kinds = " or ".join(_kinds_of_values(schema))
        return f"object of {kinds}" if kinds else "object"
    return escape(schema.get("format", kind))


def link(model: str) -> str:
    """Return a link to a model of the page."""
    return f'<a href="#{escape(model)}">{escape(model)}</a>'


def _model_of(schema: Schema) -> str | None:
    """Return the name of the model that a schema refers to, or is; None for any other."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return schema.get("title") if "properties" in schema else None


def _kinds_of_values(schema: Schema) -> Iterator[str]:
    """Yield the types of the values of an object whose keys are data."""
    yield from map(kind_of, schema.get("patternProperties", {}).values())
    if isinstance(more := schema.get("additionalProperties"), Mapping):
        yield kind_of(more)


def _limits(schema: Schema) -> Iterator[str]:
    for name, text in _BOUNDS.items():
        if name in schema:
            yield text.format(code(schema[name]))
    for part in schema.get("anyOf", ()):
        yield from _limits(part)
