"""Reads YAML with the line of each field, and refuses what PyYAML takes in silence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from airflow_mm2_offsets.errors import ConfigurationError

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a field."""
MAX_CHARACTERS = 2_000_000
"""A thousand jobs take a quarter of it."""
_DEEPEST = 6
"""A manifest has four levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a file, and where its fields are."""

    content: Any
    lines: dict[Path, int]
    """The line of each field, from 1."""

    def line(self, path: Path) -> int | None:
        """Return the line of a field, or of what it is to be in; None if neither is known."""
        return next(
            (
                self.lines[path[:end]]
                for end in range(len(path), -1, -1)
                if path[:end] in self.lines
            ),
            None,
        )


def parse_yaml(text: str, file: str) -> Document:
    """Parse one document of YAML.

    Raises:
        ConfigurationError: It is not YAML, too long or too deep, or a key is there twice: PyYAML
            would take the last.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigurationError(
            f"has {len(text)} characters, and {MAX_CHARACTERS} are read; split the manifest",
            file=file,
        )
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = dict(_walk(node, (), file)) if node is not None else {}
        return Document(content=yaml.safe_load(text), lines=lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigurationError(
            f"is not valid YAML{place}: {getattr(error, 'problem', None) or error}; correct it",
            file=file,
        ) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        # PyYAML raises it for a date that can't be, such as 2024-13-01.
        raise ConfigurationError("is not valid YAML: quote dates and numbers", file=file) from error


def _walk(node: yaml.Node, path: Path, file: str) -> Iterator[tuple[Path, int]]:
    if len(path) > _DEEPEST:
        raise ConfigurationError(
            f"is nested too deep at line {_line(node)}, or an anchor holds itself", file=file
        )
    yield path, _line(node)
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _walk(item, (*path, number), file)
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), _line(key)
            if name in seen:
                raise ConfigurationError(
                    f"{name} is at line {seen[name]} and again at line {line}; remove one of them",
                    file=file,
                )
            seen[name] = line
            yield from _walk(value, (*path, name), file)
            yield (*path, name), line


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
