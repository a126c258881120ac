"""Reads the fields of operators that may be templated strings."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.errors import ConfigurationError, PositionError, as_class
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.job_positions import JobPositions, parse_job_positions

_TRUTH = {"true": True, "false": False, "": False, "none": False}
"""Jinja writes a param that is null as ``None``."""


def is_true(task: BaseOperator, field: str) -> bool:
    """Return a field of an operator that is a truth value.

    Raises:
        ConfigurationError: It is a text other than True or False.
    """
    return parse_truth(task.task_id, field, getattr(task, field))


def parse_truth(task_id: str, field: str, value: object) -> bool:
    """Return a truth value that a template may have rendered; see ``is_true``."""
    try:
        return _TRUTH[str(value).lower()]
    except KeyError as error:
        raise ConfigurationError(
            f"task {task_id}: {field} is {value!r}; give True or False"
        ) from error


def parse_mapping(task: BaseOperator, field: str, names: Collection[str]) -> Mapping[str, Any]:
    """Return a field that is a mapping with some of ``names``, or the same as JSON text.

    Raises:
        ConfigurationError: It is something else, or a name is unknown.
    """
    given_value = value = getattr(task, field)
    if isinstance(value, str):
        try:
            value = json.loads(value) if given(value) else None
        except ValueError:
            value = given_value
    if value is None:
        return {}
    if not isinstance(value, Mapping) or set(value) - set(names):
        raise ConfigurationError(
            f"task {task.task_id}: {field} is {given_value!r}; give a mapping, or JSON, with names "
            f"of {', '.join(names)}"
        )
    return value


def whole_number(task: BaseOperator, field: str) -> int:
    """Return a field that is a whole number, from 0.

    Raises:
        ConfigurationError: It is something else.
    """
    value = getattr(task, field)
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise ConfigurationError(
            f"task {task.task_id}: {field} is {value!r}; give a whole number, from 0"
        )
    return number


def check_location(task: BaseOperator, field: str) -> None:
    """Raise ConfigurationError where a field is a location that can't be opened from here."""
    if (location := given(getattr(task, field))) is None:
        return
    try:
        storage_path(location)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"task {task.task_id}: {field} is {location!r}, which can't be opened: {error}"
        ) from error


def given(value: object) -> str | None:
    """Return an optional text; Jinja writes a param that is null as "None"."""
    return None if value is None or str(value) in {"", "None"} else str(value)


def positions_of(task: BaseOperator) -> JobPositions:
    """Return a task's field ``positions``; see ``parse_job_positions``.

    Raises:
        PositionError: It is something else.
    """
    try:
        return parse_job_positions(getattr(task, "positions", None))
    except PositionError as error:
        message = f"task {task.task_id}: positions: {error}"
        raise as_class(PositionError, error, message) from error


def given_positions(task: BaseOperator) -> JobPositions | None:
    """Return ``positions`` that a user may have given a task; None if there are none.

    Raises:
        PositionError: They are something else.
    """
    return None if getattr(task, "positions", None) in (None, "", "None") else positions_of(task)
