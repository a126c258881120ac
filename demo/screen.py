"""Where the demo says what it does: lines with the time."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

PASSING = ("waiting for ", "downloading jars: ")
"""How a line begins that the next one makes worthless."""
CLEAR = "\r\033[K"


def _now() -> datetime:
    return datetime.now(UTC)


class Screen:
    """Writes lines; on a terminal the next line replaces one that says how long a wait is.

    Args:
        out: Where to write.
        clock: Returns the time that stands before a line.
    """

    def __init__(self, out: TextIO, *, clock: Callable[[], datetime] = _now) -> None:
        """Write nothing yet."""
        self._out = out
        self._clock = clock
        self._clear = ""

    def __call__(self, line: str) -> None:
        """Write a line."""
        text = f"{self._clock():%H:%M:%S}  {line}"
        passing = self._out.isatty() and line.startswith(PASSING)
        if passing:  # A line that is folded could not be replaced.
            text = text[: shutil.get_terminal_size().columns - 1]
        self._out.write(self._clear + text + ("" if passing else "\n"))
        self._out.flush()
        self._clear = CLEAR if passing else ""
