"""Stops a structured-streaming query between batches, and says so: the job's side.

Give this one file to ``spark-submit --py-files`` and, in the job, replace
``query.awaitTermination()`` by::

    from mm2_stop_control import StopControl

    StopControl(spark, "s3a://bucket/control/orders").run(query)
    spark.stop()

It needs nothing but PySpark: Hadoop's FileSystem, inside the JVM, reads and writes the files, on
any storage that the job's Spark knows. One job per control location. In it:

``driver.json``
    Written by the job every few seconds until its process ends: ``application_id``, ``query_id``,
    ``run_id``, ``host``, ``pid``, and a count, ``heartbeat``, which stands still once it is gone.
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

import json
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

GAP_POLL_SECONDS = 0.05
# Here a file takes another's place at once; object stores only ever show a file when it is whole.
ATOMIC_RENAME = ("file", "hdfs", "viewfs")
STORAGE_ERRORS = (Py4JError, OSError, ValueError)


class StopControl:
    """Runs a streaming query until it ends or is asked to stop.

    Args:
        spark: The job's session (not Spark Connect, which has no JVM at hand).
        location: A directory of this job's own, as Hadoop writes it (``s3a://``, ``hdfs://``...).
        interval: Seconds between two heartbeats, and between two looks for a request.
        batch_timeout: Seconds to wait for the running batch before it is abandoned. A query
            whose batches follow each other without a pause has no moment between them, and
            ends this way; the checkpoint then holds a pending batch. Python code that hangs in
            ``foreachBatch`` can't be abandoned: the job then never answers.
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
        self._location = location
        self._files = _HadoopFiles(spark, location)
        self._application_id = spark.sparkContext.applicationId
        self._interval = interval
        self._batch_timeout = batch_timeout

    def run(self, query: StreamingQuery) -> None:
        """Wait as ``query.awaitTermination()`` does, and stop the query when asked to.

        Raises:
            StreamingQueryException: The query failed; an open request is answered before.
            OSError: The control location can't be written.
        """
        self._start_heartbeat(query)
        try:
            while not query.awaitTermination(self._interval):  # type: ignore[arg-type]
                if self._poll() is not None:
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
        while query.status["isTriggerActive"] and time.monotonic() < deadline:
            if query.awaitTermination(GAP_POLL_SECONDS):  # type: ignore[arg-type]
                break
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
        batch = _last_committed(query)
        answer = {
            "schema_version": 1,
            "request_id": request_id,
            "application_id": self._application_id,
            "batch_id": batch and batch["batchId"],
            "offsets": batch and [source["endOffset"] for source in batch["sources"]],
            "clean": error is None and not self._files.has_pending_batch(query),
            "error": error and _summary(error),
        }
        self._files.write("stopped.json", answer)

    def _start_heartbeat(self, query: StreamingQuery) -> None:
        driver = {
            "schema_version": 1,
            "application_id": self._application_id,
            "query_id": str(query.id),
            "run_id": str(query.runId),
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        try:
            self._files.write("driver.json", {**driver, "heartbeat": 0})
        except STORAGE_ERRORS as error:
            raise OSError(
                f"The control location {self._location} can't be written, so the job could never "
                f"be stopped: {_summary(error)}"
            ) from error
        # It goes on after the query has stopped: code of the last batch may still run.
        threading.Thread(target=self._beat, args=(driver,), daemon=True).start()

    def _beat(self, driver: dict[str, Any]) -> None:
        heartbeat = 0
        while True:
            time.sleep(self._interval)
            heartbeat += 1
            try:
                self._files.write("driver.json", {**driver, "heartbeat": heartbeat})
            except Py4JNetworkError:  # the JVM is gone
                return
            except STORAGE_ERRORS as error:
                log.warning("Can't write the heartbeat, trying again: %s", _summary(error))


class _HadoopFiles:
    """JSON files in one directory, through the JVM of the job."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._jvm = cast("Any", spark._jvm)  # noqa: SLF001 - the only way to Hadoop
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        self._hadoop = self._jvm.org.apache.hadoop.fs
        self._directory = self._hadoop.Path(location)
        # An instance of its own: the job's shared one must go on checking sums.
        self._fs = self._hadoop.FileSystem.newInstance(self._directory.toUri(), self._conf)
        self._fs.setWriteChecksum(False)
        self._fs.setVerifyChecksum(False)

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a file's object, or None when there's no such file.

        Raises:
            ValueError: It is not JSON, perhaps not yet: it is just being written.
        """
        path = self._hadoop.Path(self._directory, name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            value = json.loads(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
        if not isinstance(value, dict):
            raise ValueError(f"{path} holds no JSON object")  # noqa: TRY004 - bad JSON all the same
        return value

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Write a file so that a reader sees the one before it, or this one, whole."""
        path = self._fs.makeQualified(self._hadoop.Path(self._directory, name))
        if path.toUri().getScheme() not in ATOMIC_RENAME:
            self._create(path, value)
            return
        temporary = self._hadoop.Path(path.getParent(), f".{name}.tmp")
        self._create(temporary, value)
        rename = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        options = self._jvm.java.lang.reflect.Array.newInstance(rename, 1)
        options[0] = rename.getField("OVERWRITE").get(None)
        context = self._hadoop.FileContext.getFileContext(path.toUri(), self._conf)
        context.rename(temporary, path, options)

    def has_pending_batch(self, query: StreamingQuery) -> bool:
        """Whether the query's checkpoint holds a batch that was begun and not committed."""
        root = query._jsq.streamingQuery().resolvedCheckpointRoot()  # noqa: SLF001
        return self._last_batch(f"{root}/offsets") != self._last_batch(f"{root}/commits")

    def _last_batch(self, log_directory: str) -> int | None:
        path = self._hadoop.Path(log_directory)
        files = path.getFileSystem(self._conf)
        if not files.exists(path):
            return None
        names = [status.getPath().getName() for status in files.listStatus(path)]
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def _create(self, path: Any, value: dict[str, Any]) -> None:  # noqa: ANN401 - a Java object
        stream = self._fs.create(path, True)  # noqa: FBT003 - Java has no keywords
        try:
            stream.write(bytearray(json.dumps(value), "utf-8"))
        finally:
            stream.close()


def _last_committed(query: StreamingQuery) -> dict[str, Any] | None:
    """Return the report of the last batch that ran; those of idle triggers add no batch."""
    for progress in reversed(query.recentProgress):
        # A dict up to Spark 3.5, an object with its JSON from 4.0 on.
        report = json.loads(progress.json) if hasattr(progress, "json") else progress
        if "addBatch" in report["durationMs"]:
            return dict(report)
    return None


def _summary(error: BaseException) -> str:
    """Return what an error says, without stack traces and the query's plan and its options."""
    message = str(error).partition("=== Streaming Query ===")[0]
    lines = [line for line in message.splitlines() if line and not line[0].isspace()]
    return " ".join(lines)[:1000] or type(error).__name__
