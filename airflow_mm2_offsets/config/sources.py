"""Settings as texts, read from a file and from the environment, each with its origin.

``load_settings`` calls ``read_entries``; the reader makes typed values of the entries.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import javaproperties

from airflow_mm2_offsets.config.mm2_offset_map_compat import (
    is_mm2_offset_map_key,
    translate_setting,
)
from airflow_mm2_offsets.errors import ConfigurationError

ENV_PREFIX = "MM2_OFFSETS_"
CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""The variable that names the settings file."""
_SPRING_JSON = "SPRING_APPLICATION_JSON"

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The text of one setting."""

    value: str = field(repr=False)
    """May be a secret."""
    origin: str
    """Where it came from: the key and its file, the variable, or the connection's field."""


Entries = dict[str, Entry]


def read_entries(
    file: Path | None, environ: Mapping[str, str], key_by_variable: Mapping[str, str]
) -> Entries:
    """Return every setting by its key; see ``load_settings``.

    ``key_by_variable`` maps a variable's name, in lower case and without the prefix, to its key.
    In a name that it lacks, each underscore stands for a dot.
    """
    if file is None and environ.get(CONFIG_VARIABLE):
        file = Path(environ[CONFIG_VARIABLE])
    return (_read_file(file) if file else {}) | _read_environment(environ, key_by_variable)


def _read_file(file: Path) -> Entries:
    try:
        text = file.read_text(encoding="utf-8")
        settings = dict(_PARSERS.get(file.suffix, _parse_properties)(text))
    except OSError as error:
        raise ConfigurationError(
            f"can't be read: {error.strerror}; check the path of the settings file and its "
            f"permissions",
            file=str(file),
        ) from error
    except ConfigurationError as error:
        raise ConfigurationError(str(error), file=str(file)) from error
    except ValueError as error:
        # The parser's message may quote a line with a secret.
        raise ConfigurationError(
            f"is not valid {file.suffix or '.properties'} in UTF-8 ({type(error).__name__}); "
            f"correct it",
            file=str(file),
        ) from None
    return _translate_keys(
        {key: Entry(value=value, origin=f"{key} in {file}") for key, value in settings.items()}
    )


def _read_environment(environ: Mapping[str, str], key_by_variable: Mapping[str, str]) -> Entries:
    entries = _read_spring_json(environ[_SPRING_JSON]) if _SPRING_JSON in environ else {}
    for variable, value in environ.items():
        entry = Entry(value=value, origin=f"variable {variable}")
        if _concerns_mm2_offset_map(variable):
            entries[variable] = entry
        elif variable.startswith(ENV_PREFIX) and variable != CONFIG_VARIABLE:
            name = variable.removeprefix(ENV_PREFIX).lower()
            entries[key_by_variable.get(name, name.replace("_", "."))] = entry
    return _translate_keys(entries)


def _read_spring_json(text: str) -> Entries:
    try:
        settings = list(_flatten(json.loads(text)))
    except ValueError:
        raise ConfigurationError(
            "is not a JSON object; correct it", setting=f"variable {_SPRING_JSON}"
        ) from None
    return {
        key: Entry(value=value, origin=f"{key} in variable {_SPRING_JSON}")
        for key, value in settings
        if _concerns_mm2_offset_map(key)
    }


def _translate_keys(entries: Entries) -> Entries:
    """Return the entries under this package's keys, which take precedence over mm2-offset-map's."""
    translated: Entries = {}
    ours: Entries = {}
    for key, entry in entries.items():
        if is_mm2_offset_map_key(key):
            for name, value in translate_setting(key, entry.value, entry.origin).items():
                translated[name] = Entry(value=value, origin=entry.origin)
        else:
            ours[key] = entry
    return translated | ours


def _concerns_mm2_offset_map(key: str) -> bool:
    """Tell whether a key or a variable is mm2-offset-map's, or looks like a misspelt one.

    Files and environments hold other programs' settings too, which are ignored. A misspelt one
    is kept, so that the reader can refuse it.
    """
    name = key.lower().replace(".", "_")
    is_similar = name.startswith("mm2_offset") and not name.startswith(ENV_PREFIX.lower())
    return is_similar or is_mm2_offset_map_key(key)


def _parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a file as ``java.util.Properties`` reads it."""
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


def _parse_yaml(text: str) -> Iterator[tuple[str, str]]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError as error:
        raise ConfigurationError(
            "settings in YAML need PyYAML; install it, or write them as .properties or .toml"
        ) from error
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(type(error).__name__) from None
    # The other keys of an application.yaml configure Spring.
    settings = [(key, value) for key, value in _flatten(content) if _concerns_mm2_offset_map(key)]
    if not settings:
        raise ConfigurationError(
            "no key begins with mm2.offset-map, and no other key is read from YAML; write other "
            "settings as .properties or .toml"
        )
    return iter(settings)


def _flatten(content: Any, prefix: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - as parsed
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else str(key))
    elif not prefix:
        raise ValueError("not a table")
    elif isinstance(content, list):
        yield prefix, ",".join(map(str, content))
    elif content is not None:
        yield prefix, str(content).lower() if isinstance(content, bool) else str(content)


_PARSERS: Mapping[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    ".toml": lambda text: _flatten(tomllib.loads(text)),
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
}
