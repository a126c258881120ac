"""Reads from a control location whether the job has to stop; ``StopControl`` and its lease ask."""

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
"""How long a sign of life of the stop step counts."""
MISSED_SIGNS = 4
"""How many intervals of the stop step a sign counts, if that is longer."""


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
    """Tell whether this job counts as stopped: the stop step answered in its place, or moved it.

    ``request_id`` is the stop that the job carries out, if any. If the stop step answered it,
    another run may have taken over the fence since.
    """
    answer = files.read("stopped.json") or {}
    request_ids = {fence.get("request_id"), request_id or fence.get("request_id")}
    return fence.get("state") == "moved" or answer.get("request_id") in request_ids


def open_request(files: HadoopFiles, fence: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the request, or else the fence, that asks for a stop and is not answered yet."""
    requests = [files.read("stop-request.json") or {}, fence or {}]
    requests = [request for request in requests if request.get("request_id") is not None]
    # Read last: an answer that came before is seen.
    answer = (files.read("stopped.json") if requests else None) or {}
    answered = answer.get("request_id")
    return next((request for request in requests if request["request_id"] != answered), None)


class StopRequests:
    """The open request, as long as the stop step waits for its answer.

    A failover that was cancelled, killed or deleted must not stop the job. Its stop step writes
    ``stop-heartbeat.json``, its sign of life, while it waits: the stop of a failover counts only if
    the sign has changed in the last minute, by this driver's clock. Any other request needs no
    sign, because it does not move the job.
    """

    def __init__(self, files: HadoopFiles) -> None:
        """Begin without a sign."""
        self._files = files
        self._sign: dict[str, Any] | None = None
        self._signed = -math.inf
        self._looked = time.monotonic()
        self._logged: str | None = None
        self._looking = threading.Lock()

    def look(self, fence: dict[str, Any] | None) -> str | None:
        """Return the stop that counts, of the run that asked last; None if no stop counts."""
        with self._looking:
            begun = time.monotonic()
            # Also without a request: a sign from before the request does not count.
            self._look_for_sign()
            request = open_request(self._files, fence) or {}
            request_id = request.get("request_id")
            is_of_failover = request.get("is_of_failover") or "state" in request  # a fence has one
            counts = not is_of_failover or self._is_signed(request_id, begun)
            if not counts and request_id != self._logged:
                self._logged = request_id
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
        max_age = max(SIGN_SECONDS, MISSED_SIGNS * (sign.get("interval") or 0))
        return sign.get("request_id") == request_id and now - self._signed <= max_age
