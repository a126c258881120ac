"""A MirrorMaker 2 task that copies one partition, and the Connect that runs it.

It reads in order from the offset after the one that Connect has noted, or from the source's
beginning where none is or that offset is out of range (``MirrorSourceTask.initializeConsumer``,
auto.offset.reset=earliest). Connect notes the last record of those acknowledged without a gap
(``SubmittedRecords``); a record that a transform drops is never noted (``recordDropped``).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.mirror_world.logs import SourceLog, SyncsLog, TargetLog
from tests.support.mirror_world.records import MARKER, Entry, Record
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.writer import OffsetSyncWriter


@dataclass(slots=True, kw_only=True)
class _Task:
    position: int | None
    """The next offset to read; None: the source's first."""
    writer: OffsetSyncWriter
    unacknowledged: list[tuple[int, int]] = field(default_factory=list)
    """Source and target offsets of what was written and is not yet known to be."""
    acknowledged: int | None = None
    """The last source offset that could be noted."""


class Mirror:
    """Copies from a source log to a target log."""

    def __init__(
        self, settings: MirrorSettings, source: SourceLog, target: TargetLog, syncs: SyncsLog
    ) -> None:
        """Start a task that has nothing noted."""
        self.settings = settings
        self.source, self.target, self.syncs = source, target, syncs
        self.noted: int | None = None
        """What Connect has committed: the LAST copied source offset."""
        self.highest_noted: int | None = None
        self._clock = 0
        self.kill()

    # What Connect does with the task.

    def kill(self, _: int = 0) -> None:
        """End the task at once; the next goes on after what is noted."""
        if self.settings.exactly_once and hasattr(self, "task"):
            self._abort()
        position = None if self.noted is None else self.noted + 1
        writer = OffsetSyncWriter(lag_max=self.settings.lag_max, send=self._send)
        self.task = _Task(position=position, writer=writer)

    def stop(self, _: int = 0) -> None:
        """Stop the task in order: all that is written is noted, no sync is sent any more."""
        if self.settings.exactly_once:
            self._end_transaction()
        elif self.task.unacknowledged:
            self.task.acknowledged = self.task.unacknowledged[-1][0]
            self.task.unacknowledged.clear()
        self._note()
        self.kill()

    def commit(self, _: int = 0) -> None:
        """Let Connect flush the offsets, and the task send the delayed sync."""
        if self.settings.exactly_once:
            self._end_transaction()
        self._note()
        self.task.writer.commit()

    def commit_unseen(self, _: int = 0) -> None:
        """Flush the offsets, and be killed before the delayed sync is sent."""
        if self.settings.exactly_once:
            self._end_transaction()
        self._note()
        self.kill()

    def alter(self, last: int | None) -> None:
        """Alter the offset by Connect's REST (KIP-875), which needs a stopped connector."""
        self.stop()
        self.noted = last
        self.kill()

    def _send(self, sync: tuple[int, int]) -> None:
        # A sync that was delayed or pending may speak of a target topic that is gone by now.
        (upstream, downstream), entries = sync, self.target.entries
        current = downstream < len(entries) and entries[downstream].origin in {upstream, MARKER}
        self.syncs.append(sync, self.target.incarnation - (not current))

    def set(self, **changed: Any) -> None:
        """Change settings; what they mean holds from the next record on."""
        self.settings = replace(self.settings, **changed)

    def _note(self) -> None:
        if self.task.acknowledged is not None:
            self.noted = self.task.acknowledged
            self.highest_noted = max(self.noted, self.highest_noted or 0)

    # What the task does.

    def copy(self, records: int) -> None:
        """Copy up to ``records``, each acknowledged."""
        self._write(self._poll(records))
        self._acknowledge()

    def write(self, records: int) -> None:
        """Copy without an acknowledgement yet."""
        self._write(self._poll(records))

    def retry(self, records: int) -> None:
        """Copy a batch whose acknowledgement is lost, so that the producer writes it again."""
        batch = self._poll(records)
        written = len(self.task.unacknowledged)
        self._write(batch)
        if not self.settings.exactly_once:  # An idempotent producer's broker drops the second.
            del self.task.unacknowledged[written:]
            self._write(batch)
        self._acknowledge()

    def overtake(self, records: int) -> None:
        """Let the next batch land before one that is retried (max.in.flight above 1)."""
        self._overtake(records, lands_first=False)

    def overtake_again(self, records: int) -> None:
        """The same, where the retried batch had landed already."""
        self._overtake(records, lands_first=True)

    def overtake_killed(self, records: int) -> None:
        """Let the next batch land and be acknowledged, and the task be killed before the first."""
        first, second = self._halves(records)
        if self.settings.exactly_once or not second:
            self._write(first + second)
            self._acknowledge()
            return
        self._acknowledge()
        before = self.task.acknowledged
        self._write(second)
        self._acknowledge()
        self.task.acknowledged = before
        self.commit_unseen()

    def _overtake(self, records: int, *, lands_first: bool) -> None:
        first, second = self._halves(records)
        if self.settings.exactly_once or not second:
            self._write(first + second)
            self._acknowledge()
            return
        self._acknowledge()
        if lands_first:
            self._write(first)
            self.task.unacknowledged.clear()
        self._write(second)
        self._acknowledge()
        self._write(first)
        self._acknowledge()
        self.task.acknowledged = second[-1][0]

    def _halves(self, records: int) -> tuple["_Batch", "_Batch"]:
        batch = self._poll(2 * records)
        middle = (len(batch) + 1) // 2
        return batch[:middle], batch[middle:]

    # What the syncs producer meets with.

    def block(self, _: int = 0) -> None:
        """Too many syncs are outstanding: those that are due wait, and overwrite each other."""
        self.task.writer.room = False

    def lose(self, _: int = 0) -> None:
        """Syncs are sent and don't arrive."""
        self.task.writer.arriving = False

    def unblock(self, _: int = 0) -> None:
        """Both are over."""
        self.task.writer.room = self.task.writer.arriving = True
        self.task.writer.fire()

    def hold(self, _: int = 0) -> None:
        """A thread takes a sync out, and is overtaken before it sends it."""
        self.task.writer.hold()

    # How records come to the target.

    def _poll(self, most: int) -> "_Batch":
        task, source = self.task, self.source
        if task.position is None or not source.low <= task.position <= source.high:
            task.position = source.low
        read = source.read(task.position, most, uncommitted=self.settings.uncommitted)
        if read:
            task.position = read[-1][0] + 1
        kept = [each for each in read if source.luck[each[0]] >= self.settings.dropped]
        return [(offset, self._transformed(offset, record)) for offset, record in kept]

    def _transformed(self, offset: int, record: Record) -> Record:
        if self.source.luck[offset] >= 1 - self.settings.changed:
            return record._replace(value=b"changed " + record.value)
        return record

    def _write(self, batch: "_Batch") -> None:
        self._clock += 1  # The time of the batch, for those who stamp.
        for offset, record in batch:
            entry = Entry(offset, self.source.incarnation, self._stamped(record))
            self.task.unacknowledged.append((offset, self.target.append(entry)))

    def _stamped(self, record: Record) -> Record:
        stamp = b"%d" % self._clock
        if self.settings.append_time:
            record = record._replace(timestamp=10**12 + self._clock)
        if self.settings.stamped:
            record = record._replace(headers=(*record.headers, ("copied", stamp)))
        return record

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


_Batch = list[tuple[int, Record]]
