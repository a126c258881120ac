"""Spring's placeholders: ``${NAME}``, ``${NAME:default}``, ``${NAME:${OTHER:default}}``."""

from collections.abc import Callable
from dataclasses import replace

from airflow_mm2_offsets.config.entries import Entry
from airflow_mm2_offsets.errors import ConfigurationError

_BEGIN, _END = "${", "}"


def resolve_placeholders(entry: Entry, look_up: Callable[[str], str | None]) -> Entry:
    """Return an entry with the placeholders in its value replaced.

    As Spring's ``PropertyPlaceholderHelper``: names and defaults may hold placeholders, and the
    value of a property is resolved as well.

    Raises:
        ConfigurationError: A name has neither a value nor a default, or refers to itself. Spring
            would keep the text, which would then be taken for the value.
    """
    try:
        return replace(entry, value=_resolve(entry.value, look_up, ()))
    except ConfigurationError as error:
        raise ConfigurationError(str(error), setting=entry.origin) from None


def _resolve(text: str, look_up: Callable[[str], str | None], open_names: tuple[str, ...]) -> str:
    before, begin, rest = text.partition(_BEGIN)
    if not begin:
        return text
    end = _end_of_placeholder(rest)
    if end is None:
        return text
    value = _value_of(rest[:end], look_up, open_names)
    return before + value + _resolve(rest[end + 1 :], look_up, open_names)


def _value_of(
    placeholder: str, look_up: Callable[[str], str | None], open_names: tuple[str, ...]
) -> str:
    if placeholder in open_names:
        raise ConfigurationError(f"refers to itself through ${{{placeholder}}}; correct it")
    opened = (*open_names, placeholder)
    inner = _resolve(placeholder, look_up, opened)
    name, colon, default = inner.partition(":")
    for candidate in (inner, name):
        value = look_up(candidate)
        if value is not None:
            return _resolve(value, look_up, opened)
    if colon:
        return default
    raise ConfigurationError(
        f"refers to ${{{name}}}, which has no value; set the variable {name}, or write a default: "
        f"${{{name}:...}}"
    )


def _end_of_placeholder(text: str) -> int | None:
    """Return where the placeholder that began before ``text`` ends; inner ones are passed over."""
    depth = 0
    at = 0
    while at < len(text):
        if text.startswith(_BEGIN, at):
            depth += 1
            at += len(_BEGIN)
            continue
        if text[at] == _END:
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return None
