"""Prints a command's answer, and shows progress."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.theme import Theme

from airflow_mm2_offsets.cli.exit_codes import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a command."""

    text: str
    """For people: sentences and tables of plain text."""
    data: Mapping[str, Any]
    """For machines: plain JSON, offsets as text."""
    exit_code: ExitCode = ExitCode.OK


class _Words(RegexHighlighter):
    """Colours the verdict and the status, on a terminal only."""

    base_style = "mm2."
    highlights = (
        r"\b(?P<good>exact|READY|ok)\b",
        r"\b(?P<fair>bounded|by (?:earliest|latest|timestamp)|FALLBACK|warning|WITH WARNINGS)\b",
        r"\b(?P<bad>refused|REFUSED|FAILED|failed|NOT SAFE|NOT READY)\b",
    )


_THEME = Theme({"mm2.good": "green", "mm2.fair": "yellow", "mm2.bad": "red"})


def show(answer: Answer, *, as_json: bool) -> None:
    """Write an answer to stdout, and nothing else.

    Lines are not wrapped: the terminal does that.
    """
    if as_json:
        print(json.dumps(answer.data, indent=2))  # noqa: T201 - the answer
    else:
        console = Console(theme=_THEME, highlighter=_Words(), soft_wrap=True, emoji=False)
        # rich would end the process with another exit code if the pipe was closed.
        with console.capture() as captured:
            console.print(answer.text, markup=False)
        print(captured.get(), end="")  # noqa: T201 - the answer
    sys.stdout.flush()


@contextmanager
def waiting(activity: str) -> Iterator[Callable[[int, float], None]]:
    """Show an activity and its progress on a terminal's stderr, and yield what updates it."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    console = Console(stderr=True)
    if not console.is_terminal:
        # Before rich 15 a disabled bar ends with an empty line.
        yield lambda _read, _seconds: None
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(activity, total=None)
        yield lambda read, _seconds: bar.update(task, description=f"{activity}: {read:,} records")
