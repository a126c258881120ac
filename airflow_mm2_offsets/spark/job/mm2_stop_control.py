"""Stops a structured-streaming query between batches, and says so: the job's side.

Give this file and ``mm2_stop_jvm.py`` to ``spark-submit --py-files`` and, in the job, replace
``query.awaitTermination()`` by::

    from mm2_stop_control import StopControl

    StopControl(spark, "s3a://bucket/control/orders").run(query)
    spark.stop()

It needs nothing but PySpark: Hadoop's FileSystem, inside the JVM, reads and writes the files, on
any storage that the job's Spark knows. One job per control location. In it:

``driver.json``
    Written by the job every few seconds until its process ends: ``application_id``, ``query_id``,
    ``run_id``, ``host``, ``pid``, ``processes`` (the driver's Python and JVM, each with its start
    in clock ticks since boot), ``kubernetes_driver`` (``namespace:pod``, or null),
    ``bootstrap_servers`` (which Kafka it reads), and a count, ``heartbeat``, which stands still
    once the driver is gone.
``stop-request.json``
    Written by whoever wants the job to stop: ``schema_version`` 1 and a ``request_id``.
``stopped.json``
    The job's answer: the ``request_id``, ``application_id``, ``batch_id`` and ``offsets`` of the
    last batch that this run committed (one entry per source, as Spark reports it; both null when
    it committed none), ``clean`` (whether no batch was left begun and uncommitted), and ``error``
    (null, or why the query failed).

A request is open until ``stopped.json`` names its id. A job that starts while a request is open
stops at once, for nobody has yet been told that the job stands; a request that was answered, by
this or an earlier run of the job, is ignored.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mm2_stop_jvm import (  # type: ignore[import-not-found] # comes by --py-files
    GAP_POLL_SECONDS,
    HadoopFiles,
    LastBatch,
    describe_driver,
    last_committed,
)
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
STOP_TIMEOUT_SECONDS = 30
STORAGE_ERRORS = (Py4JError, OSError, ValueError)


class StopControl:
    """Runs a streaming query until it ends or is asked to stop.

    Args:
        spark: The job's session (not Spark Connect, which has no JVM at hand).
        location: A directory of this job's own, as Hadoop writes it (``s3a://``, ``hdfs://``...).
        interval: Seconds between two heartbeats, and between two looks for a request.
        batch_timeout: Seconds to wait for the running batch before it is abandoned; the
            checkpoint then holds a pending batch. Python code that hangs in ``foreachBatch``
            can't be abandoned: ``run`` then raises, and the code ends with the driver.
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        *,
        interval: float = 2.0,
        batch_timeout: float = 300.0,
    ) -> None:
        """Open the control location; nothing is written before ``run``."""
        self._spark = spark
        self._location = location
        self._files = HadoopFiles(spark, location)
        self._interval = interval
        self._batch_timeout = batch_timeout
        self._driver: dict[str, Any] = {}
        self._heartbeat = 0
        self._writing = threading.Lock()

    def run(self, query: StreamingQuery) -> None:
        """Wait as ``query.awaitTermination()`` does, and stop the query when asked to.

        Raises:
            StreamingQueryException: The query failed; an open request is answered before.
            Py4JError: The query was asked to stop and its last batch hangs; answered likewise.
            OSError: The control location can't be written.
        """
        self._announce(query)
        try:
            while not query.awaitTermination(self._interval):  # type: ignore[arg-type]
                if (request_id := self._poll()) is not None:
                    log.warning("Stopping: %s asks for %r", self._location, request_id)
                    self._stop(query)
        except Exception as error:
            try:
                self._acknowledge(query, error)
            except STORAGE_ERRORS as second:  # the query's own failure is what must be seen
                log.warning("Can't acknowledge the stop: %s", _summary(second))
            raise
        self._acknowledge(query, None)

    def _stop(self, query: StreamingQuery) -> None:
        deadline = time.monotonic() + self._batch_timeout
        try:
            LastBatch(self._spark, query, partial(self._files.has_pending_batch, query)).wait(
                deadline
            )
        except (Py4JError, TypeError) as error:
            log.warning("Waiting for a pause between two batches: %s", _summary(error))
        # To awaitTermination the query would be over already.
        while query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(GAP_POLL_SECONDS)
        if self._spark.conf.get(STOP_TIMEOUT, None) is None:  # without one it may wait for ever
            self._spark.conf.set(STOP_TIMEOUT, f"{STOP_TIMEOUT_SECONDS}s")
        query.stop()

    def _poll(self) -> str | None:
        try:
            return self._open_request()
        except STORAGE_ERRORS as error:  # the job outlives a storage that fails for a while
            log.warning("Can't look for a stop request, trying again: %s", _summary(error))
            return None

    def _open_request(self) -> str | None:
        request = self._files.read("stop-request.json") or {}
        answer = self._files.read("stopped.json") or {}
        asked: str | None = request.get("request_id")
        return asked if asked != answer.get("request_id") else None

    def _acknowledge(self, query: StreamingQuery, error: Exception | None) -> None:
        request_id = self._open_request()
        if request_id is None:
            return
        batch = last_committed(query)
        answer = {
            "schema_version": 1,
            "request_id": request_id,
            "application_id": self._driver["application_id"],
            "batch_id": batch and batch["batchId"],
            "offsets": batch and [source["endOffset"] for source in batch["sources"]],
            "clean": error is None and not self._files.has_pending_batch(query),
            "error": error and _summary(error),
        }
        self._files.write("stopped.json", answer)

    def _announce(self, query: StreamingQuery) -> None:
        first, self._driver = not self._driver, describe_driver(self._spark, query)
        try:
            self._beat()
        except STORAGE_ERRORS as error:
            raise OSError(
                f"The control location {self._location} can't be written, so the job could never "
                f"be stopped: {_summary(error)}"
            ) from error
        if first:
            threading.Thread(target=self._keep_beating, daemon=True).start()

    def _beat(self) -> None:
        with self._writing:
            self._heartbeat += 1
            self._files.write("driver.json", {**self._driver, "heartbeat": self._heartbeat})

    def _keep_beating(self) -> None:
        # It goes on after the query has stopped: code of the last batch may still run.
        while True:
            time.sleep(self._interval)
            try:
                self._beat()
            except Py4JNetworkError:  # the JVM is gone
                return
            except STORAGE_ERRORS as error:
                log.warning("Can't write the heartbeat, trying again: %s", _summary(error))


def _summary(error: BaseException) -> str:
    """Return what an error says, without stack traces and the query's plan and its options."""
    message = str(error).partition("=== Streaming Query ===")[0]
    lines = [line for line in message.splitlines() if line and not line[0].isspace()]
    return " ".join(lines)[:1000] or type(error).__name__
