"""The options that operators, REST and the command line share."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_mm2_offsets.api.plan_models import PlanRequest
from airflow_mm2_offsets.core import OnUnmapped, Strategy
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.planning.options import (
    PLAN_OPTIONS,
    PlanOptions,
    parse_plan_options,
)


def test_rest_takes_every_option_with_its_default() -> None:
    """Under the same name, with the same explanation."""
    request = PlanRequest.model_validate({"positions": {"orders": {"0": 1}}})
    assert request.options() == PlanOptions()
    shown = {
        name: field.description
        for name, field in PlanRequest.model_fields.items()
        if name not in {"positions", "pending"}
    }
    assert shown == {name: each.metadata["explanation"] for name, each in PLAN_OPTIONS.items()}


@pytest.mark.parametrize("to_argument", [dict, json.dumps], ids=["mapping", "JSON"])
def test_the_operator_takes_every_option_with_its_default(to_argument: Callable[..., Any]) -> None:
    """Under the same name, in its one argument for them."""
    defaults = {name: option.default for name, option in PLAN_OPTIONS.items()}
    for options in (None, "", to_argument({}), to_argument(defaults)):
        task = TranslateOffsetsOperator(task_id="translate", options=options)
        assert task.parse_settings().options == PlanOptions()


def test_the_operator_takes_every_option_with_another_value() -> None:
    """Each value comes to the option of its name."""
    options = {
        "strategy": "linear",
        "read_source": False,
        "sole_writer": True,
        "changed_records": True,
        "max_evidence_bytes": 5,
        "on_unmapped": "timestamp",
        "unmapped_time": "2026-11-21T10:10:00+01:00",
        "unmapped_margin": 1.5,
        "give_up": 12,
    }
    assert options.keys() == PLAN_OPTIONS.keys()
    task = TranslateOffsetsOperator(task_id="translate", options=options)
    assert task.parse_settings().options == PlanOptions(
        strategy=Strategy.LINEAR,
        read_source=False,
        sole_writer=True,
        changed_records=True,
        max_evidence_bytes=5,
        on_unmapped=OnUnmapped.TIMESTAMP,
        unmapped_time=datetime(2026, 11, 21, 9, 10, tzinfo=UTC),
        unmapped_margin=1.5,
        give_up=12,
    )


def test_texts_count_as_the_values_that_they_name() -> None:
    """A template renders every value as text."""
    assert parse_plan_options(
        {
            "strategy": "linear",
            "read_source": "False",
            "changed_records": "true",
            "max_evidence_bytes": "5",
            "on_unmapped": "timestamp",
            "unmapped_time": "2026-11-21T10:10:00+01:00",
            "unmapped_margin": "1.5",
        }
    ) == PlanOptions(
        strategy=Strategy.LINEAR,
        read_source=False,
        changed_records=True,
        max_evidence_bytes=5,
        on_unmapped=OnUnmapped.TIMESTAMP,
        unmapped_time=datetime(2026, 11, 21, 9, 10, tzinfo=UTC),
        unmapped_margin=1.5,
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("strategy", "best", "'best' is not one of safe, linear, kafka"),
        ("read_source", "yes", "'yes' is not True or False"),
        ("max_evidence_bytes", -1, "-1 is not a number from 0"),
        ("max_evidence_bytes", 1.5, "1.5 is not a number from 0"),
        ("give_up", "-1", "'-1' is not a number from 0"),
        ("unmapped_margin", "inf", "'inf' is not a number from 0 to 10000000"),
        ("unmapped_margin", "nan", "'nan' is not a number from 0 to 10000000"),
        (
            "unmapped_time",
            "2026-11-21T09:10:00",
            "'2026-11-21T09:10:00' is not a time with its zone, such as 2026-11-21T09:10:00+00:00",
        ),
    ],
)
def test_a_wrong_value_names_its_option(name: str, value: Any, message: str) -> None:  # noqa: ANN401
    """And says what the value must be."""
    with pytest.raises(ConfigurationError) as raised:
        parse_plan_options({name: value})
    assert str(raised.value) == f"{name}: {message}"
    assert raised.value.fields == {"setting": name}


def test_a_time_without_a_zone_is_refused_in_python_too() -> None:
    """The options are also made without a parser."""
    with pytest.raises(ConfigurationError, match="is not a time with its zone") as raised:
        PlanOptions(unmapped_time=datetime(2026, 11, 21, 9, 10))  # noqa: DTZ001 - the case
    assert raised.value.fields == {"setting": "unmapped_time"}
