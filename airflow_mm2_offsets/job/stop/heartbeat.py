"""Writes ``driver.json``, by which others see which driver runs here and that it lives.

``StopControl`` starts it; the lease asks it for another driver.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

from airflow_mm2_offsets.job.liveness import next_beat
from airflow_mm2_offsets.job.stop.driver import describe_driver, describe_queries
from airflow_mm2_offsets.job.stop.stream import summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from airflow_mm2_offsets.job.files import HadoopFiles

log = logging.getLogger(__name__)

STORAGE_ERRORS = (Py4JError, OSError, ValueError)
_NAMES = ("application_id", "host", "pid", "processes")
"""The fields that tell drivers apart: attempts of one application share its id."""
_NO_QUERY: dict[str, Any] = {"query_id": "", "run_id": "", "queries": [], "bootstrap_servers": []}


class AnotherDriverError(RuntimeError):
    """Another driver runs with this control location: two must never run one job."""


def another_driver_error(driver: dict[str, Any], location: str) -> AnotherDriverError:
    """Return the error for another driver's ``driver.json``: which one, and what to do."""
    return AnotherDriverError(
        f"The driver {driver.get('application_id')} on {driver.get('host')} (process "
        f"{driver.get('pid')}) runs with the control location {location}, so this driver ends. A "
        f"control location belongs to one job: end that driver first, or give this job another "
        f"home"
    )


class Heartbeat:
    """Writes ``driver.json`` every few seconds until the process ends.

    Args:
        spark: The job's session.
        files: The control location's.
        interval: Seconds between two heartbeats.
        lease: Seconds after which a driver that could not look at the location begins no batch.
    """

    def __init__(
        self, spark: SparkSession, files: HadoopFiles, interval: float, lease: float
    ) -> None:
        """Describe the driver; nothing is written yet."""
        self._files = files
        self._interval = interval
        self._driver: dict[str, Any] = {
            **describe_driver(spark),
            "control": files.location,
            "interval": interval,
            "lease": lease,
        }
        self._earlier: dict[str, Any] | None = None
        self._count = 0
        self._writing = threading.Lock()

    @property
    def application_id(self) -> str:
        """Spark's id of the driver's application."""
        return str(self._driver["application_id"])

    def find_other(self) -> dict[str, Any] | None:
        """Return the ``driver.json`` of another driver; None if this driver wrote it last."""
        driver = self._read()
        is_own = driver is None or all(driver.get(name) == self._driver[name] for name in _NAMES)
        return None if is_own else driver

    def find_living(self) -> dict[str, Any] | None:
        """Return another driver that lives, because its heartbeat moves.

        A driver that died without writing ``ended`` costs three of its intervals, at most 30 s.
        """
        other = self.find_other()
        if other is None or other.get("ended"):
            return None
        other = next_beat(self.find_other, other, other.get("interval") or self._interval)
        return None if other is None or other.get("ended") else other

    def begin(self) -> None:
        """Write that this driver starts; the job's queries stay those of the driver before."""
        self._earlier = self._read()
        earlier = self._earlier or {}
        self._driver.update({name: earlier.get(name, empty) for name, empty in _NO_QUERY.items()})
        self._driver["ended"] = False
        self._put()

    def take_back(self) -> None:
        """Restore the file of the driver before: this driver is refused, and has run no query."""
        if self._earlier is None:
            self.end({})
        elif self.find_other() is None:
            self._files.write("driver.json", self._earlier)

    def keep(self) -> None:
        """Beat until the process ends: code of the last batch may outlive the queries."""
        threading.Thread(target=self._run, daemon=True).start()

    def run(self, queries: Sequence[StreamingQuery]) -> None:
        """Write which queries run."""
        self._write({**describe_queries(queries), "stopping": None}, ended=False)

    def announce_stop(self, request_id: str | None) -> bool:
        """Write which stop the job carries out, so that it can't be withdrawn; None: it runs on.

        Returns:
            False where the storage fails; the next heartbeat writes it.

        Raises:
            Py4JNetworkError: The JVM is gone.
        """
        try:
            self._write({"stopping": request_id}, ended=False)
        except Py4JNetworkError:
            raise
        except STORAGE_ERRORS as error:
            log.warning("Can't announce the stop yet: %s", summary(error))
            return False
        return True

    def end(self, batches: Mapping[str, int | None]) -> None:
        """Write that all queries have ended, and the last committed batch of each, by its id."""
        queries = [
            {**query, "batch_id": batches[query["query_id"]]}
            if query["query_id"] in batches
            else query
            for query in self._driver["queries"]
        ]
        self._write({"queries": queries}, ended=True)

    def _write(self, more: dict[str, Any], *, ended: bool) -> None:
        self._driver.update(more, ended=ended)
        self._beat()

    def _beat(self) -> None:
        if self.find_other() is None:  # a driver that was paused leaves the file to the next one
            self._put()

    def _put(self) -> None:
        with self._writing:
            self._count += 1
            self._files.write("driver.json", {**self._driver, "heartbeat": self._count})

    def _read(self) -> dict[str, Any] | None:
        try:
            return self._files.read("driver.json")
        except ValueError:  # damaged or being created: counts as absent
            return None

    def _run(self) -> None:
        while True:
            time.sleep(self._interval)
            try:
                self._beat()
            except Py4JNetworkError:  # the JVM is gone
                return
            except STORAGE_ERRORS as error:
                log.warning("Can't write the heartbeat, trying again: %s", summary(error))
