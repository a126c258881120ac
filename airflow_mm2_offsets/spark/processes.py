"""Ends a driver's processes on this machine, never a later process with the same id.

The hook that kills a driver in client mode calls it.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import ExitStack

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.job.liveness import start_of
from airflow_mm2_offsets.spark.control import Driver


def end_driver(driver: Driver, *, grace: float = 10.0) -> None:
    """End a driver on this machine by TERM, and after ``grace`` seconds by KILL.

    Returns when all of its processes are gone, at most ``grace`` seconds after the KILL.

    Raises:
        StopError: It runs elsewhere, has not named its processes, or can't be ended.
    """
    place = f"the driver {driver.application_id} on {driver.host} (process {driver.pid})"
    if driver.host != socket.gethostname():
        raise StopError(
            f"{place} runs outside a cluster, and nothing on {socket.gethostname()} can end it: "
            f"run this task on {driver.host}, or end it there and clear this task"
        )
    if not driver.processes or not hasattr(os, "pidfd_open"):
        raise StopError(
            f"{place} can't be told from another process of that id: end it by hand and clear "
            f"this task"
        )
    with ExitStack() as opened:
        left = [
            handle
            for pid, start in driver.processes.items()
            if (handle := _open(pid, start, opened)) is not None
        ]
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal(left, number, place)
            left = _still_running(left, grace)
    if left:
        raise StopError(f"{place} outlived a SIGKILL by {grace:.0f} s; see what holds it")


def _open(pid: int, start: int, opened: ExitStack) -> int | None:
    """Return a handle of this process, which no later one can take; None if it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    opened.callback(os.close, handle)
    return handle if start_of(pid) == start else None


def _signal(handles: Iterable[int], number: signal.Signals, place: str) -> None:
    for handle in handles:
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            continue
        except PermissionError as error:
            raise StopError(
                f"{place} belongs to another user, who must end it; clear this task then"
            ) from error


def _still_running(handles: list[int], seconds: float) -> list[int]:
    """Wait for processes to end; return the handles of those that have not."""
    left, deadline = list(handles), time.monotonic() + seconds
    while left and (rest := deadline - time.monotonic()) > 0:
        ended, _, _ = select.select(left, [], [], rest)
        left = [handle for handle in left if handle not in ended]
    return left
