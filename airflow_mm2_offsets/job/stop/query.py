"""How the stop control ends a query between two batches.

A query's thread begins a batch (writes its offsets) and ends one (commits it) under a lock, and
looks at the query's state before each batch; since Spark 4.2 again when the batch is planned, which
it then interrupts (``StreamExecution``).
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from airflow_mm2_offsets.job.files import HadoopFiles
    from airflow_mm2_offsets.job.stop.decision import StopDecision

GAP_POLL_SECONDS = 0.05


def report_of(query: StreamingQuery, batch_id: int | None) -> dict[str, Any] | None:
    """Return Spark's report of a batch that this run of a query has run."""
    for progress in reversed(query.recentProgress):
        # A dict up to Spark 3.5, an object with its JSON from 4.0 on.
        report = json.loads(progress.json) if hasattr(progress, "json") else progress
        if "addBatch" in report["durationMs"] and report["batchId"] == batch_id:
            return dict(report)
    return None


def checkpoint_of(query: StreamingQuery) -> str:
    """Return a query's checkpoint location, as Spark names it."""
    return str(query._jsq.streamingQuery().resolvedCheckpointRoot())  # noqa: SLF001


def last_batches(query: StreamingQuery, files: HadoopFiles) -> tuple[int | None, int | None]:
    """Return the last batch that a query's checkpoint has begun, and the last committed."""
    root = checkpoint_of(query)
    # Commits first: a batch that is committed in between then looks pending, never clean.
    committed = max(files.numbers_in(f"{root}/commits"), default=None)
    return max(files.numbers_in(f"{root}/offsets"), default=None), committed


def has_pending_batch(query: StreamingQuery, files: HadoopFiles) -> bool:
    """Whether the query's checkpoint holds a batch that was begun and not committed."""
    begun, committed = last_batches(query, files)
    return begun != committed


class BatchLoop:
    """The lock, the thread and the state of a query.

    Raises:
        Py4JError: This Spark keeps them otherwise.
        TypeError: The same.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        """Look them up in Spark."""
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no way to ask for it
        execution = query._jsq.streamingQuery()  # noqa: SLF001
        self.query = query
        self._spark = spark
        self.lock: Any = execution.awaitProgressLock()
        self.thread: Any = execution.queryExecutionThread()
        self._state: Any = execution.state()
        self._active = self._state.get()
        kind = self._active.getClass()  # its package is another one since Spark 4.1
        name = f"{kind.getPackage().getName()}.TERMINATED$"
        terminated = jvm.java.lang.Class.forName(name, True, kind.getClassLoader())  # noqa: FBT003
        self._terminated = terminated.getField("MODULE$").get(None)

    def end(self) -> None:
        """Set the state to what ``query.stop()`` sets it to: no other batch begins."""
        self._state.set(self._terminated)

    def break_off(self) -> None:
        """Do what ``query.stop()`` does, but don't wait for the end of the thread."""
        self.end()
        self._spark.sparkContext.cancelJobGroup(str(self.query.runId))
        self.thread.interrupt()

    def go_on(self) -> None:
        """Set the state back."""
        self._state.set(self._active)


class LastBatch:
    """Lets the running batch be a query's last, without interrupting it.

    With the lock in hand, the state is set to its end once the batch has come to its commit, or
    while no batch is begun. The job's decision is taken directly before.

    Raises:
        TypeError: Calls of one Python thread come from several of the JVM.
    """

    def __init__(
        self, loop: BatchLoop, has_pending: Callable[[], bool], decision: StopDecision
    ) -> None:
        """Check that Python threads keep their JVM threads."""
        if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
            raise TypeError("a lock can't be held while PYSPARK_PIN_THREAD is false")
        self._loop = loop
        self._has_pending = has_pending
        self._decision = decision

    def wait(self, deadline: float) -> bool:
        """Wait until the query can begin no other batch, at most until a ``time.monotonic()``.

        Returns:
            False where the stop was withdrawn.
        """
        while self._loop.thread.isAlive() and time.monotonic() < deadline:
            self._loop.lock.lock()
            try:
                if self._is_set(deadline):
                    return True
            finally:
                self._loop.lock.unlock()
            if not self._decision.is_valid():
                return False
            time.sleep(GAP_POLL_SECONDS)  # a batch is about to begin, or was until now
        return True

    def _is_set(self, deadline: float) -> bool:
        loop, query = self._loop, self._loop.query
        if self._has_pending():
            if not self._comes_to_commit(deadline) or not self._decision.carry_out():
                return False
            loop.end()
            return True
        if query.status["isTriggerActive"] or not self._decision.carry_out():
            return False
        loop.end()
        time.sleep(GAP_POLL_SECONDS)
        if not query.status["isTriggerActive"]:
            return True
        loop.go_on()  # it had looked a moment before, and waits for the lock
        return False

    def _comes_to_commit(self, deadline: float) -> bool:
        loop = self._loop
        while not loop.lock.hasQueuedThread(loop.thread):
            if time.monotonic() > deadline or not loop.thread.isAlive():
                return False
            if not self._decision.is_valid():
                return False
            time.sleep(GAP_POLL_SECONDS)
        return True
