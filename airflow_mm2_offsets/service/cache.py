"""Keeps an index of the offset syncs in memory, for servers that answer for as long as they run.

Readers take one reference to an immutable snapshot: no refresh blocks them, and none of them sees
half of a read.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.errors import Mm2OffsetsError, SyncsTopicError
from airflow_mm2_offsets.kafka.syncs import SyncsRead
from airflow_mm2_offsets.service.pair import ClusterPair

log = logging.getLogger(__name__)

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSyncs:
    """What one read of the offset-syncs topic brought, with all that was read before it."""

    index: SyncIndex
    next_offset: int
    """Where the next read goes on."""
    topic_id: str | None
    """Of the offset-syncs topic, which may be deleted and made again."""
    skipped: int
    """Records of the topic that were no offset syncs."""
    refreshed_at: datetime
    contiguous_until: int = 0
    """There was a record at each offset from 0 up to this one, exclusive."""
    complete: frozenset[TopicPartition] = frozenset()
    """The partitions whose first sync is surely the first that MirrorMaker 2 wrote to the topic."""

    @property
    def age(self) -> float:
        """Seconds since it was read."""
        return (datetime.now(UTC) - self.refreshed_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """What is known now, and whether it could be refreshed."""

    syncs: CachedSyncs | None = None
    """What the last refresh that succeeded brought; None before the first."""
    error: Exception | None = None
    """Why the last refresh failed, if it did: ``syncs`` are stale then."""
    refreshes: int = 0
    failures: int = 0


Reader: TypeAlias = Callable[[CachedSyncs | None], CachedSyncs]


class SyncCache:
    """The index of a pair of clusters, refreshed in the background.

    Args:
        read: Reads on from what is held, such as ``partial(read_on, pair)``.
        interval: Seconds between the end of a refresh and the next.
    """

    def __init__(self, read: Reader, *, interval: float = 30.0) -> None:
        """Keep the settings; nothing is read yet."""
        self._read = read
        self.interval = interval
        self._state = CacheState()
        self._reading = threading.Lock()
        self._begun = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> CacheState:
        """What is known now."""
        return self._state

    def start(self) -> None:
        """Refresh now, unless that was done, and again and again, in a thread of its own.

        It ends with the process.
        """
        self._thread = threading.Thread(target=self._run, name="mm2-syncs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a read under way ends by itself."""
        self._stop.set()

    def refresh(self) -> CachedSyncs:
        """Read what is new on the topic.

        Several callers at once wait for one read, which begins after the last of them came.

        Raises:
            SyncsTopicError: The topic is missing, or holds no sync.
            ClusterUnreachableError: Its cluster does not answer.
        """
        seen = self._begun
        with self._reading:
            if self._begun == seen:
                self._begun += 1
                self._refresh()
            state = self._state
        if state.error is not None:
            # Raised by each who waited: none is to see, or to keep, the frames of another.
            raise state.error.with_traceback(None)
        assert state.syncs is not None  # noqa: S101 - a read that did not fail brought them
        return state.syncs

    def latest(self) -> CachedSyncs:
        """Return what the topic holds now; what is cached stays as it is.

        Raises:
            Mm2OffsetsError: See ``refresh``.
        """
        return self._read(self._state.syncs)

    def _refresh(self) -> None:
        before = self._state
        try:
            syncs = self._read(before.syncs)
        except Exception as error:
            if not isinstance(error, Mm2OffsetsError):
                log.exception("the offset syncs could not be read")
            # Their frames would keep half a read in memory.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            self._state = replace(before, error=error, failures=before.failures + 1)
        else:
            self._state = replace(before, syncs=syncs, error=None, refreshes=before.refreshes + 1)

    def _run(self) -> None:
        if self._begun:
            self._stop.wait(self.interval)
        while not self._stop.is_set():
            try:
                self.refresh()
            except Exception as error:  # noqa: BLE001 - it is kept, and the next try may succeed
                log.warning("the offset syncs could not be refreshed: %s", error)
            self._stop.wait(self.interval)


def read_on(pair: ClusterPair, held: CachedSyncs | None) -> CachedSyncs:
    """Read what is new since ``held``; all of it where the topic was made again or truncated.

    Raises:
        SyncsTopicError: The topic is missing, holds no sync, or was made again each time it was
            read.
        ClusterUnreachableError: Its cluster does not answer.
    """
    for _ in range(_TRIES):
        topic_id = _topic_id(pair)
        if held is not None and held.topic_id != topic_id:
            held = None
        try:
            read = _read(pair, held)
        except SyncsTopicError:
            # It ends, or begins, elsewhere than where the last read ended.
            if held is None:
                raise
            held = None
            continue
        # A read of which the topic changed under it is of no known life of it.
        if _topic_id(pair) == topic_id:
            contiguous_until, complete = _complete(read, held)
            return CachedSyncs(
                index=read.index,
                next_offset=read.next_offset,
                topic_id=topic_id,
                skipped=read.skipped_count + (held.skipped if held else 0),
                refreshed_at=datetime.now(UTC),
                contiguous_until=contiguous_until,
                complete=complete,
            )
        held = None
    raise SyncsTopicError(
        f"{pair.syncs_cluster.name}: topic {pair.syncs_topic} was made again each of {_TRIES} "
        f"times that it was read; see what does that"
    )


def _read(pair: ClusterPair, held: CachedSyncs | None) -> SyncsRead:
    return pair.read_syncs(
        start=held.next_offset if held else 0,
        known=held.index if held else None,
    )


def _complete(read: SyncsRead, held: CachedSyncs | None) -> tuple[int, frozenset[TopicPartition]]:
    if held is None:
        return read.contiguous_until, read.complete
    return read.complete_after(held.contiguous_until, held.complete, held.index)


def _topic_id(pair: ClusterPair) -> str | None:
    """Return the id of the topic; None where it does not exist, or its brokers know no ids."""
    info = pair.syncs_cluster.topics([pair.syncs_topic]).get(pair.syncs_topic)
    return info.topic_id if info else None
