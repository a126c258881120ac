"""One query under stop control; ``Streams`` waits for it, stops it, and collects its answer."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from airflow_mm2_offsets.job.stop.gate import BatchGate
from airflow_mm2_offsets.job.stop.query import (
    GAP_POLL_SECONDS,
    BatchLoop,
    LastBatch,
    has_pending_batch,
    last_batches,
    report_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from airflow_mm2_offsets.job.files import HadoopFiles
    from airflow_mm2_offsets.job.stop.decision import StopDecision

log = logging.getLogger(__name__)

STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
STOP_TIMEOUT_SECONDS = 30


class Stream:
    """A query that was started."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, files: HadoopFiles) -> None:
        """Prepare to hold back batches; without that the query can only be stopped in a pause."""
        self.query = query
        self._spark = spark
        self._files = files
        self._error: str | None = None
        self._loop: BatchLoop | None = None
        self._gate: BatchGate | None = None
        try:
            self._loop = BatchLoop(spark, query)
            self._gate = BatchGate(spark, query)
        except (Py4JError, TypeError) as error:
            log.warning("Batches can't be held back: %s", summary(error))

    def wait(self, seconds: float) -> bool:
        """Wait as ``awaitTermination`` does; return whether the query has ended."""
        try:
            has_ended = bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]
        except Exception as error:
            self._error = summary(error)
            self._gate = None
            raise
        if has_ended:
            self._gate = None
        return has_ended

    def renew(self, until: float) -> None:
        """Let batches begin and end until a ``time.monotonic()``."""
        if self._gate is not None:
            self._gate.renew(until)

    def hold(self) -> None:
        """Hold back every batch from beginning and from its commit."""
        if self._gate is not None:
            self._gate.shut()

    def stop(self, deadline: float, decision: StopDecision) -> bool:
        """Stop between two batches; return False if the stop was withdrawn before.

        After ``deadline``, a ``time.monotonic()``, the running batch is abandoned.
        """
        try:
            self._await_pause(deadline, decision)
            if not decision.carry_out():
                return False
            self._end()
            self.query.awaitTermination(1)  # raises where the query had failed meanwhile
        except Exception as error:
            self._error = summary(error)
            raise
        return True

    def abandon(self) -> None:
        """Stop at once. No batch begins or is committed any more until the driver ends."""
        if self._loop is None or self._gate is None:
            self._end()
            return
        self.hold()
        self._loop.break_off()

    def committed(self) -> dict[str, int | None]:
        """Return the last batch that the query has committed, by its id; empty if not known."""
        try:
            return {str(self.query.id): last_batches(self.query, self._files)[1]}
        except Py4JError as error:
            log.warning("Can't read the checkpoint: %s", summary(error))
            return {}

    def answer(self) -> dict[str, Any]:
        """Return what the query has committed, and whether it stopped between two batches."""
        begun, committed = last_batches(self.query, self._files)
        report = report_of(self.query, committed)
        return {
            "query_id": str(self.query.id),
            "run_id": str(self.query.runId),
            "batch_id": committed,
            "offsets": report and [source["endOffset"] for source in report["sources"]],
            "clean": self._error is None and begun == committed,
            "error": self._error,
        }

    def _await_pause(self, deadline: float, decision: StopDecision) -> None:
        """Wait until the query is between two batches, or the stop is withdrawn."""
        if self._loop is not None:
            try:
                has_pending = partial(has_pending_batch, self.query, self._files)
                LastBatch(self._loop, has_pending, decision).wait(deadline)
            except (Py4JError, TypeError) as error:
                log.warning("Waiting for a pause between two batches: %s", summary(error))
        # awaitTermination would return at once: the state says that the query has ended.
        while self.query.status["isTriggerActive"] and time.monotonic() < deadline:
            if not decision.is_valid():
                return
            time.sleep(GAP_POLL_SECONDS)

    def _end(self) -> None:
        if self._spark.conf.get(STOP_TIMEOUT, None) is None:  # without one it may wait for ever
            self._spark.conf.set(STOP_TIMEOUT, f"{STOP_TIMEOUT_SECONDS}s")
        self.query.stop()


def summary(error: BaseException) -> str:
    """Return what an error says, without stack traces and the query's plan and its options."""
    message = str(error).partition("=== Streaming Query ===")[0]
    lines = [line for line in message.splitlines() if line and not line[0].isspace()]
    return " ".join(lines)[:1000] or type(error).__name__
