"""A driver's lease: each look at the control location lets batches run until the next look.

``StopControl`` looks every few seconds.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.job.stop.decision import StopDecision
from airflow_mm2_offsets.job.stop.heartbeat import STORAGE_ERRORS, Heartbeat
from airflow_mm2_offsets.job.stop.requests import (
    AnotherDriverError,
    JobMovedError,
    StopRequests,
    another_driver_error,
    is_answered,
    moved_error,
)
from airflow_mm2_offsets.job.stop.stream import summary

if TYPE_CHECKING:
    from airflow_mm2_offsets.job.files import HadoopFiles
    from airflow_mm2_offsets.job.stop.streams import Streams

log = logging.getLogger(__name__)


class Lease:
    """Looks for a stop, and renews the lease of ``seconds`` unless the job counts as stopped."""

    def __init__(
        self, files: HadoopFiles, location: str, heartbeat: Heartbeat, seconds: float
    ) -> None:
        """Look at nothing yet."""
        self._files = files
        self._location = location
        self._heartbeat = heartbeat
        self._seconds = seconds
        self._requests = StopRequests(files)

    def _find_refusal(
        self, fence: dict[str, Any] | None, stopping: str | None
    ) -> JobMovedError | AnotherDriverError | None:
        """Return why this driver must run no batch any more; None if it may."""
        if fence is not None and is_answered(self._files, fence, stopping):
            return moved_error(fence, self._location)
        other = self._heartbeat.find_other()
        return None if other is None else another_driver_error(other, self._location)

    def renew(self, streams: Streams, stopping: str | None = None) -> str | None:
        """Look, and let batches run until the lease ends; return the stop that counts.

        ``stopping`` is the stop that the job carries out, if any.

        Raises:
            JobMovedError: The job counts as stopped; the queries are abandoned.
            AnotherDriverError: Another driver has begun here since; likewise.
        """
        begun = time.monotonic()
        try:
            fence = self._files.read("fence.json")
            refusal = self._find_refusal(fence, stopping)
            if refusal is not None:
                log.error("%s", refusal)
                streams.abandon()
                raise refusal
            request_id = self._requests.look(fence)
            streams.renew(begun + self._seconds)
        except STORAGE_ERRORS as error:  # a storage that fails for a while must not end the job
            log.warning("Can't look for a stop request, trying again: %s", summary(error))
            return None
        # The driver was paused meanwhile: the look is too old.
        if time.monotonic() - begun > self._seconds:
            return self.renew(streams, stopping)
        return request_id

    def decide(self, streams: Streams, request_id: str | None) -> StopDecision:
        """Return the decision on a stop; None for ``request_id``: no request can be withdrawn."""
        if request_id is None:
            return StopDecision(lambda: True, lambda _stops: None)

        def look() -> bool:
            try:
                fence = self._files.read("fence.json")
                if self._find_refusal(fence, request_id) is not None:
                    streams.hold()  # a batch that comes to its commit is not committed
                    return False
                return self._requests.look(fence) is not None
            except STORAGE_ERRORS:
                return True

        def announce(stops: bool) -> None:  # noqa: FBT001 - as StopDecision calls it
            self._heartbeat.announce_stop(request_id if stops else None)

        return StopDecision(look, announce)
