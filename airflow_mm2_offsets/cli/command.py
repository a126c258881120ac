"""Makes commands of functions: option groups, ``--json`` and ``--debug``, errors as exit codes.

Every module of commands uses it.
"""

import inspect
import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Annotated, Any, get_origin

import click
from click.exceptions import Exit

from airflow_mm2_offsets.cli.advice import in_words_of_the_command_line, spelled, words_of
from airflow_mm2_offsets.cli.endings import ending_of
from airflow_mm2_offsets.cli.numbers import MOST, Number
from airflow_mm2_offsets.cli.output import Answer, OutputError, abandon_stdout, show
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS

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
            text = _in_users_words(answer.text) if answer.has_advice else answer.text
            show(replace(answer, text=text), as_json=output.as_json)
        raise Exit(answer.exit_code)

    parameters = [*inspect.signature(command).parameters.values()]
    output = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=OutputOptions)
    return _sign(run, [*parameters, output])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Make one option of each field of a parameter that is a dataclass: Click knows no groups.

    A field is annotated with an ``Option``, or has an explanation as those of ``PlanOptions`` do;
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
    """Turn an exception into one message on stderr, or none, and an exit code.

    With ``as_json``, an error of this package is JSON on stdout as well.
    """
    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    try:
        yield
    except (Exit, click.ClickException):
        raise
    except (Exception, KeyboardInterrupt) as error:
        raise _end(error, debug=debug, as_json=as_json) from error


def say(line: str) -> None:
    """Print a line to stderr; do nothing if stderr is closed."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - to the person at the terminal


def _end(error: BaseException, *, debug: bool, as_json: bool) -> Exit:
    try:
        if as_json and isinstance(error, Mm2OffsetsError):
            _print_json(error)
    except OutputError as worse:
        say(_in_users_words(ending_of(error).message, error))
        error = worse
    ending = ending_of(error)
    if isinstance(error, OutputError):
        abandon_stdout()
    elif debug and not isinstance(error, KeyboardInterrupt):
        with suppress(OSError):
            traceback.print_exception(error)
    if ending.message:
        say(_in_users_words(ending.message, error))
    return Exit(ending.code)


def _in_users_words(text: str, error: BaseException | None = None) -> str:
    """Return a text of the command that runs, or the message of its error, with its options."""
    running = click.get_current_context()
    setting = error.fields.get("setting") if isinstance(error, Mm2OffsetsError) else None
    return in_words_of_the_command_line(
        text,
        running.command,
        setting=None if setting is None else str(setting),
        users_words=words_of(running.params),
    )


def _print_json(error: Mm2OffsetsError) -> None:
    values = spelled(error.to_json(), click.get_current_context().command)
    values["message"] = _in_users_words(str(values["message"]), error)
    print(json.dumps({"error": values}, indent=2))  # noqa: T201 - the answer
    sys.stdout.flush()


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
    """Return what declares the option of a field; None where users can't set it."""
    if get_origin(field.type) is Annotated:
        return field.type
    if field.name not in PLAN_OPTIONS:
        return None
    limits = field.metadata
    kind: Any = field.type
    flag = f"--{field.name.replace('_', '-')}"
    if kind is bool and field.default:
        flag += f"/--no-{flag[2:]}"
    number = {}
    if kind in {int, float}:
        number = {"type": Number(kind, limits["minimum"], limits.get("maximum", MOST))}
    return Annotated[kind, Option(flag, help=limits["explanation"], **number)]


def _sign(run: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in keywords} | {"return": None}
    return run
