"""What the files of a control location ask of the job that runs with it.

It comes along with ``mm2_stop_control.py``, and needs nothing but PySpark.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mm2_stop_jvm import HadoopFiles

log = logging.getLogger(__name__)

ASKED_SECONDS = 60.0
"""How long a stop counts whose stop step gives no sign of life."""
MISSED_SIGNS = 4
"""Of a stop step that gives its signs of life in longer intervals."""


class JobMovedError(RuntimeError):
    """The job was moved to another cluster: it must not run here any more."""


class AnotherDriverError(RuntimeError):
    """Another driver runs with this control location: two must never run one job."""


def another_driver_error(driver: dict[str, Any], location: str) -> AnotherDriverError:
    """Return the error for another driver's ``driver.json``: which one, and what to do."""
    return AnotherDriverError(
        f"The driver {driver.get('application_id')} on {driver.get('host')} (process "
        f"{driver.get('pid')}) runs with the control location {location}, so this driver ends. A "
        f"control location belongs to one job: end that driver first, or give this job another "
        f"location"
    )


def moved_error(fence: dict[str, Any], location: str) -> JobMovedError:
    """Return the error for a fence: which run moved the job, where to, and how to undo it."""
    run, deed = fence.get("request_id"), "was moved"
    if fence.get("state") == "stopping":
        deed = "was stopped to be moved"
    return JobMovedError(
        f"This job {deed} to {fence.get('moved_to') or 'another cluster'} by the run {run} at "
        f"{fence.get('at')}, and must not run here. To let it, stop the job there, and then: "
        f"airflow-mm2-offsets fence lift {location} --request-id '{run}'"
    )


def is_answered(files: HadoopFiles, fence: dict[str, Any], request_id: str | None = None) -> bool:
    """Tell whether this job counts as stopped: it was answered in its place, or moved already.

    Args:
        files: The control location's.
        fence: The one that stands there.
        request_id: The stop that the job carries out and has not answered yet, if any. Another run
            may have taken the fence over since it was answered.
    """
    answer = files.read("stopped.json") or {}
    unanswered = {fence.get("request_id"), request_id or fence.get("request_id")}
    return fence.get("state") == "moved" or answer.get("request_id") in unanswered


def open_request(files: HadoopFiles) -> str | None:
    """Return the stop that is asked for and not answered yet; None when there's none."""
    asked = [files.read(name) or {} for name in ("stop-request.json", "fence.json")]
    answer = files.read("stopped.json") or {}
    named = [each["request_id"] for each in asked if each.get("request_id") is not None]
    return next((each for each in named if each != answer.get("request_id")), None)


class StopRequests:
    """The stop that is asked for, as long as the stop step waits for its answer.

    A failover that was cancelled, killed or deleted must not stop the job later. Its stop step
    writes ``stop-heartbeat.json`` while it waits: a stop that was neither asked nor followed by a
    sign of life in the last minute does not count. Only this driver's clock measures that.

    Args:
        files: The control location's.
    """

    def __init__(self, files: HadoopFiles) -> None:
        """Begin directly after a look that found no fence."""
        self._files = files
        self._found: tuple[str | None, object] = (None, None)
        self._looked = self._changed = time.monotonic()
        self._counted = True
        self._looking = threading.Lock()

    def look(self) -> str | None:
        """Return the stop that counts; None when there's none.

        Taken over by another run, it is that one's.
        """
        with self._looking:
            begun = time.monotonic()
            request_id = open_request(self._files)
            sign = self._files.read("stop-heartbeat.json") or {}
            is_of_it = sign.get("request_id") == request_id
            found = (request_id, sign.get("at") if is_of_it else None)
            if found != self._found:
                # It may have changed directly after the last look: what a driver finds when it
                # wakes may be old.
                self._found, self._changed = found, self._looked
            self._looked = begun
            counts = begun - self._changed <= max(
                ASKED_SECONDS, MISSED_SIGNS * (sign.get("interval") or 0)
            )
            self._tell(request_id, counts=counts)
        return request_id if counts else None

    def _tell(self, request_id: str | None, *, counts: bool) -> None:
        if request_id is not None and self._counted and not counts:
            log.warning(
                "Running on: the stop %r is asked for, but the task that asked is gone", request_id
            )
        self._counted = counts
