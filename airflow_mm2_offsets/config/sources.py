"""Settings as they stand in files and in the environment, each with the place that it came from."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import javaproperties

from airflow_mm2_offsets.config.mm2_offset_map_compat import from_spring, is_spring
from airflow_mm2_offsets.errors import ConfigurationError

ENV_PREFIX = "MM2_OFFSETS_"
CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""The variable that names the file, where none is given."""
_SPRING_JSON = "SPRING_APPLICATION_JSON"

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A setting."""

    value: str = field(repr=False)
    """May be a secret."""
    origin: str
    """Where it stands: the key and its file, or the variable."""


Entries = dict[str, Entry]


def read_entries(
    file: Path | None, environ: Mapping[str, str], names: Mapping[str, str]
) -> Entries:
    """Return every setting by its key; the environment counts more than the file.

    Args:
        file: ``.properties``, ``.toml`` or ``.yaml``; None: what ``MM2_OFFSETS_CONFIG`` names.
        environ: The environment.
        names: The keys that variables stand for, where they are not words joined by dots.

    Raises:
        ConfigurationError: The file can't be read.
    """
    if file is None and environ.get(CONFIG_VARIABLE):
        file = Path(environ[CONFIG_VARIABLE])
    return (_of_file(file) if file else {}) | _of_environment(environ, names)


def _of_file(file: Path) -> Entries:
    try:
        text = file.read_text(encoding="utf-8")
        pairs = dict(_READERS.get(file.suffix, _properties)(text))
    except OSError as error:
        raise ConfigurationError(
            f"the settings file {file} can't be read: {error.strerror}; give the path of one"
        ) from error
    except ConfigurationError as error:
        raise ConfigurationError(f"the settings file {file}: {error}") from error
    except ValueError as error:
        # What the parser says may quote a line with a secret.
        raise ConfigurationError(
            f"the settings file {file} is not {file.suffix or '.properties'} in UTF-8 "
            f"({type(error).__name__}); correct it"
        ) from None
    return _named(
        {key: Entry(value=value, origin=f"{key} in {file}") for key, value in pairs.items()}
    )


def _of_environment(environ: Mapping[str, str], names: Mapping[str, str]) -> Entries:
    found: Entries = {}
    if _SPRING_JSON in environ:
        try:
            pairs = _flat(json.loads(environ[_SPRING_JSON]))
            found = {
                key: Entry(value=value, origin=f"{key} in variable {_SPRING_JSON}")
                for key, value in pairs
                if is_spring(key) or _may_be_meant(key)
            }
        except (ValueError, AttributeError):
            raise ConfigurationError(
                f"variable {_SPRING_JSON} is not a JSON object; correct it"
            ) from None
    for variable, value in environ.items():
        key = variable.removeprefix(ENV_PREFIX).lower()
        if is_spring(variable) or _may_be_meant(variable):
            found[variable] = Entry(value=value, origin=f"variable {variable}")
        elif variable.startswith(ENV_PREFIX) and variable != CONFIG_VARIABLE:
            name = names.get(key, key.replace("_", "."))
            found[name] = Entry(value=value, origin=f"variable {variable}")
    return _named(found)


def _named(found: Entries) -> Entries:
    """Return the settings under our names; those of mm2-offset-map count less."""
    theirs: Entries = {}
    for key, entry in found.items():
        if is_spring(key):
            for name, value in from_spring(key, entry.value, entry.origin).items():
                theirs[name] = Entry(value=value, origin=entry.origin)
    return theirs | {key: entry for key, entry in found.items() if not is_spring(key)}


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a file as ``java.util.Properties`` reads it."""
    line = 1
    try:
        for element in javaproperties.parse(text):
            line += len(_LINE_END.findall(element.source))
            if isinstance(element, javaproperties.KeyValue):
                yield element.key, element.value
    except javaproperties.InvalidUEscapeError:
        # The library's message quotes the value, which may be a secret.
        raise ConfigurationError(
            f"line {line} has \\u without four hexadecimal digits; write a backslash as \\\\"
        ) from None


def _toml(text: str) -> Iterator[tuple[str, str]]:
    return _flat(tomllib.loads(text))


def _yaml(text: str) -> Iterator[tuple[str, str]]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError as error:
        raise ConfigurationError(
            "settings in YAML need PyYAML: install it, or write them as .properties or .toml"
        ) from error
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(type(error).__name__) from None
    # Of an application.yaml only what is ours: the rest configures Spring.
    ours = [pair for pair in _flat(content) if is_spring(pair[0]) or _may_be_meant(pair[0])]
    if not ours:
        raise ConfigurationError(
            "settings in YAML are those below mm2.offset-map, and there are none; write settings "
            "under other names as .properties or .toml"
        )
    return iter(ours)


def _may_be_meant(key: str) -> bool:
    """Tell whether a key or a variable that is nobody else's is none that is read."""
    key = key.lower().replace(".", "_")
    return key.startswith("mm2_offset") and not key.startswith(ENV_PREFIX.lower())


def _flat(content: Any, prefix: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - as parsed
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    elif not prefix:
        raise ValueError("not a table")
    elif isinstance(content, list):
        yield prefix, ",".join(str(each) for each in content)
    elif content is not None:
        yield prefix, str(content).lower() if isinstance(content, bool) else str(content)


_READERS: Mapping[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}
