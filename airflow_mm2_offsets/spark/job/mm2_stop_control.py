"""Stops structured-streaming queries between batches, and says so: the job's side.

In the job, construct ``StopControl`` before the query is started, and call ``run`` in the place of
``query.awaitTermination()``::

    from airflow_mm2_offsets.spark.job import StopControl  # where the package is installed
    from mm2_stop_control import StopControl  # where py_files() came along by --py-files

    control = StopControl(spark, "s3a://bucket/control/orders")
    query = orders.writeStream.option("checkpointLocation", ...).start()
    control.run(query)
    spark.stop()

It needs nothing but PySpark: Hadoop's FileSystem, inside the JVM, reads and writes the files, on
any storage that the job's Spark knows. One job per control location. docs/stop-protocol.md says
what the four files in it hold, and who writes which when.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if __package__:
    from .mm2_stop_decision import StopDecision
    from .mm2_stop_heartbeat import STORAGE_ERRORS, Heartbeat
    from .mm2_stop_jvm import HadoopFiles
    from .mm2_stop_requests import (
        JobMovedError,
        is_answered,
        is_wanted,
        moved_error,
        open_request,
    )
    from .mm2_stop_stream import Stream, answer_of, summary
else:  # by --py-files
    from mm2_stop_decision import StopDecision  # type: ignore[import-not-found,no-redef]
    from mm2_stop_heartbeat import (  # type: ignore[import-not-found,no-redef]
        STORAGE_ERRORS,
        Heartbeat,
    )
    from mm2_stop_jvm import HadoopFiles  # type: ignore[import-not-found,no-redef]
    from mm2_stop_requests import (  # type: ignore[import-not-found,no-redef]
        JobMovedError,
        is_answered,
        is_wanted,
        moved_error,
        open_request,
    )
    from mm2_stop_stream import (  # type: ignore[import-not-found,no-redef]
        Stream,
        answer_of,
        summary,
    )

__all__ = ["JobMovedError", "StopControl"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

LEASE_INTERVALS = 4
"""A job that could not look at its control location for so many intervals begins no batch."""


class StopControl:
    """Runs streaming queries until they end, are asked to stop, or the job was moved away.

    Construct it before the queries are started: a job that was moved away then reads nothing.

    Args:
        spark: The job's session (not Spark Connect, which has no JVM at hand).
        location: A directory of this job's own, as Hadoop writes it (``s3a://``, ``hdfs://``...).
        interval: Seconds between two heartbeats, and between two looks at the location. While it
            can't be read for four of them, the queries wait between two batches.
        batch_timeout: Seconds to wait for the running batch before it is abandoned; the
            checkpoint then holds a pending batch. Python code that hangs in ``foreachBatch``
            can't be abandoned: ``run`` then raises, and the code ends with the driver.

    Raises:
        JobMovedError: A fence stands in the location.
        OSError: The location can't be read or written.
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        *,
        interval: float = 2.0,
        batch_timeout: float = 300.0,
    ) -> None:
        """Look for a fence, and say that the job starts."""
        self._spark = spark
        self._location = location
        self._files = HadoopFiles(spark, location)
        self._interval = interval
        self._lease = LEASE_INTERVALS * interval
        self._batch_timeout = batch_timeout
        self._heartbeat = Heartbeat(spark, self._files, interval, self._lease)
        self._start()

    def run(self, *queries: StreamingQuery) -> None:
        """Wait until all queries have ended, and stop them when asked to.

        A request is answered when all have stopped. Where one fails, the others are stopped.

        Raises:
            StreamingQueryException: A query failed; an open request is answered before.
            JobMovedError: A fence stands: the queries were stopped at once.
            Py4JError: A query was asked to stop and its last batch hangs; answered likewise.
            OSError: The control location can't be written.
        """
        if not queries:
            raise ValueError("run() needs the job's queries: control.run(query)")
        streams = [Stream(self._spark, query, self._files) for query in queries]
        self._heartbeat.run(queries)
        request_id, failure = None, None
        try:
            request_id = self._wait(streams)
        except JobMovedError:
            self._heartbeat.end()
            raise
        except Exception as error:  # noqa: BLE001 - raised below, when it was answered
            failure = self._stop_others(streams, error)
        self._finish(streams, request_id, failure)
        if failure is not None:
            raise failure

    def _start(self) -> None:
        try:
            self._check_fence()
            # Not before: a driver that a cluster manager starts again and again writes nothing.
            self._heartbeat.begin()
            # Again: of a stop and a start in one moment, one sees the other.
            self._check_fence()
        except STORAGE_ERRORS as error:
            raise OSError(
                f"The control location {self._location} can't be read and written, so the job "
                f"could never be stopped: {summary(error)}"
            ) from error
        self._heartbeat.keep()

    def _check_fence(self) -> None:
        fence = self._files.read("fence.json")
        if fence is not None:
            self._heartbeat.note_end()
            raise moved_error(fence, self._location)

    def _wait(self, streams: list[Stream]) -> str | None:
        """Wait for the end of all queries; return the request that stopped them, if one did."""
        while True:
            request_id = self._look(streams)
            if request_id is not None:
                log.warning("Stopping: %s asks for %r", self._location, request_id)
                if self._stop(streams, request_id):
                    return request_id
                log.warning("Running on: the stop %r was withdrawn", request_id)
            seconds = self._interval / len(streams)
            have_ended = [stream.wait(seconds) for stream in streams]
            if all(have_ended):
                return None

    def _look(self, streams: list[Stream]) -> str | None:
        """Return the open request, if any, and let batches run until the next look is due."""
        begun = time.monotonic()
        try:
            fence = self._files.read("fence.json")
            if fence is not None and is_answered(self._files, fence):
                self._abandon(streams, fence)
            request_id = open_request(self._files)
            for stream in streams:
                stream.renew(begun + self._lease)
        except STORAGE_ERRORS as error:  # a storage that fails for a while must not end the job
            log.warning("Can't look for a stop request, trying again: %s", summary(error))
            return None
        # The driver was paused since: the look is too old.
        if time.monotonic() - begun > self._lease:
            return self._look(streams)
        return request_id

    def _abandon(self, streams: list[Stream], fence: dict[str, Any]) -> None:
        error = moved_error(fence, self._location)
        log.error("%s", error)
        with ThreadPoolExecutor(len(streams)) as pool:
            list(pool.map(Stream.abandon, streams))
        raise error

    def _stop(self, streams: list[Stream], request_id: str | None) -> bool:
        """Stop all queries between batches; return False where the stop was withdrawn before."""
        decision = self._decision(request_id)
        deadline = time.monotonic() + self._batch_timeout
        with ThreadPoolExecutor(len(streams)) as pool:
            stopped = list(pool.map(lambda stream: stream.stop(deadline, decision), streams))
        return all(stopped)

    def _decision(self, request_id: str | None) -> StopDecision:
        """Return whether to stop; without a request there is nothing to withdraw."""
        if request_id is None:
            return StopDecision(lambda: True, lambda _stops: None)

        def is_asked() -> bool:
            try:
                return is_wanted(self._files, request_id)
            except STORAGE_ERRORS:
                return True

        def announce(stops: bool) -> None:  # noqa: FBT001 - as StopDecision calls it
            self._heartbeat.announce_stop(request_id if stops else None)

        return StopDecision(is_asked, announce)

    def _stop_others(self, streams: list[Stream], failure: Exception) -> Exception:
        try:
            if others := [stream for stream in streams if stream.query.isActive]:
                self._stop(others, None)
        except Exception as second:  # noqa: BLE001 - the first failure is what must be seen
            log.warning("Can't stop the other queries: %s", summary(second))
        return failure

    def _finish(
        self, streams: list[Stream], request_id: str | None, failure: Exception | None
    ) -> None:
        """Answer the request, and note that the queries have ended."""
        try:
            request_id = request_id or open_request(self._files)
            if request_id is not None:
                application = {"application_id": self._heartbeat.application_id}
                found = answer_of(self._spark, streams, failure)
                answer = {"schema_version": 1, "request_id": request_id, **application, **found}
                self._files.write("stopped.json", answer)
            self._heartbeat.end()
        except STORAGE_ERRORS as second:
            if failure is None:
                raise
            log.warning("Can't acknowledge the stop: %s", summary(second))
