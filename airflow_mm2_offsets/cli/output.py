"""Prints a command's answer."""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO, cast

from airflow_mm2_offsets.cli.exit_codes import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a command."""

    text: str
    """For people: sentences and tables of plain text."""
    data: Mapping[str, Any]
    """For machines: plain JSON, offsets as text."""
    exit_code: ExitCode = ExitCode.OK
    has_advice: bool = True
    """Whether the text may name options: it is then put in the words of the command line."""


class OutputError(Exception):
    """Stdout does not take the answer; ``__cause__`` says why."""


class AnswerStream:
    """Stdout that says of its own errors what they are.

    An OSError alone does not tell whether a file, a cluster or stdout has failed; and Click ends
    the process with code 1, which means a refusal here, if a pipe is closed.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to ``stream``."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text; it may stay in the buffer."""
        try:
            return self._stream.write(text)
        except OSError as error:
            raise OutputError from error

    def flush(self) -> None:
        """Write what is in the buffer."""
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputError from error

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        """Return what the stream itself has."""
        return getattr(self._stream, name)


def guard_stdout() -> None:
    """Let what is printed raise ``OutputError`` from now on; a closed stdout takes nothing."""
    stream = sys.stdout
    if stream is None:
        raise OutputError from OSError(0, "is closed")
    sys.stdout = cast("TextIO", AnswerStream(stream))


def abandon_stdout() -> None:
    """Drop what is in the buffer: it would fail again when Python closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_COLOURS = {
    "32": r"exact|READY|ok",
    "33": r"bounded|by (?:earliest|latest|timestamp)|FALLBACK|warning|WITH WARNINGS",
    "31": r"not safe|refused|REFUSED|FAILED|failed|NOT SAFE|NOT READY",
}
"""The verdict and the status, by the number of their colour: green, yellow, red."""


def show(answer: Answer, *, as_json: bool) -> None:
    """Write an answer to stdout, and nothing else.

    Lines are not wrapped: the terminal does that.
    """
    text = json.dumps(answer.data, indent=2) if as_json else answer.text
    if not as_json and _has_colour():
        for colour, words in reversed(_COLOURS.items()):
            text = re.sub(rf"\b(?<!\x1b\[\d\dm)({words})\b", f"\x1b[{colour}m\\1\x1b[0m", text)
    print(text)  # noqa: T201 - the answer
    sys.stdout.flush()


def _has_colour() -> bool:
    """Tell whether stdout is a terminal that wants colour, or is claimed to be one."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}
