"""Options that are numbers: what they refuse, and how."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from airflow_mm2_offsets.cli.app import PROGRAM, app
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.numbers import MOST, Number
from airflow_mm2_offsets.cli.params import Option, parameter_of
from tests.unit.cli.test_lazy import CONTEXTS


def _numbers() -> Iterator[tuple[str, str, Number]]:
    for context in CONTEXTS:
        for option in context.command.params:
            if isinstance(option.type, Number):
                yield context.command_path.partition(" ")[2], option.opts[0], option.type


NUMBERS = [*_numbers()]


@pytest.mark.parametrize(("command", "flag", "kind"), NUMBERS)
def test_what_is_no_number_in_the_limits_is_refused(command: str, flag: str, kind: Number) -> None:
    """Each option refuses them with its name, the value, and what is allowed."""
    wrong = ["nan", "inf", "-inf", "-1", "1e300", str(10**30), "", "ten", str(kind.high + 1)]
    for value in wrong:
        shown = CliRunner().invoke(app, [*command.split(), flag, value], prog_name=PROGRAM)
        assert shown.exit_code == ExitCode.USAGE, value
        (error,) = [line for line in shown.stderr.splitlines() if line.startswith("Error: ")]
        assert error.startswith(f"Error: Invalid value for '{flag}': {value!r} is not a ")
        assert error.endswith(f" from {kind.low} to {kind.high}")


def test_no_option_is_a_number_of_another_type() -> None:
    """All options that Click would parse as numbers by itself have the one type."""
    others = [
        f"{context.command_path} {option.opts[0]}"
        for context in CONTEXTS
        for option in context.command.params
        if isinstance(option.type, (click.types.IntParamType, click.types.FloatParamType))
        and not getattr(option, "count", False)
    ]
    assert others == []
    assert {"--timeout", "--port", "--limit", "--max-rate"} <= {flag for _, flag, _ in NUMBERS}


def test_a_number_without_limits_can_not_be_declared() -> None:
    """The programmer is told to give them."""
    import inspect  # noqa: PLC0415
    from typing import Annotated  # noqa: PLC0415

    annotation = Annotated[float, Option("--rate")]
    parameter = inspect.Parameter("rate", inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    with pytest.raises(TypeError, match=r"rate: give the limits"):
        parameter_of(parameter)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Number(float, 0.1, 5), "0.1", 0.1),
        (Number(float, 0.1, 5), "5", 5.0),
        (Number(int), str(MOST), MOST),
        (Number(int, 0, 3), "3", 3),
    ],
)
def test_the_limits_are_allowed(kind: Number, text: str, value: float) -> None:
    """They and what lies between; the type is the one that was asked for."""
    number = kind.convert(text, None, None)
    assert (number, type(number)) == (value, kind.kind)
