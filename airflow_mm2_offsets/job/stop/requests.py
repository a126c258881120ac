"""What the files of a control location ask of the job that runs with it."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_mm2_offsets.job.files import HadoopFiles

log = logging.getLogger(__name__)

SIGN_SECONDS = 60.0
"""How long a sign of the stop step counts."""
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
    asked = _find_open(files)
    return None if asked is None else str(asked["request_id"])


def _find_open(files: HadoopFiles) -> dict[str, Any] | None:
    """Return the request, or the fence, that asks for a stop and is not answered yet."""
    asked = [files.read(name) or {} for name in ("stop-request.json", "fence.json")]
    answered = (files.read("stopped.json") or {}).get("request_id")
    return next((each for each in asked if each.get("request_id") not in {None, answered}), None)


class StopRequests:
    """The stop that is asked for, as long as the stop step waits for its answer.

    A failover that was cancelled, killed or deleted must not stop the job. Its stop step writes
    ``stop-heartbeat.json`` while it waits: the stop of a failover counts only if another sign was
    seen in the last minute. Only this driver's clock measures that. A request of anybody else needs
    no sign: the job is not moved.

    Args:
        files: The control location's.
    """

    def __init__(self, files: HadoopFiles) -> None:
        """Begin with no sign seen."""
        self._files = files
        self._sign: dict[str, Any] | None = None
        self._signed = -math.inf
        self._looked = time.monotonic()
        self._told: str | None = None
        self._looking = threading.Lock()

    def look(self) -> str | None:
        """Return the stop that counts; None when there's none.

        Taken over by another run, it is that one's.
        """
        with self._looking:
            begun = time.monotonic()
            self._look_for_sign()
            asked = _find_open(self._files) or {}
            request_id = asked.get("request_id")
            is_of_failover = asked.get("is_of_failover") or "state" in asked  # a fence has one
            counts = not is_of_failover or self._is_signed(request_id, begun)
            if not counts and request_id != self._told:
                self._told = request_id
                log.warning("The stop %r counts once the task that asks for it waits", request_id)
            self._looked = begun
        return request_id if counts else None

    def _look_for_sign(self) -> None:
        sign = self._files.read("stop-heartbeat.json") or {}
        if self._sign is not None and sign != self._sign:
            # It may have changed directly after the last look: a driver that wakes from a long
            # pause takes no old sign for a new one.
            self._signed = self._looked
        self._sign = sign

    def _is_signed(self, request_id: str | None, now: float) -> bool:
        sign = self._sign or {}
        most = max(SIGN_SECONDS, MISSED_SIGNS * (sign.get("interval") or 0))
        return sign.get("request_id") == request_id and now - self._signed <= most
