"""A circuit breaker before the source: who did not answer a moment ago is not asked again yet."""

import copy
import threading
import time
from collections.abc import Callable, Iterable

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import ClusterUnreachableError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

PAUSE_SECONDS = 5.0
PROBE_SECONDS = 15.0
"""How long one request may find out whether the cluster is back; longer than its own deadline."""


class Breaker:
    """Reads watermarks; after a failure, one request at a time finds out whether it is over.

    Args:
        cluster: The cluster.
        pause: Seconds after a failure in which every request fails at once.
        clock: Returns seconds.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        *,
        pause: float = PAUSE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the cluster; ask nothing yet."""
        self._cluster = cluster
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._error: ClusterUnreachableError | None = None
        self._ask_after = 0.0

    def watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Return the watermarks of partitions; see ``KafkaCluster.watermarks``.

        Raises:
            ClusterUnreachableError: The cluster does not answer, or did not a moment ago.
        """
        requested = list(partitions)
        if not requested:
            return {}  # Nobody is asked, so nothing is learned.
        self._raise_if_open()
        try:
            watermarks = self._cluster.watermarks(requested)
        except ClusterUnreachableError as error:
            with self._lock:
                # The frames of the error itself would keep the request in memory.
                self._error = copy.copy(error)
                self._ask_after = self._clock() + self._pause
            raise
        except Exception:
            self._close()  # The cluster has answered.
            raise
        self._close()
        return watermarks

    def _close(self) -> None:
        with self._lock:
            self._error = None

    def _raise_if_open(self) -> None:
        with self._lock:
            if self._error is None:
                return
            now = self._clock()
            if now < self._ask_after:
                raise copy.copy(self._error)
            # This request asks; the others are refused until it has an answer.
            self._ask_after = now + PROBE_SECONDS
