"""Decides whether a stop counts: the stop step must wait for its answer. The lease asks it."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.job.stop.fences import STOPPING

if TYPE_CHECKING:
    from airflow_mm2_offsets.job.files import HadoopFiles
    from airflow_mm2_offsets.job.stop.fences import Fence

log = logging.getLogger(__name__)

SIGN_SECONDS = 60.0
"""How long a sign of life of the stop step counts."""
MISSED_SIGNS = 4
"""How many intervals of the stop step a sign counts, if that is longer."""


class StopRequests:
    """The stop that a fence asks for, as long as the stop step waits for its answer.

    A failover that was cancelled, killed or deleted must not stop the job. Its stop step writes
    ``stop-heartbeat.json``, its sign of life, while it waits: the stop counts only if the sign has
    changed in the last minute, by this driver's clock. Each stop has an id of its own, so no sign
    is older than the fence.
    """

    def __init__(self, files: HadoopFiles) -> None:
        """Begin without a sign; the first look at a fence comes later."""
        self._files = files
        self._sign: dict[str, Any] = {}
        self._signed = -math.inf
        self._looked = time.monotonic()
        self._logged: str | None = None
        self._looking = threading.Lock()

    def look(self, fence: Fence, begun: float) -> str | None:
        """Return the stop that counts; None if no stop counts.

        Args:
            fence: The newest.
            begun: The ``time.monotonic()`` before it was looked for.
        """
        with self._looking:
            counts = fence.state == STOPPING and self._is_signed(fence.request_id)
            if fence.state == STOPPING and not counts and fence.request_id != self._logged:
                self._logged = fence.request_id
                log.warning(
                    "The stop %r counts once the task that asks for it waits", fence.request_id
                )
            self._looked = begun
        return fence.request_id if counts else None

    def answered(self) -> str | None:
        """Return the stop that was answered last, by the job or in its place."""
        answer = self._files.read("stopped.json") or {}
        return answer.get("request_id")

    def _is_signed(self, request_id: str | None) -> bool:
        sign = self._files.read("stop-heartbeat.json") or {}
        if sign != self._sign:
            # It may have changed directly after the last look: a driver that wakes from a long
            # pause takes no old sign for a new one.
            self._sign, self._signed = sign, self._looked
        max_age = max(SIGN_SECONDS, MISSED_SIGNS * (sign.get("interval") or 0))
        # The time now, not that of the look: the driver may have been paused in between.
        age = time.monotonic() - self._signed
        return sign.get("request_id") == request_id and age <= max_age
