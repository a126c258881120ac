"""What every command has around it: option groups, the answer's way out, errors as exit codes."""

import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any

from typer import Exit, Option

from airflow_mm2_offsets.cli.exit_codes import ExitCode, exit_code
from airflow_mm2_offsets.cli.output import Answer, show
from airflow_mm2_offsets.errors import Mm2OffsetsError

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
    """Make a command of a function that returns its answer; adds ``--json`` and ``--debug``."""

    @wraps(command)
    def run(*, output: OutputOptions, **given: Any) -> None:
        with failures(debug=output.debug):
            answer = command(**given)
            show(answer, as_json=output.as_json)
        raise Exit(answer.exit_code)

    parameters = [*inspect.signature(command).parameters.values()]
    output = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=OutputOptions)
    return _sign(run, [*parameters, output])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Make one option of each field of a parameter that is a dataclass: Typer knows no groups."""
    parameters = [*inspect.signature(command).parameters.values()]
    groups: dict[str, Any] = {
        each.name: each.annotation for each in parameters if is_dataclass(each.annotation)
    }

    @wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        command(**made, **given)

    flat = (_options(each.annotation) if each.name in groups else [each] for each in parameters)
    return _sign(run, [parameter for each in flat for parameter in each])


@contextmanager
def failures(*, debug: bool) -> Iterator[None]:
    """Turn what is raised into one message on stderr and an exit code."""
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
        inspect.Parameter(each.name, keyword, default=each.default, annotation=each.type)
        for each in fields(kind)
    ]


def _sign(run: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in keywords} | {"return": None}
    return run
