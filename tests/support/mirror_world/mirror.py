"""The simulated MirrorMaker 2 of ``airflow_mm2_offsets.testing``, with all that can go wrong."""

from dataclasses import replace
from typing import Any

from airflow_mm2_offsets.testing.logs import MARKER, Record, TargetLog
from airflow_mm2_offsets.testing.mirror import Batch, MirrorTask
from tests.support.mirror_world.logs import SourceLog, SyncsLog
from tests.support.mirror_world.settings import MirrorSettings


class Mirror(MirrorTask):
    """Copies from a source log to a target log, by chance and through mishaps."""

    settings: MirrorSettings
    source: SourceLog

    def __init__(
        self, settings: MirrorSettings, source: SourceLog, target: TargetLog, syncs: SyncsLog
    ) -> None:
        """Start a task without a committed offset."""
        self.syncs = syncs
        self.highest_committed: int | None = None
        self.starts: list[int] = []
        """The target offset of the first record that each task wrote."""
        self._clock = 0
        super().__init__(settings, source, target, self._append_sync)

    # What Connect does with the task.

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

    def _append_sync(self, sync: tuple[int, int]) -> None:
        # A sync that was delayed or pending may speak of a target topic that is gone by now.
        (upstream, downstream), entries = sync, self.target.entries
        current = downstream < len(entries) and entries[downstream].origin in {upstream, MARKER}
        self.syncs.append(sync, self.target.incarnation - (not current))

    def _commit_offset(self) -> None:
        super()._commit_offset()
        if self.task.acknowledged is not None:
            self.highest_committed = max(self.task.acknowledged, self.highest_committed or 0)

    # What the task does.

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
        self.task.writer.room = False

    def lose(self) -> None:
        """Syncs are sent and don't arrive."""
        self.task.writer.arriving = False

    def unblock(self) -> None:
        """Both are over."""
        self.task.writer.room = self.task.writer.arriving = True
        self.task.writer.fire()

    def hold(self) -> None:
        """A thread takes a sync out, and is overtaken before it sends it."""
        self.task.writer.hold()

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
    *("block", "lose", "unblock", "hold"),
}
"""The actions that take no number."""
