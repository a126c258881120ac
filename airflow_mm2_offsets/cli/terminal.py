"""Shows on a terminal that something is being done, on one line of stderr that is rewritten."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TextIO

import click

_SECONDS = 0.25
"""Between two looks of the line."""
_ERASE = "\r\x1b[K"


class ProgressLine:
    """The activity, the records that were read so far, and the seconds."""

    def __init__(self, activity: str, stream: TextIO) -> None:
        """Describe it; nothing is written yet."""
        self._activity = activity
        self._stream = stream
        self._records = 0
        self._started = time.monotonic()
        self._over = Event()
        self._thread = Thread(target=self._rewrite, daemon=True)

    def start(self) -> None:
        """Show the line from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Erase the line."""
        self._over.set()
        self._thread.join()

    def add(self, records: int) -> None:
        """Count records that were read; readers of several threads may call it."""
        self._records += records  # A number that is lost between two threads is no harm here.

    def text(self, seconds: float) -> str:
        """Return what the line says after ``seconds``."""
        read = f": {self._records:,} records" if self._records else ""
        return f"{self._activity}{read}, {seconds:.0f} s"

    def _rewrite(self) -> None:
        try:
            is_over = False
            while not is_over:
                text = self.text(time.monotonic() - self._started)
                # A line that wraps could not be erased.
                self._write(_ERASE + text[: _columns(self._stream) - 1])
                is_over = self._over.wait(_SECONDS)
            self._write(_ERASE)
        except OSError:
            return  # The terminal is gone; the answer goes elsewhere.

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def waiting(activity: str) -> Iterator[None]:
    """Show an activity, and the records that it reads of topics, if stderr is a terminal."""
    if not _shows_progress():
        yield
        return
    from airflow_mm2_offsets.kafka.drain import watched_reads

    line = ProgressLine(activity, sys.stderr)
    line.start()
    try:
        with watched_reads(line.add):
            yield
    finally:
        line.stop()


def erase_line() -> None:
    """Erase what an activity shows, for a process that ends without its ``waiting``."""
    if _shows_progress():
        sys.stderr.write(_ERASE)


def _shows_progress() -> bool:
    """Tell whether a line can be rewritten on stderr; log lines of --debug would cut it up."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    is_plain = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    context = click.get_current_context(silent=True)
    has_log = context is not None and bool(context.params.get("debug"))
    return is_terminal and not is_plain and not has_log


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80
