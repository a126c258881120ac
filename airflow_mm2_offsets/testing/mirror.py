"""A simulated MirrorMaker 2 task that copies one partition, and the Connect that runs it.

The task reads in order. It starts after the offset that Connect has committed, or at the source's
beginning if there is no committed offset or it is out of range
(``MirrorSourceTask.initializeConsumer``, auto.offset.reset=earliest). Connect commits the last
record acknowledged without a gap (``SubmittedRecords``); a record that a transform drops is never
committed (``recordDropped``).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from airflow_mm2_offsets.testing.logs import MARKER, Entry, Record, SourceLog, TargetLog
from airflow_mm2_offsets.testing.sync_writer import OffsetSyncWriter, Sync

Batch: TypeAlias = list[tuple[int, Record]]
"""Source offsets and records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """The settings of MirrorMaker 2 and Connect."""

    lag_max: int = 100
    """``offset.lag.max``."""
    exactly_once: bool = False
    """``exactly.once.source.support``: copies are written in transactions."""
    uncommitted: bool = False
    """The task also reads records of open transactions, as MirrorMaker 2 does by default."""
    transform: Callable[[Record], Record | None] | None = field(default=None, repr=False)
    """A transform (SMT) of each record; it returns None for a record to drop."""


@dataclass(slots=True, kw_only=True)
class TaskState:
    """The state of a task, lost when the task ends."""

    position: int | None
    """The next offset to read; None: the source's first."""
    writer: OffsetSyncWriter
    unacknowledged: list[tuple[int, int]] = field(default_factory=list)
    """Source and target offsets of records that the target has not acknowledged yet."""
    acknowledged: int | None = None
    """The last source offset that Connect could commit."""


class MirrorTask:
    """Copies from a source log to a target log."""

    def __init__(
        self,
        settings: MirrorSettings,
        source: SourceLog,
        target: TargetLog,
        send_sync: Callable[[Sync], None],
    ) -> None:
        """Start a task without a committed offset.

        Args:
            settings: Those of MirrorMaker 2.
            source: The log to read.
            target: The log to write to.
            send_sync: Writes an offset sync to the offset-syncs topic.
        """
        self.settings = settings
        self.source, self.target = source, target
        self.committed: int | None = None
        """The offset that Connect has committed: the LAST copied one."""
        self._send_sync = send_sync
        self.task = self._new_task()

    # What Connect does with the task.

    def kill(self) -> None:
        """Kill the task; the next one starts after the committed offset."""
        if self.settings.exactly_once:
            self._abort()
        self.task = self._new_task()

    def commit(self) -> None:
        """Let Connect commit the offset, and the task send the delayed sync."""
        if self.settings.exactly_once:
            self._end_transaction()
        self._commit_offset()
        self.task.writer.commit()

    def _new_task(self) -> TaskState:
        position = None if self.committed is None else self.committed + 1
        writer = OffsetSyncWriter(lag_max=self.settings.lag_max, send=self._send_sync)
        return TaskState(position=position, writer=writer)

    def _commit_offset(self) -> None:
        if self.task.acknowledged is not None:
            self.committed = self.task.acknowledged

    # What the task does.

    def copy(self, records: int) -> None:
        """Copy up to ``records``, each acknowledged by the target."""
        self._write(self._poll(records))
        self._acknowledge()

    def _poll(self, most: int) -> Batch:
        task, source = self.task, self.source
        if task.position is None or not source.low <= task.position <= source.high:
            task.position = source.low
        batch = source.read(task.position, most, uncommitted=self.settings.uncommitted)
        if batch:
            task.position = batch[-1][0] + 1
        transformed = ((offset, self._transform(offset, record)) for offset, record in batch)
        return [(offset, record) for offset, record in transformed if record is not None]

    def _transform(self, _offset: int, record: Record) -> Record | None:
        transform = self.settings.transform
        return record if transform is None else transform(record)

    def _write(self, batch: Batch) -> None:
        for offset, record in batch:
            entry = Entry(offset, self.source.incarnation, record)
            self.task.unacknowledged.append((offset, self.target.append(entry)))

    def _acknowledge(self) -> None:
        if self.settings.exactly_once:  # The producer's callbacks run when the transaction ends.
            return
        self._acknowledged(self.task.unacknowledged)
        self.task.unacknowledged.clear()

    def _acknowledged(self, written: Iterable[tuple[int, int]]) -> None:
        for upstream, downstream in written:
            self.task.writer.commit_record(upstream, downstream)
            self.task.acknowledged = upstream

    def _end_transaction(self) -> None:
        if self.task.unacknowledged:
            self.target.append(Entry(MARKER, 0, None))
            self._acknowledged(self.task.unacknowledged)
            self.task.unacknowledged.clear()

    def _abort(self) -> None:
        if self.task.unacknowledged:
            for _, offset in self.task.unacknowledged:
                self.target.entries[offset] = Entry(MARKER, 0, None)
            self.target.append(Entry(MARKER, 0, None))
