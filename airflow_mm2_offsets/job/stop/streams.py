"""All queries of a job under stop control: they stop together, and answer together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.job.stop.query import checkpoint_of
from airflow_mm2_offsets.job.stop.stream import Stream, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from airflow_mm2_offsets.job.stop.decision import StopDecision


class Streams:
    """The queries that ``run`` was called with."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        """Keep them."""
        self._streams = streams

    def active(self) -> Streams:
        """Return the queries that still run."""
        return Streams([stream for stream in self._streams if stream.query.isActive])

    def wait(self, seconds: float) -> bool:
        """Wait for the end of all queries; return whether all have ended."""
        share = seconds / len(self._streams)
        have_ended = [stream.wait(share) for stream in self._streams]
        return all(have_ended)

    def renew(self, until: float) -> None:
        """Let batches begin and end until a ``time.monotonic()``."""
        for stream in self._streams:
            stream.renew(until)

    def hold(self) -> None:
        """Let no batch begin or be committed any more."""
        for stream in self._streams:
            stream.hold()

    def abandon(self) -> None:
        """Stop all at once. No batch begins or is committed any more until the driver ends."""
        self.hold()
        with ThreadPoolExecutor(len(self._streams)) as pool:
            list(pool.map(lambda stream: stream.abandon(), self._streams))

    def stop(
        self,
        deadline: float,
        decision: StopDecision,
        look: Callable[[], object],
        *,
        interval: float,
    ) -> bool:
        """Stop all between two batches; return False if the stop was withdrawn before.

        Args:
            deadline: A ``time.monotonic()`` after which the running batches are abandoned.
            decision: Whether all stop, or all run on.
            look: Looks at the control location. It renews the lease, or abandons the queries and
                raises. The threads that stop a query can't: they wait for a lock, and a batch that
                waits for the lease may hold it.
            interval: Seconds between two looks.
        """
        with ThreadPoolExecutor(max(len(self._streams), 1)) as pool:
            stops = [pool.submit(stream.stop, deadline, decision) for stream in self._streams]
            try:
                while wait(stops, timeout=interval).not_done:
                    look()
            except Exception:
                decision.cancel()
                raise
        return all(stop.result() for stop in stops)

    def committed(self) -> dict[str, int | None]:
        """Return the last batch that each query has committed, by its id, if known."""
        batches: dict[str, int | None] = {}
        for stream in self._streams:
            batches |= stream.committed()
        return batches

    def checkpoints(self) -> list[str]:
        """Return each query's checkpoint location, as Spark names it."""
        return [checkpoint_of(stream.query) for stream in self._streams]

    def answer(self, spark: SparkSession, failure: Exception | None) -> dict[str, Any]:
        """Return the fields of ``stopped.json`` about the queries, when they have stopped."""
        answers = [stream.answer() for stream in self._streams]
        error = summary(failure) if failure else self._others(spark)
        alone = answers[0] if len(answers) == 1 else {"batch_id": None, "offsets": None}
        return {
            "batch_id": alone["batch_id"],
            "offsets": alone["offsets"],
            "clean": error is None and all(answer["clean"] for answer in answers),
            "error": error,
            "queries": answers,
        }

    def _others(self, spark: SparkSession) -> str | None:
        """Name the session's running queries that ``run`` was not called with."""
        own = {stream.query.id for stream in self._streams}
        others = [other.name or other.id for other in spark.streams.active if other.id not in own]
        return f"not given to run(), and still running: {', '.join(others)}" if others else None
