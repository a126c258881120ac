"""Keeps the offset syncs in memory for the REST server, and refreshes them; see ``api.pairs``.

A request takes one reference to an immutable snapshot: a refresh does not block it, and it never
sees half of a read.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeAlias

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import SyncIndex
from airflow_mm2_offsets.errors import Mm2OffsetsError, SyncsTopicError
from airflow_mm2_offsets.kafka.stable_read import SyncsTopicState, read_stable
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot, read_syncs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """The syncs in memory, and how the last refresh ended."""

    syncs: SyncsSnapshot | None = None
    """Those of the last successful refresh; None before the first."""
    error: Exception | None = None
    """Why the last refresh failed, if it did; then ``syncs`` are stale."""
    refreshes: int = 0
    failures: int = 0


Reader: TypeAlias = Callable[[SyncsSnapshot | None], SyncsSnapshot]


class SharedRead:
    """A read whose waiting callers share one result.

    Callers that wait at the same time share the next read, which begins after all of them called.
    """

    def __init__(self, read: Callable[[], SyncsSnapshot]) -> None:
        """Keep the function; call nothing yet."""
        self._read = read
        self._reading = threading.Lock()
        self._next_lock = threading.Lock()
        self._next: Future[SyncsSnapshot] | None = None

    def __call__(self) -> SyncsSnapshot:
        """Return what the function returns, or raise what it raises."""
        with self._next_lock:
            outcome, is_first = self._next, self._next is None
            if outcome is None:
                outcome = self._next = Future()
        if is_first:
            with self._reading:
                with self._next_lock:
                    self._next = None  # Who calls from now on waits for another read.
                self._run(outcome)
        if error := outcome.exception():
            # Each waiting caller raises it: no traceback may keep another caller's frames.
            raise error.with_traceback(None)
        return outcome.result()

    def _run(self, outcome: "Future[SyncsSnapshot]") -> None:
        try:
            outcome.set_result(self._read())
        except BaseException as error:  # noqa: BLE001 - each caller raises it
            # The frames would keep half a read in memory.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            outcome.set_exception(error)


def _ignore(_error: Exception) -> None:
    """Do nothing."""


class SyncCache:
    """The syncs of a pair of clusters, refreshed in the background.

    Args:
        read: Continues a snapshot, such as ``partial(read_on, pair)``.
        interval: Seconds between the end of a refresh and the next.
    """

    def __init__(self, read: Reader, *, interval: float = 30.0) -> None:
        """Keep the settings; read nothing yet."""
        self._read = read
        self.interval = interval
        self.state = CacheState()
        """Replaced as a whole by each refresh."""
        self._shared_refresh = SharedRead(self._refresh)
        self._shared_latest = SharedRead(lambda: read(self.state.syncs))
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, on_unread: Callable[[Exception], None] = _ignore) -> None:
        """Start a thread that refreshes at every interval; at once if nothing was read yet.

        The thread ends with the process.

        Args:
            on_unread: Called with the error of each refresh that fails before one has succeeded.
        """
        self._thread = threading.Thread(
            target=self._run, args=(on_unread,), name="mm2-syncs", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread once its current read ends."""
        self._stop.set()

    def refresh(self) -> SyncsSnapshot:
        """Read the newer records of the topic.

        Callers share reads; see ``SharedRead``.

        Raises:
            SyncsTopicError: The topic is missing, holds no sync, or was recreated during each read.
            ClusterUnreachableError: Its cluster does not answer.
        """
        return self._shared_refresh()

    def latest(self) -> SyncsSnapshot:
        """Return the syncs that the topic holds now; the cache does not change.

        It raises as ``refresh`` does, and callers share reads likewise.
        """
        return self._shared_latest()

    def _refresh(self) -> SyncsSnapshot:
        before = self.state
        try:
            syncs = self._read(before.syncs)
        except Exception as error:
            if not isinstance(error, Mm2OffsetsError):
                log.exception("the offset syncs could not be read")
            self.state = replace(before, error=error, failures=before.failures + 1)
            raise
        self.state = replace(before, syncs=syncs, error=None, refreshes=before.refreshes + 1)
        return syncs

    def _run(self, on_unread: Callable[[Exception], None]) -> None:
        if self.state.refreshes or self.state.failures:
            self._stop.wait(self.interval)
        while not self._stop.is_set():
            try:
                self.refresh()
            except Exception as error:  # noqa: BLE001 - the state keeps it, and the next try may succeed
                log.warning("the offset syncs could not be refreshed: %s", error)
                if self.state.syncs is None:
                    on_unread(error)
            self._stop.wait(self.interval)


def read_on(pair: ClusterPair, previous: SyncsSnapshot | None) -> SyncsSnapshot:
    """Continue ``previous`` by newer syncs; read all if the topic was recreated or truncated.

    Where copies keep offsets, no syncs exist: the snapshot is empty, and the server ready.
    """
    if not pair.has_syncs:
        return SyncsSnapshot(index=SyncIndex(), records_read=0, next_offset=0)
    cluster, topic = pair.syncs_cluster, pair.syncs_topic

    def read(state: SyncsTopicState) -> tuple[int, SyncsSnapshot] | None:
        nonlocal previous
        if previous is not None and previous.topic_id != state.topic_id:
            previous = None
        try:
            snapshot = read_syncs(cluster, topic, previous=previous)
        except SyncsTopicError:
            # The topic may have been truncated since the previous read.
            if previous is None:
                raise
            previous = None
            return None
        return snapshot.next_offset, replace(snapshot, topic_id=state.topic_id)

    # A topic that does not exist: the read says what to check.
    return read_stable(cluster, topic, read) or read_syncs(cluster, topic)
