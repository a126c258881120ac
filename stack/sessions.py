"""Sessions of processes: what a program started ends with it, also what left its group.

Airflow gives each task a process group of its own; the session of a process stays what it was.
"""

import os
import signal
from collections.abc import Collection
from contextlib import suppress

import psutil

from stack.waiting import WaitTimeoutError, wait_until

KILL_SECONDS = 10


def send(number: int, sessions: Collection[int]) -> bool:
    """Send a signal to every process of some sessions; tell whether there was any.

    Args:
        number: The signal; 0 sends none and only looks.
        sessions: The process ids of the sessions' first processes.
    """
    found = members(sessions)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return bool(found)


def members(sessions: Collection[int]) -> list[int]:
    """Return the processes of some sessions that have not ended."""
    return [pid for pid in psutil.pids() if _belongs(pid, sessions)]


def end(sessions: Collection[int], *, grace: float) -> None:
    """End sessions: TERM to all, and KILL after `grace` seconds; KILL at once where it is 0."""
    with suppress(WaitTimeoutError):
        if grace and send(signal.SIGTERM, sessions):
            wait_until(lambda: not send(0, sessions), "an end", seconds=grace)
    # What starts a process while it is looked for is found the next time.
    with suppress(WaitTimeoutError):
        wait_until(lambda: not send(signal.SIGKILL, sessions), "an end", seconds=KILL_SECONDS)


def _belongs(pid: int, sessions: Collection[int]) -> bool:
    try:
        belongs = os.getsid(pid) in sessions
        return belongs and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
        return False
