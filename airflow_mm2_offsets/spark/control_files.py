"""Reads and writes the JSON files of a control location, for ``control``, ``fence`` and others."""

import json
from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, StopError
from airflow_mm2_offsets.spark.offset_log import parse_object
from airflow_mm2_offsets.storage import read_text, write_text

SCHEMA_VERSION = 1


def read_object(path: UPath, *, may_be_empty: bool = False) -> dict[str, Any] | None:
    """Return the object that a file holds; None if there is no such file.

    An empty file counts as absent if it ``may_be_empty``: a job may be just creating it, on a
    storage that can't replace a file as a whole.

    Raises:
        StopError: The file can't be read, or holds no JSON object.
    """
    text = read_text(path, StopError)
    if text is None or (may_be_empty and not text):
        return None
    try:
        return parse_object(text, str(path))
    except CheckpointError as error:
        raise StopError(f"{error}; delete the file if no job writes it any more") from error


def write_object(path: UPath, values: Mapping[str, Any]) -> None:
    """Write an object; a reader sees the new file or the old one, whole.

    Raises:
        StopError: The file can't be written.
    """
    write_text(path, json.dumps({"schema_version": SCHEMA_VERSION, **values}), StopError)


def field_of(values: Mapping[str, Any], name: str, kind: Any, place: UPath) -> Any:  # noqa: ANN401
    """Return a field of an object.

    Raises:
        StopError: The field is missing or of another kind.
    """
    value = values.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise StopError(f"{place}: {name} is {value!r} in {values!r}; is it a control location?")
    return value


def objects_of(values: Mapping[str, Any], name: str, place: UPath) -> list[dict[str, Any]]:
    """Return a field that holds a list of objects; an empty list if it is missing.

    Raises:
        StopError: It holds something else.
    """
    objects: list[Any] = field_of(values, name, list | None, place) or []
    for value in objects:
        if not isinstance(value, dict):
            raise StopError(f"{place}: {name} holds {value!r}; is it a control location?")
    return objects


def numbers_of(values: Mapping[str, Any], name: str, place: UPath) -> dict[int, int]:
    """Return a field that maps numbers to numbers; JSON has the keys as text.

    Raises:
        StopError: It holds something else.
    """
    numbers = field_of(values, name, dict | None, place) or {}
    try:
        return {int(key): int(value) for key, value in numbers.items()}
    except (TypeError, ValueError) as error:
        raise StopError(f"{place}: {name} is {numbers!r}; is it a control location?") from error
