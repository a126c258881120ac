"""Makes commands of functions: option groups, ``--json`` and ``--debug``, errors as exit codes.

Every module of commands uses it.
"""

import inspect
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import datetime
from functools import wraps
from typing import Annotated, Any, get_origin

from typer import BadParameter, Exit, Option

from airflow_mm2_offsets.cli.exit_codes import ExitCode, exit_code
from airflow_mm2_offsets.cli.output import Answer, show
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.options import EXAMPLE_TIME, PLAN_OPTIONS

Debug = Annotated[
    bool, Option("--debug", help="Log to stderr, and show the traceback of an error.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How to answer."""

    as_json: Annotated[
        bool, Option("--json", help="Answer in JSON, on stdout alone; offsets are text.")
    ] = False
    debug: Debug = False


def answering(command: Callable[..., Answer]) -> Callable[..., None]:
    """Turn a function that returns its answer into a command with ``--json`` and ``--debug``."""

    @wraps(command)
    def run(*, output: OutputOptions, **arguments: Any) -> None:
        with failures(debug=output.debug, as_json=output.as_json):
            answer = command(**arguments)
            show(answer, as_json=output.as_json)
        raise Exit(answer.exit_code)

    parameters = [*inspect.signature(command).parameters.values()]
    output = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=OutputOptions)
    return _sign(run, [*parameters, output])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Make one option of each field of a parameter that is a dataclass: Typer knows no groups.

    A field is annotated as Typer wants it, or has an explanation as those of ``PlanOptions`` do;
    other fields keep their defaults.
    """
    parameters = [*inspect.signature(command).parameters.values()]
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if is_dataclass(parameter.annotation)
    }
    options = {name: _options(kind) for name, kind in groups.items()}

    @wraps(command)
    def run(**arguments: Any) -> None:
        values = {
            name: kind(**{each.name: arguments.pop(each.name) for each in options[name]})
            for name, kind in groups.items()
        }
        command(**values, **arguments)

    flat = (options.get(each.name, [each]) for each in parameters)
    return _sign(run, [parameter for each in flat for parameter in each])


@contextmanager
def failures(*, debug: bool, as_json: bool = False) -> Iterator[None]:
    """Turn an exception into one message on stderr and an exit code.

    With ``as_json``, an error of this package is JSON on stdout as well.
    """
    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    try:
        yield
    except BrokenPipeError as error:
        # What is still in the buffer would fail again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Exit(ExitCode.BROKEN_PIPE) from error
    except KeyboardInterrupt as error:
        raise _end(error, "Interrupted", ExitCode.INTERRUPTED) from error
    except Mm2OffsetsError as error:
        if as_json:
            print(json.dumps({"error": error.to_json()}, indent=2))  # noqa: T201 - the answer
        raise _end(error, f"Error: {error}", exit_code(error), debug=debug) from error
    except Exception as error:
        step = "this is a defect: report what --debug shows"
        message = f"Error: {type(error).__name__}: {error}; {step}"
        raise _end(error, message, ExitCode.DEFECT, debug=debug) from error


def _end(error: BaseException, message: str, code: ExitCode, *, debug: bool = False) -> Exit:
    if debug:
        traceback.print_exception(error)
    print(message, file=sys.stderr)  # noqa: T201 - to the person at the terminal
    return Exit(code)


def _options(kind: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - a dataclass
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            each.name,
            keyword,
            # A field without a default is an option that must be given.
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=annotation,
        )
        for each in fields(kind)
        if (annotation := _annotation(each)) is not None
    ]


def _annotation(field: Field[Any]) -> Any:  # noqa: ANN401 - a type
    """Return what tells Typer of a field; None where users can't set it."""
    if get_origin(field.type) is Annotated:
        return field.type
    if field.name not in PLAN_OPTIONS:
        return None
    limits = field.metadata
    kind = field.type
    flag = f"--{field.name.replace('_', '-')}"
    if kind is bool and field.default:
        flag += f"/--no-{flag[2:]}"
    shown = Option(
        flag, help=limits["explanation"], min=limits.get("minimum"), max=limits.get("maximum")
    )
    if kind == datetime | None:
        shown.parser, shown.metavar = _time, "TIME"
    return Annotated[kind, shown]


def _time(text: str) -> datetime:
    time = parse_zoned(text)
    if time is None:
        raise BadParameter(f"{text!r} is not a time with its zone, such as {EXAMPLE_TIME}")
    return time


def _sign(run: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in keywords} | {"return": None}
    return run
