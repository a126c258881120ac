"""Stops structured-streaming queries between batches, and answers the stop: the job's side.

In the job, construct ``StopControl`` before the query is started, and call ``run`` in the place of
``query.awaitTermination()``::

    from airflow_mm2_offsets.job import StopControl

    control = StopControl(spark, "s3a://bucket/orders")
    orders = spark.readStream.format("kafka").option("subscribe", control.topics("orders"))
    orders = orders.option("startingOffsets", control.starting_offsets()).load()
    query = orders.writeStream.option("checkpointLocation", control.checkpoint).start()
    control.run(query)
    spark.stop()

It needs only PySpark: Hadoop's FileSystem, inside the JVM, reads and writes the files, on any
storage that the job's Spark knows. One job per home. docs/stop-protocol.md describes the files in
its control location, and the note beside each checkpoint.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from airflow_mm2_offsets.job.files import HadoopFiles
from airflow_mm2_offsets.job.stop.fences import SCHEMA_VERSION, Fences, JobMovedError
from airflow_mm2_offsets.job.stop.heartbeat import (
    STORAGE_ERRORS,
    AnotherDriverError,
    Heartbeat,
    another_driver_error,
)
from airflow_mm2_offsets.job.stop.lease import REFUSALS, Lease
from airflow_mm2_offsets.job.stop.note import note_control
from airflow_mm2_offsets.job.stop.stream import Stream, summary
from airflow_mm2_offsets.job.stop.streams import Streams

__all__ = ["AnotherDriverError", "JobMovedError", "StopControl"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

LEASE_INTERVALS = 4
"""After so many intervals without a look at its control location, a job begins no batch."""


class StopControl:
    """Runs streaming queries until they end, are asked to stop, or the job was moved away.

    Construct it before the queries are started: a job that was moved away then reads nothing.

    Args:
        spark: The job's session (not Spark Connect, which has no JVM at hand).
        home: The job's folder on this cluster, for this job alone, as Hadoop spells it
            (``s3a://``, ``hdfs://``...). Its subfolder ``control`` is the control location.
        interval: Seconds between two heartbeats, and between two looks at the control location.
            While it can't be read for four of them, the queries wait between two batches.
        batch_timeout: Seconds to wait for the running batch before it is abandoned; the
            checkpoint then holds a pending batch. Python code that hangs in ``foreachBatch``
            can't be abandoned: ``run`` then raises, and the code ends with the driver.

    Raises:
        JobMovedError: By the newest fence the job must not run at this home.
        AnotherDriverError: Another driver runs at this home.
        OSError: The control location can't be read or written.
    """

    def __init__(
        self,
        spark: SparkSession,
        home: str,
        *,
        interval: float = 2.0,
        batch_timeout: float = 300.0,
    ) -> None:
        """Look for a fence, and write that the job starts."""
        self._spark = spark
        self._home = home.rstrip("/")
        self._files = HadoopFiles(spark, f"{self._home}/control")
        self._interval = interval
        self._batch_timeout = batch_timeout
        lease = LEASE_INTERVALS * interval
        self._fences = Fences(self._files, self._home)
        self._heartbeat = Heartbeat(spark, self._files, interval, lease)
        self._lease = Lease(self._files, self._fences, self._heartbeat, lease)
        self._start()

    @property
    def home(self) -> str:
        """The job's folder on this cluster."""
        return self._home

    @property
    def checkpoint(self) -> str:
        """A ``checkpointLocation`` in the home, for a job of one query."""
        return f"{self._home}/checkpoint"

    @property
    def output(self) -> str:
        """A folder in the home for what the job writes."""
        return f"{self._home}/output"

    def starting_offsets(self, default: str = "earliest") -> str:
        """Return what Spark's ``startingOffsets`` takes.

        Once the query's checkpoint has begun, Spark continues from there and ignores it.

        Args:
            default: The value for a job that was not moved to this home: ``earliest``, ``latest``
                or Spark's JSON text.

        Raises:
            OSError: The control location can't be read.
        """
        return self._of_hand_over("starting_offsets", default)

    def topics(self, default: str) -> str:
        """Return what Spark's ``subscribe`` takes: the topics on this cluster, comma separated.

        Args:
            default: The value for a job that was not moved to this home.

        Raises:
            OSError: The control location can't be read.
        """
        return self._of_hand_over("topics", default)

    def run(self, *queries: StreamingQuery) -> None:
        """Wait until all queries have ended, and stop them on request.

        A stop is answered when all have stopped. If one fails, the others are stopped.

        Raises:
            StreamingQueryException: A query failed; an open stop is answered before.
            JobMovedError: The job was moved away, by a fence here or in its earlier control
                location: the queries were stopped at once.
            AnotherDriverError: Another driver has begun with the control location; likewise.
            Py4JError: A query's last batch hangs; an open stop is answered before.
            OSError: The control location can't be written, or the earlier one can't be read.
        """
        if not queries:
            raise ValueError("run() needs the job's queries: control.run(query)")
        streams = Streams([Stream(self._spark, query, self._files) for query in queries])
        self._heartbeat.run(queries)
        try:
            request_id, failure = self._run_to_end(streams)
        except REFUSALS:
            self._heartbeat.end(streams.committed())
            raise
        self._finish(streams, request_id, failure)
        if failure is not None:
            raise failure

    def _start(self) -> None:
        try:
            self._fences.begin()
            if (other := self._heartbeat.find_living()) is not None:
                raise another_driver_error(other, self._files.location)
            # Not before: a refused driver writes nothing, however often it is started.
            self._heartbeat.begin()
            try:
                # Again: if a stop and a start coincide, at least one sees the other.
                self._fences.begin()
            except JobMovedError:
                self._heartbeat.take_back()
                raise
        except STORAGE_ERRORS as error:
            raise OSError(
                f"The control location {self._files.location} can't be read and written, so the "
                f"job could never be stopped: {summary(error)}"
            ) from error
        self._heartbeat.keep()

    def _of_hand_over(self, name: str, default: str) -> str:
        text: str | None = getattr(self._fences.began_under(), name)
        return text or default

    def _run_to_end(self, streams: Streams) -> tuple[str | None, Exception | None]:
        """Return the request that stopped the queries, if any, and the failure of one, if any."""
        try:
            self._note(streams)
            return self._wait(streams), None
        except REFUSALS:
            raise
        except Exception as error:  # noqa: BLE001 - raised by run, when it was answered
            self._stop_others(streams)
            return None, error

    def _note(self, streams: Streams) -> None:
        """Note beside the checkpoints where this control location is, before the first lease."""
        names = (self._files.location, self._heartbeat.application_id)
        try:
            note_control(self._spark, streams.checkpoints(), *names)
        except (JobMovedError, OSError) as error:
            log.error("%s", error)  # noqa: TRY400 - it is raised
            streams.abandon()
            raise

    def _wait(self, streams: Streams) -> str | None:
        """Wait for the end of all queries; return the request that stopped them, if any."""
        while True:
            request_id = self._lease.renew(streams)
            if request_id is not None:
                log.warning("Stopping: %s asks for %r", self._files.location, request_id)
                if self._stop(streams, request_id):
                    return request_id
                log.warning("Running on: the stop %r was withdrawn", request_id)
            if streams.wait(self._interval):
                return None

    def _stop(self, streams: Streams, request_id: str | None) -> bool:
        """Stop all queries between batches; return False if the stop was withdrawn before."""

        def look() -> None:
            self._lease.renew(streams, request_id)

        decision = self._lease.decide(streams, request_id)
        deadline = time.monotonic() + self._batch_timeout
        has_stopped = streams.stop(deadline, decision, look, interval=self._interval)
        if not has_stopped:
            look()  # it raises if the job was moved
        return has_stopped

    def _stop_others(self, streams: Streams) -> None:
        try:
            self._stop(streams.active(), None)
        except REFUSALS:
            raise
        except Exception as second:  # noqa: BLE001 - the first failure is the one to raise
            log.warning("Can't stop the other queries: %s", summary(second))

    def _finish(self, streams: Streams, request_id: str | None, failure: Exception | None) -> None:
        """Answer the request, and note that the queries have ended."""
        try:
            if request_id is None:
                request_id = self._lease.find_unanswered()
            # If another driver has followed, the stop is that driver's to answer.
            if request_id is not None and self._heartbeat.find_other() is None:
                answer = {
                    "schema_version": SCHEMA_VERSION,
                    "request_id": request_id,
                    "application_id": self._heartbeat.application_id,
                    **streams.answer(self._spark, failure),
                }
                self._files.write("stopped.json", answer)
            self._heartbeat.end(streams.committed())
        except STORAGE_ERRORS as second:
            if failure is None:
                raise
            log.warning("Can't acknowledge the stop: %s", summary(second))
