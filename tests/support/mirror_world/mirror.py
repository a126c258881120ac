"""The simulated MirrorMaker 2 of ``airflow_mm2_offsets.testing``, with all that can go wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_mm2_offsets.testing.logs import MARKER, Entry, Record
from airflow_mm2_offsets.testing.mirror import Batch, MirrorTask, TaskState
from airflow_mm2_offsets.testing.sync_writer import OffsetSyncWriter, Sync
from tests.support.mirror_world.logs import SourceLog, SyncsLog, TargetLog
from tests.support.mirror_world.settings import MirrorSettings


@dataclass(slots=True, kw_only=True)
class DisturbedSyncWriter(OffsetSyncWriter):
    """A writer whose syncs are held up, overtaken and lost."""

    room: bool = True
    """The semaphore that allows ten outstanding syncs, shared by all partitions, has room."""
    arriving: bool = True
    """Syncs reach their cluster; MirrorMaker 2 only logs an error of the syncs producer."""
    overtaken: Sync | None = None
    """Taken by a thread that is overtaken before it sends the sync."""

    def fire(self) -> None:
        """Send the pending sync, if there is room, and the overtaken one after it."""
        if self.pending and self.room:
            syncs = (self.pending, self.overtaken)
            self.pending = self.overtaken = None
            for sync in syncs:
                if sync and self.arriving:
                    self.send(sync)

    def hold(self) -> None:
        """Let a thread take the pending sync, or at a commit the delayed one, and be overtaken."""
        self.overtaken = self.overtaken or self.pending or self.delayed
        if self.overtaken:
            self.pending = self.delayed = None


class Mirror(MirrorTask):
    """Copies from a source log to a target log, by chance and through mishaps."""

    settings: MirrorSettings
    source: SourceLog
    target: TargetLog
    writer: DisturbedSyncWriter

    def __init__(
        self, settings: MirrorSettings, source: SourceLog, target: TargetLog, syncs: SyncsLog
    ) -> None:
        """Start a task without a committed offset."""
        self.syncs = syncs
        self.highest_committed: int | None = None
        self.starts: list[int] = []
        """The target offset of the first record that each task wrote."""
        self.truncations: list[tuple[int, int]] = []
        """The target's end after and before each unclean leader election."""
        self.zombie: TaskState | None = None
        """The task of a worker that was paused while Connect gave its work to another."""
        self._flushed_before: int | None = None
        """What Connect had committed when that worker was paused."""
        self._clock = 0
        super().__init__(settings, source, target, self._append_sync)

    def _new_task(self) -> TaskState:
        task = super()._new_task()
        self.writer = DisturbedSyncWriter(lag_max=self.settings.lag_max, send=self._append_sync)
        task.writer = self.writer
        return task

    # What Connect does with the task.

    def stop(self) -> None:
        """Stop the task in order: everything written is committed, no further sync is sent."""
        if self.settings.exactly_once:
            self._end_transaction()
        elif self.task.unacknowledged:
            self.task.acknowledged = self.task.unacknowledged[-1][0]
            self.task.unacknowledged.clear()
        self._commit_offset()
        self.kill()

    def commit_unseen(self) -> None:
        """Commit the offsets, and be killed before the delayed sync is sent."""
        if self.settings.exactly_once:
            self._end_transaction()
        self._commit_offset()
        self.kill()

    def alter(self, last: int | None) -> None:
        """Alter the offset by Connect's REST (KIP-875), which needs a stopped connector."""
        self.stop()
        self.committed = last
        self.kill()

    def set(self, **changed: Any) -> None:
        """Change settings; they hold from the next record on."""
        self.settings = replace(self.settings, **changed)

    def rebalance(self) -> None:
        """Pause the worker until Connect gives the task to another one, which begins again."""
        if not self.settings.exactly_once:  # Connect fences the older task's producer.
            self.zombie, self._flushed_before = self.task, self.committed
        self.kill()

    def send_late(self) -> None:
        """Let the paused worker go on: it commits, sends its delayed sync, and then stops.

        Without exactly-once nothing fences its offsets: Connect has what was written last.
        """
        zombie, self.zombie = self.zombie, None
        if zombie is not None:
            if zombie.acknowledged not in {None, self._flushed_before}:
                self.committed = zombie.acknowledged
            zombie.writer.commit()

    def write_late(self, records: int) -> None:
        """Let the paused worker go on: what it had read lands after the newer task's records.

        Without transactions a broker accepts both producers. Each task's records stay in order,
        and each has its own syncs.
        """
        if self.zombie is not None:
            newer, self.task = self.task, self.zombie
            self.copy(records)
            self.task = newer

    def lose_copies(self, entries: Sequence[Entry]) -> None:
        """Write again what the target had not acknowledged before it lost ``entries``."""
        end = self.target.high
        self.truncations.append((end, end + len(entries)))
        self.starts = [start for start in self.starts if start < end]
        for task in filter(None, (self.task, self.zombie)):
            again = [written for written in task.unacknowledged if written[1] >= end]
            task.unacknowledged[:] = [each for each in task.unacknowledged if each[1] < end]
            if self.settings.exactly_once and again:
                self.kill()  # The transaction can't be ended.
                return
            for upstream, downstream in again:
                offset = self.target.append(entries[downstream - end])
                task.unacknowledged.append((upstream, offset))

    def _append_sync(self, sync: tuple[int, int]) -> None:
        # A sync that was delayed or pending may speak of a target topic that is gone by now.
        (upstream, downstream), entries = sync, self.target.entries
        current = downstream < len(entries) and entries[downstream].origin in {upstream, MARKER}
        is_lost = any(end <= downstream < before for end, before in self.truncations)
        self.syncs.append(sync, self.target.incarnation - (not current and not is_lost))

    def _commit_offset(self) -> None:
        super()._commit_offset()
        if self.task.acknowledged is not None:
            self.highest_committed = max(self.task.acknowledged, self.highest_committed or 0)

    # What the task does.

    def _poll(self, most: int) -> Batch:
        task, source = self.task, self.source
        is_lost = task.position is None or not source.low <= task.position <= source.high
        if is_lost and self.settings.latest:
            task.position = source.high
        return super()._poll(most)

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

    def _halves(self, records: int) -> tuple[Batch, Batch]:
        batch = self._poll(2 * records)
        middle = (len(batch) + 1) // 2
        return batch[:middle], batch[middle:]

    # What happens to the syncs producer.

    def block(self) -> None:
        """Too many syncs are outstanding: those that are due wait, and overwrite each other."""
        self.writer.room = False

    def lose(self) -> None:
        """Syncs are sent and don't arrive."""
        self.writer.arriving = False

    def unblock(self) -> None:
        """Both are over."""
        self.writer.room = self.writer.arriving = True
        self.writer.fire()

    def hold(self) -> None:
        """A thread takes a sync out, and is overtaken before it sends it."""
        self.writer.hold()

    # How records come to the target.

    def _transform(self, offset: int, record: Record) -> Record | None:
        luck = self.source.luck[offset]
        if luck < self.settings.dropped:
            return None
        if luck >= 1 - self.settings.changed:
            return record._replace(value=b"changed " + (record.value or b""))
        return record

    def _write(self, batch: Batch) -> None:
        if batch and self.task.acknowledged is None and not self.task.unacknowledged:
            self.starts.append(self.target.high)
        self._clock += 1  # The time of the batch, for those who stamp.
        super()._write([(offset, self._stamped(record)) for offset, record in batch])

    def _stamped(self, record: Record) -> Record:
        if self.settings.append_time:
            record = record._replace(timestamp=10**12 + self._clock)
        if self.settings.stamped:
            record = record._replace(headers=(*record.headers, ("copied", b"%d" % self._clock)))
        return record


WITHOUT_AMOUNT = frozenset({"kill", "stop", "commit", "commit_unseen"}) | {
    *("block", "lose", "unblock", "hold", "rebalance", "send_late"),
}
"""The actions that take no number."""
