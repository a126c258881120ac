"""The line of progress, on a terminal that is a text."""

import io
import sys
from typing import TextIO

import pytest

from airflow_mm2_offsets.cli import terminal
from airflow_mm2_offsets.cli.terminal import ProgressLine, waiting
from airflow_mm2_offsets.kafka import drain


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Gone(_Terminal):
    def write(self, _text: str) -> int:
        raise OSError(5, "Input/output error")


def _terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Make stderr a terminal. No fixture: pytest sets its own stderr after those."""
    made = _Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


def test_the_line_is_rewritten_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text erases the one before; at the end nothing of it is left, and no new line."""
    stderr = _terminal(monkeypatch)
    with waiting("Reading"):
        pass
    shown = stderr.getvalue()
    assert shown.startswith("\r\x1b[KReading, 0 s")
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


def test_records_that_are_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line adds up what the readers of topics report while it is shown, and no longer."""
    stderr = _terminal(monkeypatch)
    lines: list[ProgressLine] = []

    def start(line: ProgressLine) -> None:
        lines.append(line)

    monkeypatch.setattr(ProgressLine, "start", start)
    monkeypatch.setattr(ProgressLine, "stop", lambda _line: None)
    with waiting("Reading"):
        for watch in drain._watchers:  # noqa: SLF001 - as a reader does
            watch(1000)
            watch(234)
    assert stderr.getvalue() == ""
    assert lines[0].text(61.4) == "Reading: 1,234 records, 61 s"
    assert drain._watchers == []  # noqa: SLF001


@pytest.mark.parametrize("name", ["pipe", "dumb", "closed"])
def test_elsewhere_nothing_is_written(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A pipe, a terminal that can't erase, and a closed stderr get no progress."""
    stderr = _terminal(monkeypatch)
    streams: dict[str, TextIO | None] = {"pipe": io.StringIO(), "dumb": stderr, "closed": None}
    monkeypatch.setattr(sys, "stderr", streams[name])
    monkeypatch.setenv("TERM", "dumb" if name == "dumb" else "xterm")
    with waiting("Reading"):
        pass
    stream = streams[name]
    assert stream is None or (isinstance(stream, io.StringIO) and stream.getvalue() == "")


def test_an_error_erases_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed next begins at the left of an empty line."""
    stderr = _terminal(monkeypatch)
    with pytest.raises(ValueError, match="no answer"), waiting("Reading"):
        raise ValueError("no answer")
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    """The command goes on without its line."""
    line = ProgressLine("Reading", _Gone())
    line.start()
    line.stop()


def test_the_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that wrapped could not be erased."""
    stderr = _terminal(monkeypatch)
    monkeypatch.setattr(terminal, "_columns", lambda _stream: 5)
    with waiting("Reading"):
        pass
    assert stderr.getvalue().startswith("\r\x1b[KRead\r")
