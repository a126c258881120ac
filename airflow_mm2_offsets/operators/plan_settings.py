"""Reads what a user decides about a plan; the operators that make a plan, or try one, call it.

``TranslateOffsetsOperator``, and operators that try the plan before it is made, take them as one
mapping, ``options``.
"""

from collections.abc import Mapping
from typing import NamedTuple

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.forecast import ForecastRequest
from airflow_mm2_offsets.core.policy import DISASTER
from airflow_mm2_offsets.errors import ConfigurationError, PlanError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.settings import given, parse_mapping, parse_truth
from airflow_mm2_offsets.planning.forecast import parse_lost_at
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS, PlanOptions, parse_plan_options
from airflow_mm2_offsets.planning.plan_file import read_plan

SKIP_DAMAGED, FIRST_PLAN = "skip_damaged", "first_plan"
LOST_AT, MAX_RATE = "lost_at", "max_rate"
PLAN_SETTINGS = (*PLAN_OPTIONS, SKIP_DAMAGED, FIRST_PLAN, LOST_AT, MAX_RATE)
"""The options of ``TranslateOffsetsOperator``: what its plan answers, and what its forecast counts
with."""


class TrialSettings(NamedTuple):
    """What a trial plan is made with; the archive is not opened yet."""

    options: PlanOptions
    skip_damaged: bool
    first_plan: str | None
    """The file that the user names."""
    lost_at: str | None
    """When the source was lost by the user's word: ISO 8601 with its zone."""
    max_rate: float | None
    """How many records per second each topic-partition was written at, at most."""


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


def parse_trial_settings(task: BaseOperator, **defaults: object) -> TrialSettings:
    """Return what a task is to try a plan with.

    Args:
        task: Its field ``options`` has values by the names of ``PLAN_SETTINGS``, or the same as
            JSON text.
        defaults: Values that count where ``options`` has none.

    Raises:
        ConfigurationError: A name is unknown, or a value is invalid.
    """
    values = {**defaults, **parse_mapping(task, "options", PLAN_SETTINGS)}
    return TrialSettings(
        options=parse_plan_settings(values),
        skip_damaged=parse_truth(task.task_id, SKIP_DAMAGED, values.get(SKIP_DAMAGED)),
        first_plan=given(values.get(FIRST_PLAN)),
        lost_at=_parse_lost_at(given(values.get(LOST_AT))),
        max_rate=_parse_rate(given(values.get(MAX_RATE))),
    )


def read_named_plan(location: str) -> FailoverPlan:
    """Return the plan that a job was moved by, from its file.

    Raises:
        PlanError: The file is not there, or holds no plan that can be used.
    """
    plan = read_plan(storage_path(location))
    if plan is None:
        raise PlanError(
            "there is no such file, and the way home needs the plan that the job was moved by: "
            "restore it, or give another as first_plan",
            file=location,
        )
    return plan


def _parse_lost_at(text: str | None) -> str | None:
    parse_lost_at(ForecastRequest(policy=DISASTER, plan_digest="", lost_at=text))
    return text


def _parse_rate(text: str | None) -> float | None:
    """Return a rate as a number.

    Raises:
        ConfigurationError: It is not a number from 0.
    """
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise ConfigurationError(
            f"{text!r} is not a number of records per second, from 0", setting=MAX_RATE
        )
    return rate
