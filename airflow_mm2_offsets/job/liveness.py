"""Tells whether a driver lives, by its processes and its heartbeat.

The job's stop control and the failover (``spark/``) judge both by the same rules.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

MISSED_BEATS = 3
"""A driver that lives and is slow may miss two heartbeats."""
MAX_WAIT_SECONDS = 30.0
"""The longest wait for a heartbeat."""
POLL_SECONDS = 0.2

_START = 19
"""Where ``/proc/PID/stat`` has the start, counted after the name."""
_Beat = TypeVar("_Beat")


def start_of(pid: int) -> int | None:
    """Return when a process was started, in clock ticks since boot.

    With it, a process is told from a later one of the same id. None: there is no such process, or
    this system has no ``/proc``.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[_START])


def next_beat(read: Callable[[], _Beat | None], beat: _Beat, interval: float) -> _Beat | None:
    """Wait for the heartbeat after ``beat``, as long as a driver that lives may need for one.

    Args:
        read: Reads the last heartbeat, or None if nothing was written.
        beat: The heartbeat that was read before.
        interval: The driver's seconds between two heartbeats.

    Returns:
        The next one; None where none comes.
    """
    deadline = time.monotonic() + min(MISSED_BEATS * interval, MAX_WAIT_SECONDS)
    while (last := read()) == beat and time.monotonic() <= deadline:
        time.sleep(POLL_SECONDS)
    return None if last == beat else last
