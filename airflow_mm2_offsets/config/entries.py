"""One setting as text, with its origin; every module of ``config`` hands such entries on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The text of one setting."""

    value: str = field(repr=False)
    """May be a secret."""
    origin: str
    """Where it came from: the key and its file, the variable, or the connection's field."""
    absent: str = ""
    """Why the file does not have the value, such as a secret of Kubernetes; empty: it has it."""


Entries: TypeAlias = dict[str, Entry]


def with_prefix_stripped(entries: Mapping[str, Entry], prefix: str) -> Entries:
    """Return the entries whose keys begin with ``prefix``, without it."""
    return {
        key.removeprefix(prefix): entry
        for key, entry in entries.items()
        if key.startswith(prefix) and key != prefix
    }


def flatten(content: Any, prefix: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - as parsed
    """Yield the texts of nested tables, their keys joined by dots.

    A key in brackets (``"[security.protocol]"``) joins without a dot, as in Spring Boot's
    ``OriginTrackedYamlLoader``. Nulls are left out.

    Raises:
        ValueError: The outermost value is not a table.
    """
    if isinstance(content, Mapping):
        for key, value in content.items():
            dot = "." if prefix and not str(key).startswith("[") else ""
            yield from flatten(value, f"{prefix}{dot}{key}")
    elif not prefix:
        raise ValueError("not a table")
    elif isinstance(content, list):
        yield prefix, ",".join(map(_text, content))
    elif content is not None:
        yield prefix, _text(content)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
