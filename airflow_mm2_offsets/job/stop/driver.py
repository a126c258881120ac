"""What the stop control asks of the job's JVM, beyond PySpark's own interface."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Here a file takes another's place at once; object stores only ever show a file when it is whole.
ATOMIC_RENAME = ("file", "hdfs", "viewfs")
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

    @property
    def location(self) -> str:
        """The directory with its scheme and host, as others can compare it."""
        return str(self._fs.makeQualified(self._directory).toString())

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
        if path.toUri().getScheme() == "file":
            # Hadoop deletes the file first here: a job that ends in between would leave none.
            Path(temporary.toUri().getPath()).replace(path.toUri().getPath())
            return
        rename = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        options = self._jvm.java.lang.reflect.Array.newInstance(rename, 1)
        options[0] = rename.getField("OVERWRITE").get(None)
        context = self._hadoop.FileContext.getFileContext(path.toUri(), self._conf)
        context.rename(temporary, path, options)

    def close(self) -> None:
        """Let go of the storage."""
        self._fs.close()

    def last_batches(self, query: StreamingQuery) -> tuple[int | None, int | None]:
        """Return the last batch that a query's checkpoint has begun, and the last committed."""
        root = checkpoint_of(query)
        # Commits first: a batch that is committed in between then looks pending, never clean.
        committed = self._last_batch(f"{root}/commits")
        return self._last_batch(f"{root}/offsets"), committed

    def has_pending_batch(self, query: StreamingQuery) -> bool:
        """Whether the query's checkpoint holds a batch that was begun and not committed."""
        begun, committed = self.last_batches(query)
        return begun != committed

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


def checkpoint_of(query: StreamingQuery) -> str:
    """Return a query's checkpoint location, as Spark names it."""
    return str(query._jsq.streamingQuery().resolvedCheckpointRoot())  # noqa: SLF001


def describe_driver(spark: SparkSession) -> dict[str, Any]:
    """Return what others must know of this driver: whose it is, and where it runs."""
    jvm: Any = spark._jvm  # noqa: SLF001
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    pids = (os.getpid(), int(runtime.getName().partition("@")[0]))
    started = {str(pid): _started(pid) for pid in pids}
    return {
        "schema_version": 1,
        "application_id": spark.sparkContext.applicationId,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "processes": {pid: start for pid, start in started.items() if start is not None},
        "kubernetes_driver": _kubernetes_driver(spark),
    }


def describe_queries(queries: Sequence[StreamingQuery]) -> dict[str, Any]:
    """Return which queries a driver runs, and what they read."""
    described, servers = [], set()
    for query in queries:
        options = _kafka_options(query)
        given = (each.get("kafka.bootstrap.servers") for each in options)
        servers |= {server.strip() for each in given if each for server in each.split(",")}
        patterns = {pattern for each in options if (pattern := each.get("subscribePattern"))}
        names = {"query_id": str(query.id), "run_id": str(query.runId)}
        described.append(
            {**names, "checkpoint": checkpoint_of(query), "subscribe_patterns": sorted(patterns)}
        )
    first = {name: described[0][name] for name in ("query_id", "run_id")}
    return {**first, "queries": described, "bootstrap_servers": sorted(servers)}


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


def _kafka_options(query: StreamingQuery) -> list[Any]:
    """Return the options of the query's sources; none where this Spark keeps them otherwise."""
    try:
        leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()  # noqa: SLF001
        return [
            leaf.extraOptions()  # a map that takes names in any case
            for leaf in map(leaves.apply, range(leaves.size()))
            if leaf.getClass().getSimpleName() == "StreamingRelationV2"
        ]
    except Py4JError:
        return []
