"""A partition that MirrorMaker 2 copies, step by step, and the truth about it.

The rules of emission are those of ``org.apache.kafka.connect.mirror.OffsetSyncWriter`` (Kafka
4.3): a record's sync is due at the first record of a task's life, when the target offset is
``offset.lag.max`` past the last one due, and when a source offset was skipped. A due sync waits
in a map of one entry, where a newer one overwrites it, until the syncs producer has room; what is
not due is sent at the next commit (KAFKA-15906). A kill loses what was not sent, and the next
life starts at the last committed source offset.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

MARKER = -2
"""A target offset that delivers nothing: a transaction marker or an aborted record."""
FOREIGN = -1
"""A target offset that holds another writer's record."""


class Step(NamedTuple):
    """One thing that happens; ``amount`` is what the step's method takes."""

    action: str
    amount: int = 0


@dataclass(slots=True, kw_only=True)
class _Life:
    """What a MirrorMaker 2 task knows of the partition; gone when it is killed."""

    due_at: int | None = None
    previous: int | None = None
    pending: tuple[int, int] | None = None
    delayed: tuple[int, int] | None = None
    blocked: bool = False
    losing: bool = False
    unacknowledged: list[tuple[int, int]] = field(default_factory=list)
    """Copies whose producer callback has not run yet."""


@dataclass(slots=True, kw_only=True)
class World:
    """Source, target, offset-syncs topic and MirrorMaker 2 of one partition."""

    lag_max: int
    exactly_once: bool = False
    source: list[int] = field(default_factory=list)
    """The offsets that MirrorMaker 2 gets to copy, rising; the others are gaps."""
    source_end: int = 0
    target: list[int] = field(default_factory=list)
    """For each target offset: the source offset it copies, MARKER or FOREIGN."""
    syncs: list[tuple[int, int]] = field(default_factory=list)
    committed: int = 0
    position: int = 0
    starts: list[int] = field(default_factory=list)
    """The target offset that the first record of each life was written to."""
    life: _Life = field(default_factory=_Life)

    def run(self, steps: Iterable[Step]) -> "World":
        for step in steps:
            getattr(self, step.action)(step.amount)
        return self

    # What the outside does.

    def grow(self, records: int) -> None:
        self.source.extend(range(self.source_end, self.source_end + records))
        self.source_end += records

    def gap(self, offsets: int) -> None:
        """Source offsets that nothing comes from: aborted, compacted, filtered, a marker."""
        self.source_end += offsets

    def foreign(self, records: int) -> None:
        self.target.extend([FOREIGN] * records)

    # What MirrorMaker 2 does.

    def copy(self, records: int) -> None:
        """Copy up to ``records``, each acknowledged by the target."""
        self._write(records)
        if not self.exactly_once:
            self._acknowledge()

    def retry(self, records: int) -> None:
        """Copy a batch whose acknowledgement is lost, so that the producer writes it again."""
        begin = len(self.target)
        before = len(self.life.unacknowledged)
        self._write(records)
        if self.exactly_once:  # An idempotent producer: the broker drops the second batch.
            return
        batch = self.target[begin:]
        again = len(self.target)
        self.target.extend(batch)
        self.life.unacknowledged[before:] = [
            (source, again + number) for number, source in enumerate(batch)
        ]
        self._acknowledge()

    def write(self, records: int) -> None:
        """Copy without an acknowledgement: what a kill soon after leaves behind."""
        self._write(records)

    def block(self, _: int = 0) -> None:
        """The syncs producer has no room: due syncs wait, and overwrite each other."""
        self.life.blocked = True

    def unblock(self, _: int = 0) -> None:
        self.life.blocked = self.life.losing = False
        self._fire()

    def lose(self, _: int = 0) -> None:
        """Syncs are sent and don't arrive, until the producer is unblocked."""
        self.life.losing = True

    def commit(self, _: int = 0) -> None:
        if self.exactly_once:
            if self.life.unacknowledged:
                self.target.append(MARKER)
            self._acknowledge()
        if not self.life.unacknowledged:
            self.committed = self.position
        if self.life.delayed:
            self.life.pending, self.life.delayed = self.life.delayed, None
        self._fire()

    def commit_unseen(self, _: int = 0) -> None:
        """Commit the source offset, and be killed before the delayed sync is sent."""
        if not self.exactly_once and not self.life.unacknowledged:
            self.committed = self.position
        self.kill()

    def kill(self, _: int = 0) -> None:
        if self.exactly_once and self.life.unacknowledged:
            for _source, offset in self.life.unacknowledged:
                self.target[offset] = MARKER
            self.target.append(MARKER)
        self.life = _Life()
        self.position = self.committed

    def catch_up(self, _: int = 0) -> None:
        """Copy everything there is, with room for syncs, and commit."""
        self.unblock()
        self.copy(len(self.source))
        self.commit()

    def _write(self, records: int) -> None:
        first = bisect_left(self.source, self.position)
        for offset in self.source[first : first + records]:
            if self.life.previous is None and not self.life.unacknowledged:
                self.starts.append(len(self.target))
            self.life.unacknowledged.append((offset, len(self.target)))
            self.target.append(offset)
            self.position = offset + 1

    def _acknowledge(self) -> None:
        for upstream, downstream in self.life.unacknowledged:
            self._committed_record(upstream, downstream)
        self.life.unacknowledged.clear()

    def _committed_record(self, upstream: int, downstream: int) -> None:
        life = self.life
        due = (
            life.due_at is None
            or downstream - (life.due_at + 1) >= self.lag_max
            or life.previous is None
            or upstream - life.previous != 1
        )
        life.previous = upstream
        if due:
            life.due_at = downstream
            life.pending, life.delayed = (upstream, downstream), None
        else:
            life.delayed = (upstream, downstream)
        self._fire()

    def _fire(self) -> None:
        if self.life.pending and not self.life.blocked:
            if not self.life.losing:
                self.syncs.append(self.life.pending)
            self.life.pending = None

    # What is true.

    @property
    def settled(self) -> bool:
        """MirrorMaker 2 has come as far as ever before: nothing is left to copy again."""
        return self.position > max(self.target, default=-1)

    @property
    def every_rewind_shown(self) -> bool:
        """The first record of each life has its sync."""
        return {offset for _, offset in self.syncs} >= set(self.starts)

    def delivered(self, first: int, last: int) -> list[tuple[int, int]]:
        """What a read_committed consumer gets: target offset and source offset."""
        return [
            (offset, source)
            for offset, source in enumerate(self.target[first : last + 1], first)
            if source != MARKER
        ]

    def truths(self) -> list[int]:
        """g(p) for p from 0 to one past the source's end."""
        highest = {source: offset for offset, source in enumerate(self.target) if source >= 0}
        truths = [len(self.target)] * (self.source_end + 2)
        for position in range(self.source_end, -1, -1):
            truths[position] = min(truths[position + 1], highest.get(position, len(self.target)))
        return truths

    def plain(self, first: int, last: int) -> bool:
        """Every target offset in [first, last] copies one record, in the source's order."""
        part = self.target[first : last + 1]
        return min(part) >= 0 and all(one < other for one, other in pairwise(part))
