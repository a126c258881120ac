"""A driver's lease: each look at the control location lets batches run until the next look.

``StopControl`` looks every few seconds.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from airflow_mm2_offsets.job.stop.decision import StopDecision
from airflow_mm2_offsets.job.stop.fences import STOPPING, Fence, Fences, JobMovedError
from airflow_mm2_offsets.job.stop.heartbeat import (
    STORAGE_ERRORS,
    AnotherDriverError,
    Heartbeat,
    another_driver_error,
)
from airflow_mm2_offsets.job.stop.requests import StopRequests
from airflow_mm2_offsets.job.stop.stream import summary

if TYPE_CHECKING:
    from airflow_mm2_offsets.job.files import HadoopFiles
    from airflow_mm2_offsets.job.stop.streams import Streams

log = logging.getLogger(__name__)

REFUSALS = (JobMovedError, AnotherDriverError)


class Lease:
    """Looks for a stop, and renews the lease of ``seconds`` unless the job counts as stopped."""

    def __init__(
        self, files: HadoopFiles, fences: Fences, heartbeat: Heartbeat, seconds: float
    ) -> None:
        """Look at nothing yet."""
        self._location = files.location
        self._fences = fences
        self._heartbeat = heartbeat
        self._seconds = seconds
        self._requests = StopRequests(files)

    def renew(self, streams: Streams, stopping: str | None = None) -> str | None:
        """Look, and let batches run until the lease ends; return the stop that counts.

        ``stopping`` is the stop that the job carries out, if any.

        Raises:
            JobMovedError: The job counts as stopped; the queries are abandoned.
            AnotherDriverError: Another driver has begun here since; likewise.
        """
        begun = time.monotonic()
        try:
            request_id = self._requests.look(self._look(stopping), begun)
            streams.renew(begun + self._seconds)
        except REFUSALS as refusal:
            log.error("%s", refusal)  # noqa: TRY400 - it is raised
            streams.abandon()
            raise
        except STORAGE_ERRORS as error:  # a storage that fails for a while must not end the job
            log.warning("Can't look for a stop, trying again: %s", summary(error))
            return None
        # The driver was paused meanwhile: the look is too old.
        if time.monotonic() - begun > self._seconds:
            return self.renew(streams, stopping)
        return request_id

    def find_unanswered(self) -> str | None:
        """Return the stop that is asked for and not answered, whether it counts or not.

        Raises:
            OSError: The location can't be read; likewise Py4JError and ValueError.
        """
        try:
            fence = self._fences.look()
        except JobMovedError:
            return None
        is_open = fence.state == STOPPING and fence.request_id != self._requests.answered()
        return fence.request_id if is_open else None

    def decide(self, streams: Streams, request_id: str | None) -> StopDecision:
        """Return the decision on a stop; None for ``request_id``: no request can be withdrawn."""
        if request_id is None:
            return StopDecision(lambda: True, lambda _stops: True)

        def look() -> bool | None:
            begun = time.monotonic()
            try:
                return self._requests.look(self._look(request_id), begun) == request_id
            except REFUSALS:
                streams.hold()  # a batch that comes to its commit is not committed
                return False
            except Py4JNetworkError:  # the JVM is gone
                raise
            except STORAGE_ERRORS:
                return None

        def announce(stops: bool) -> bool:  # noqa: FBT001 - as StopDecision calls it
            return self._heartbeat.announce_stop(request_id if stops else None)

        return StopDecision(look, announce)

    def _look(self, stopping: str | None) -> Fence:
        """Return the newest fence.

        Raises:
            JobMovedError: The job was moved, or the stop step has answered in its place.
            AnotherDriverError: Another driver has begun here since.
        """
        fence = self._fences.look()
        request_ids = {fence.request_id, stopping or fence.request_id}
        if fence.state == STOPPING and self._requests.answered() in request_ids:
            raise self._fences.moved_error(fence)
        other = self._heartbeat.find_other()
        if other is not None:
            raise another_driver_error(other, self._location)
        return fence
