"""``driver.json``: which driver runs with a control location, and that it lives.

It comes along with ``mm2_stop_control.py``, and needs nothing but PySpark.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

if __package__:
    from .mm2_stop_jvm import describe_driver, describe_queries
    from .mm2_stop_stream import summary
else:  # by --py-files
    from mm2_stop_jvm import (  # type: ignore[import-not-found,no-redef]
        describe_driver,
        describe_queries,
    )
    from mm2_stop_stream import summary  # type: ignore[import-not-found,no-redef]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from .mm2_stop_jvm import HadoopFiles

log = logging.getLogger(__name__)

STORAGE_ERRORS = (Py4JError, OSError, ValueError)
_NO_QUERY: dict[str, Any] = {"query_id": "", "run_id": "", "queries": [], "bootstrap_servers": []}


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
        self._count = 0
        self._writing = threading.Lock()

    @property
    def application_id(self) -> str:
        """What Spark calls the driver's application."""
        return str(self._driver["application_id"])

    def begin(self) -> None:
        """Say that a driver starts, in the place of the one before; the job stays the same."""
        earlier = self._files.read("driver.json") or {}
        kept = {name: earlier.get(name, empty) for name, empty in _NO_QUERY.items()}
        self._write(kept, ended=False)

    def keep(self) -> None:
        """Go on until the process ends: code of the last batch may run when all have stopped."""
        threading.Thread(target=self._run, daemon=True).start()

    def run(self, queries: Sequence[StreamingQuery]) -> None:
        """Say which queries run."""
        self._write({**describe_queries(queries), "stopping": None}, ended=False)

    def announce_stop(self, request_id: str | None) -> None:
        """Say which stop the job carries out: it can't be withdrawn any more. None: it runs on."""
        try:
            self._write({"stopping": request_id}, ended=False)
        except STORAGE_ERRORS as error:  # the next heartbeat says it
            log.warning("Can't announce the stop yet: %s", summary(error))

    def end(self) -> None:
        """Say that no query runs any more."""
        self._write({}, ended=True)

    def note_end(self) -> None:
        """Say that nothing runs here, for a driver that ended without a word; once is enough."""
        found = self._files.read("driver.json")
        if found is not None and not found.get("ended"):
            self._files.write("driver.json", {**found, "ended": True})

    def _write(self, more: dict[str, Any], *, ended: bool) -> None:
        self._driver.update(more, ended=ended)
        self._beat()

    def _beat(self) -> None:
        with self._writing:
            self._count += 1
            self._files.write("driver.json", {**self._driver, "heartbeat": self._count})

    def _run(self) -> None:
        while True:
            time.sleep(self._interval)
            try:
                self._beat()
            except Py4JNetworkError:  # the JVM is gone
                return
            except STORAGE_ERRORS as error:
                log.warning("Can't write the heartbeat, trying again: %s", summary(error))
