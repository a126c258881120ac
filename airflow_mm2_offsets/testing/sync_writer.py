"""Sends the offset syncs of one partition, as a MirrorMaker 2 task does; ``mirror`` calls it.

After ``org.apache.kafka.connect.mirror.OffsetSyncWriter`` and its ``PartitionState`` (Kafka 4.3).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

Sync = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class OffsetSyncWriter:
    """The state that one task keeps; a new task has a new writer."""

    lag_max: int
    send: Callable[[Sync], None] = field(repr=False)
    pending: Sync | None = None
    """What ``pendingOffsetSyncs`` holds for the partition: a newer one overwrites it."""
    delayed: Sync | None = None
    """The last sync that was not due; it is sent at the next commit."""
    _previous_upstream: int = -1
    _previous_downstream: int = -1
    _last_sync_downstream: int = -1

    def commit_record(self, upstream: int, downstream: int) -> None:
        """Handle a record that the target has acknowledged (``commitRecord``)."""
        if self._update(upstream, downstream):
            self.delayed, self.pending = None, (upstream, downstream)
        else:
            self.delayed = (upstream, downstream)
        self.fire()

    def commit(self) -> None:
        """Send the delayed sync (``SourceTask.commit``, KAFKA-15906)."""
        if self.delayed:
            self.pending, self.delayed = self.delayed, None
        self.fire()

    def fire(self) -> None:
        """Send the pending sync (``firePendingOffsetSyncs``)."""
        if self.pending:
            sync, self.pending = self.pending, None
            self.send(sync)

    def _update(self, upstream: int, downstream: int) -> bool:
        due = (
            self._last_sync_downstream == -1
            or downstream - (self._last_sync_downstream + 1) >= self.lag_max
            or upstream - self._previous_upstream != 1
            or downstream < self._previous_downstream
        )
        if due:
            self._last_sync_downstream = downstream
        self._previous_upstream, self._previous_downstream = upstream, downstream
        return due
