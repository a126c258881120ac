"""Reads what a user decides about a plan; the operators that make a plan, or try one, call it.

``TranslateOffsetsOperator`` has these settings as arguments. Operators that try the plan before it
is made take them as one mapping, ``plan_options``.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.operators.first_plan import read_named_plan, read_plan_of_fence
from airflow_mm2_offsets.operators.settings import given, is_true, parse_truth
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS, PlanOptions, parse_plan_options

SKIP_DAMAGED, FIRST_PLAN = "skip_damaged", "first_plan"
PLAN_SETTINGS = (*PLAN_OPTIONS, SKIP_DAMAGED, FIRST_PLAN)
"""The arguments of ``TranslateOffsetsOperator`` that decide what its plan answers."""


class TrialSettings(NamedTuple):
    """What a trial plan is made with; the archive is not opened yet."""

    options: PlanOptions
    skip_damaged: bool
    first_plan: str | None
    """The file that the user names."""


def plan_settings_of(task: BaseOperator) -> dict[str, Any]:
    """Return the settings of a task that translates, as ``plan_options`` takes them."""
    return {name: getattr(task, name) for name in PLAN_SETTINGS}


def parse_plan_settings(values: Mapping[str, object]) -> PlanOptions:
    """Return the options of values that templates may have rendered.

    Raises:
        ConfigurationError: A value is invalid. The field ``setting`` names the option.
    """
    # Jinja writes a param that is null as "None".
    return parse_plan_options(
        {
            name: None if value == "None" else value
            for name, value in values.items()
            if name in PLAN_OPTIONS
        }
    )


def parse_trial_settings(
    task: BaseOperator, plan_options: Mapping[str, Any] | str | None, **defaults: object
) -> TrialSettings:
    """Return what a task is to try a plan with.

    Args:
        task: The task; messages name it.
        plan_options: Values by the names of ``PLAN_SETTINGS``, or the same as JSON text.
        defaults: Values that count where ``plan_options`` has none.

    Raises:
        ConfigurationError: A name is unknown, or a value is invalid.
    """
    values = {**defaults, **_parse_mapping(task, plan_options)}
    return TrialSettings(
        options=parse_plan_settings(values),
        skip_damaged=parse_truth(task.task_id, SKIP_DAMAGED, values.get(SKIP_DAMAGED)),
        first_plan=given(values.get(FIRST_PLAN)),
    )


def with_first_plan(
    task: BaseOperator, settings: TrialSettings, home_control: str | None
) -> tuple[PlanOptions, str | None]:
    """Return the options with the plan that the job was moved by, and why that can't be read.

    ``home_control`` is the control location that the job returns to: its fence names the plan if
    the user does not. Only a task with ``exchanged`` has one.
    """
    if not is_true(task, "exchanged"):
        return settings.options, None
    try:
        if settings.first_plan:
            plan = read_named_plan(settings.first_plan)
            return replace(settings.options, first_plan=plan), None
        return replace(settings.options, first_plan=read_plan_of_fence(home_control)), None
    except Mm2OffsetsError as error:
        return settings.options, str(error)


def _parse_mapping(
    task: BaseOperator, plan_options: Mapping[str, Any] | str | None
) -> Mapping[str, Any]:
    value: Any = plan_options
    if isinstance(value, str):
        try:
            value = json.loads(value) if given(value) else None
        except ValueError:
            value = plan_options
    if value is None:
        return {}
    if not isinstance(value, Mapping) or (set(value) - set(PLAN_SETTINGS)):
        raise ConfigurationError(
            f"task {task.task_id}: plan_options is {plan_options!r}; give a mapping, or JSON, "
            f"with names of {', '.join(PLAN_SETTINGS)}"
        )
    return value
