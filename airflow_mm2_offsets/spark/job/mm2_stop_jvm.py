"""What the stop control asks of the job's JVM, beyond PySpark's own interface.

It comes along with ``mm2_stop_control.py``, and needs nothing but PySpark.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Here a file takes another's place at once; object stores only ever show a file when it is whole.
ATOMIC_RENAME = ("file", "hdfs", "viewfs")
GAP_POLL_SECONDS = 0.05
PROCESS_START = 19
"""Where ``/proc/PID/stat`` has the start, in clock ticks since boot, counted after the name."""


class HadoopFiles:
    """JSON files in one directory, through the JVM of the job."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        """Open the directory; nothing is read or written."""
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


def last_committed(query: StreamingQuery) -> dict[str, Any] | None:
    """Return the report of the last batch that ran; those of idle triggers add no batch."""
    for progress in reversed(query.recentProgress):
        # A dict up to Spark 3.5, an object with its JSON from 4.0 on.
        report = json.loads(progress.json) if hasattr(progress, "json") else progress
        if "addBatch" in report["durationMs"]:
            return dict(report)
    return None


class LastBatch:
    """Lets the running batch be a query's last, without interrupting it.

    The query's thread looks at its state before each batch, and since Spark 4.2 again when the
    batch is planned, which it then interrupts. It begins a batch (writes its offsets) and ends one
    (commits it) under a lock. So with that lock in hand, the state is set to what ``query.stop()``
    sets it to once the batch has come to its commit, or when none is begun.

    Raises:
        Py4JError: This Spark keeps its state otherwise.
        TypeError: The same; or calls of one Python thread come from several of the JVM.
    """

    def __init__(
        self, spark: SparkSession, query: StreamingQuery, has_pending: Callable[[], bool]
    ) -> None:
        """Find the query's lock, thread and state (``StreamExecution``)."""
        if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
            raise TypeError("a lock can't be held while PYSPARK_PIN_THREAD is false")
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no way to ask for it
        execution = query._jsq.streamingQuery()  # noqa: SLF001
        self._lock: Any = execution.awaitProgressLock()
        self._thread: Any = execution.queryExecutionThread()
        self._state: Any = execution.state()
        self._active = self._state.get()
        kind = self._active.getClass()  # its package is another one since Spark 4.1
        name = f"{kind.getPackage().getName()}.TERMINATED$"
        terminated = jvm.java.lang.Class.forName(name, True, kind.getClassLoader())  # noqa: FBT003
        self._terminated = terminated.getField("MODULE$").get(None)
        self._query = query
        self._has_pending = has_pending

    def wait(self, deadline: float) -> None:
        """Wait until the query can begin no other batch, at most until a ``time.monotonic()``."""
        while self._thread.isAlive() and time.monotonic() < deadline:
            self._lock.lock()
            try:
                if self._is_set(deadline):
                    return
            finally:
                self._lock.unlock()
            time.sleep(GAP_POLL_SECONDS)  # a batch is about to begin, or was until now

    def _is_set(self, deadline: float) -> bool:
        if self._has_pending():
            while not self._lock.hasQueuedThread(self._thread):  # to commit
                if time.monotonic() > deadline or not self._thread.isAlive():
                    return False
                time.sleep(GAP_POLL_SECONDS)
            self._state.set(self._terminated)
            return True
        if self._query.status["isTriggerActive"]:
            return False
        self._state.set(self._terminated)
        time.sleep(GAP_POLL_SECONDS)
        if not self._query.status["isTriggerActive"]:
            return True
        self._state.set(self._active)  # it had looked a moment before, and waits for the lock
        return False


def describe_driver(spark: SparkSession, query: StreamingQuery) -> dict[str, Any]:
    """Return what others must know of this driver: whose it is, where it runs, what it reads."""
    jvm: Any = spark._jvm  # noqa: SLF001
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    pids = (os.getpid(), int(runtime.getName().partition("@")[0]))
    started = {str(pid): _started(pid) for pid in pids}
    return {
        "schema_version": 1,
        "application_id": spark.sparkContext.applicationId,
        "query_id": str(query.id),
        "run_id": str(query.runId),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "processes": {pid: start for pid, start in started.items() if start is not None},
        "kubernetes_driver": _kubernetes_driver(spark),
        "bootstrap_servers": _bootstrap_servers(query),
    }


def _started(pid: int) -> int | None:
    """Return when a process was started; with its id it is like no other. None where unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # no Linux
        return None
    return int(stat.rpartition(")")[2].split()[PROCESS_START])


def _kubernetes_driver(spark: SparkSession) -> str | None:
    """Return the driver's ``namespace:pod``; None in client mode, where the pod is another's."""
    conf = spark.sparkContext.getConf()
    pod = conf.get("spark.kubernetes.driver.pod.name")
    if pod is None or conf.get("spark.submit.deployMode") != "cluster":
        return None
    return f"{conf.get('spark.kubernetes.namespace', 'default')}:{pod}"


def _bootstrap_servers(query: StreamingQuery) -> list[str]:
    """Return the brokers that the query's Kafka sources were given; none where it can't be told."""
    try:
        leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()  # noqa: SLF001
        given = {
            leaf.extraOptions().get("kafka.bootstrap.servers")
            for leaf in map(leaves.apply, range(leaves.size()))
            if leaf.getClass().getSimpleName() == "StreamingRelationV2"
        }
    except Py4JError:
        return []
    return sorted({server.strip() for each in given if each for server in each.split(",")})
