"""How a MirrorMaker 2 task sends the offset syncs of one partition.

After ``org.apache.kafka.connect.mirror.OffsetSyncWriter`` and its ``PartitionState`` (Kafka 4.3).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

Sync = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class OffsetSyncWriter:
    """The state that one task keeps; a new task begins anew."""

    lag_max: int
    send: Callable[[Sync], None] = field(repr=False)
    pending: Sync | None = None
    """What ``pendingOffsetSyncs`` holds for the partition: a newer one overwrites it."""
    delayed: Sync | None = None
    room: bool = True
    """The semaphore of ten outstanding syncs, which all partitions share, has room."""
    arriving: bool = True
    """The syncs cluster takes what is sent; an error is logged and forgotten."""
    held: Sync | None = None
    """Taken out by one thread that has not called ``send`` yet, while others go on."""
    _previous_upstream: int = -1
    _previous_downstream: int = -1
    _last_sync_downstream: int = -1

    def commit_record(self, upstream: int, downstream: int) -> None:
        """Take note of a record that the target has acknowledged (``commitRecord``)."""
        if self._update(upstream, downstream):
            self.delayed, self.pending = None, (upstream, downstream)
        else:
            self.delayed = (upstream, downstream)
        self.fire()

    def commit(self) -> None:
        """Send what was delayed (``SourceTask.commit``, KAFKA-15906)."""
        if self.delayed:
            self.pending, self.delayed = self.delayed, None
        self.fire()

    def fire(self) -> None:
        """Send what is pending, if there is room (``firePendingOffsetSyncs``)."""
        if self.pending and self.room:
            sync, self.pending = self.pending, None
            self._deliver(sync)
            if self.held:
                held, self.held = self.held, None
                self._deliver(held)

    def hold(self) -> None:
        """Let a thread take out what is pending, or delayed at a commit, and be overtaken."""
        self.held = self.held or self.pending or self.delayed
        if self.held:
            self.pending = self.delayed = None

    def _deliver(self, sync: Sync) -> None:
        if self.arriving:
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
