"""Reads the fields of operators that may be templated strings."""

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.hooks.storage import storage_path

_SHARED_TRUTHS = (
    *("is_dry_run", "exchanged", "source_is_gone", "changed_records"),
    *("note_ids", "skip_damaged", "honours_drill", "show_keys"),
)

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


def parse_mode(task_id: str, value: object) -> FailoverMode:
    """Return the mode of a failover.

    Raises:
        ConfigurationError: It names no mode.
    """
    try:
        return FailoverMode(str(value))
    except ValueError as error:
        modes = [*FailoverMode]
        similar = did_you_mean(str(value), modes, otherwise="")
        raise ConfigurationError(
            f"task {task_id}: mode is {value!r}; {similar}{similar and ' '}give one of "
            f"{', '.join(modes)}"
        ) from error


def check_mode(task: BaseOperator) -> None:
    """Raise ConfigurationError where a task has a failover's mode that names none."""
    if "mode" in task.template_fields:  # a sensor's mode is Airflow's
        parse_mode(task.task_id, getattr(task, "mode", None))


def parse_common_settings(task: BaseOperator) -> None:
    """Parse the settings that tasks of a failover share, as far as a task has them.

    Raises:
        ConfigurationError: One is invalid.
    """
    for field in _SHARED_TRUTHS:
        if hasattr(task, field):
            is_true(task, field)
    check_mode(task)


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


def leaves_job_alone(task: BaseOperator) -> bool:
    """Tell whether the source job runs on, and nothing of it may be changed: drill and dry run.

    Raises:
        ConfigurationError: The task's ``mode`` or ``is_dry_run`` is invalid.
    """
    mode = parse_mode(task.task_id, getattr(task, "mode", FailoverMode.PLANNED))
    return mode is FailoverMode.DRILL or is_true(task, "is_dry_run")
