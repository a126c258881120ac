"""A world of one partition: what happens to it, and what is true of it.

The truth for a source position p: g(p) = min over all source offsets s >= p that have a copy on
the target of the highest target offset that holds a copy of s; the target's end where there is
none. Copies that the target's retention has deleted count: an answer that passes over them loses
them just the same. Copies of an earlier incarnation of the source topic do not, nor do those of
aborted records, which nobody reads on the source.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from random import Random

from airflow_mm2_offsets.testing.logs import FOREIGN, Entry, Record
from tests.support.mirror_world.logs import SourceLog, SyncsLog, TargetLog
from tests.support.mirror_world.mirror import WITHOUT_AMOUNT, Mirror
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step

BORN = 1_800_000_000_000
"""The timestamp of the first record."""

_KEYS = 7


class MirrorWorld:
    """Source, target, offset syncs, MirrorMaker 2 and Connect of one partition."""

    def __init__(
        self, settings: MirrorSettings, random: Random, *, kinds: int = 10**9, begin: int = 0
    ) -> None:
        """Begin with empty logs.

        Args:
            settings: How MirrorMaker 2 is set up.
            random: Decides what a step leaves open.
            kinds: How many different records there are.
            begin: The source's first offset: retention has deleted what was below.
        """
        self.random = random
        self.kinds = kinds
        self.source = SourceLog(begin=begin, low=begin, high=begin)
        self.target, self.syncs = TargetLog(), SyncsLog()
        self.mirror = Mirror(settings, self.source, self.target, self.syncs)
        self.steps: list[Step] = []
        """What has happened."""
        self.archived: list[MirrorWorld] = []
        """What it was like each time that its syncs were archived."""
        self._written = 0

    def run(self, steps: Iterable[Step]) -> "MirrorWorld":
        """Let ``steps`` happen."""
        for step in steps:
            self.steps.append(step)
            owner = self if hasattr(self, step.action) else self.mirror
            amount = () if step.action in WITHOUT_AMOUNT else (step.amount,)
            getattr(owner, step.action)(*amount)
        return self

    def __repr__(self) -> str:
        """Return what makes the world again, given the same random numbers."""
        steps = " ".join(f"{step.action}:{step.amount}" for step in self.steps)
        return f"MirrorWorld({self.mirror.settings}, {steps}, syncs={self.syncs.syncs})"

    # What the source's owners do.

    def grow(self, records: int) -> None:
        """Write records to the source."""
        for _ in range(records):
            self.source.append(self._record(), self.random.random())

    def skip(self, offsets: int) -> None:
        """Add offsets that deliver nothing."""
        self.source.skip(offsets)

    def begin(self, _: int = 0) -> None:
        """Begin a transaction: what follows is of it."""
        if self.source.open_from is None:
            self.source.open_from = self.source.high

    def decide(self, _: int = 0) -> None:
        """Commit or abort it."""
        self.source.decide(commits=self.random.random() < 0.6)

    def expire(self, offsets: int) -> None:
        """Let the source's retention delete up to ``offsets`` more."""
        self.source.delete_before(self.source.low + offsets)

    def expire_all(self, _: int = 0) -> None:
        """Let the source's retention delete everything."""
        self.source.delete_before(self.source.high)

    def clean(self, percent: int) -> None:
        """Let compaction remove some of the source's records; never the last."""
        self.source.is_cleaned = True
        last = max(self.source.records, default=None)
        self.source.clean(
            each
            for each in list(self.source.records)
            if each != last and self.random.random() * 100 < percent
        )

    def recreate_source(self, _: int = 0) -> None:
        """Delete the source topic and create it again."""
        self.source = SourceLog(incarnation=self.source.incarnation + 1)
        self.mirror.source = self.source

    # What the target's owners do.

    def foreign(self, records: int) -> None:
        """Let another writer write to the target, now and then a copy of a source record."""
        for _ in range(records):
            self.target.append(Entry(FOREIGN, 0, self._record()))

    def expire_target(self, offsets: int) -> None:
        """Let the target's retention delete up to ``offsets`` more."""
        self.target.delete_before(self.target.low + offsets)

    def clean_target(self, percent: int) -> None:
        """Let compaction leave the last record of each key, in the first part of the target."""
        unacknowledged = [offset for _, offset in self.mirror.task.unacknowledged]
        end = min([self.target.high * percent // 100, self.target.high - 1, *unacknowledged])
        self.target.clean(end)

    def recreate_target(self, _: int = 0) -> None:
        """Delete the target topic and create it again; the task goes on."""
        self.target = TargetLog(incarnation=self.target.incarnation + 1)
        self.mirror.target = self.target
        self.mirror.task.unacknowledged.clear()
        self.mirror.truncations.clear()
        if self.mirror.zombie is not None:
            self.mirror.zombie.unacknowledged.clear()

    def truncate(self, offsets: int) -> None:
        """Let the target lose its last records in an unclean leader election."""
        self.mirror.lose_copies(self.target.truncate(offsets))

    # What MirrorMaker 2's owners do.

    def reinstall(self, _: int = 0) -> None:
        """Reinstall the connector: without committed offsets, and with a new syncs topic."""
        self.recreate_syncs()
        self.mirror.committed = self.mirror.highest_committed = None
        self.mirror.kill()

    def create_again(self, _: int = 0) -> None:
        """Delete the connector and its committed offsets, and create it; the syncs topic stays."""
        self.mirror.committed = self.mirror.highest_committed = None
        self.mirror.kill()

    def begin_at_latest(self, _: int = 0) -> None:
        """From now on a task without a committed offset begins at the source's end."""
        self.mirror.set(latest=True)

    def begin_at_earliest(self, _: int = 0) -> None:
        """From now on a task without a committed offset begins at the source's first record."""
        self.mirror.set(latest=False)

    def recreate_syncs(self, _: int = 0) -> None:
        """Delete the syncs topic and create it again."""
        self.syncs = SyncsLog(incarnation=self.syncs.incarnation + 1)
        self.mirror.syncs = self.syncs

    def reset_offsets(self, _: int = 0) -> None:
        """Delete the connector's offsets by REST: it begins at the source's first record."""
        self.mirror.alter(None)

    def alter_back(self, offsets: int) -> None:
        """Alter the committed offset to an earlier one."""
        self.mirror.stop()
        back = (self.mirror.committed or 0) - offsets
        self.mirror.alter(back if back >= self.source.begin else None)

    def alter_forward(self, offsets: int) -> None:
        """Alter the committed offset to a later one, at most the source's last."""
        self.mirror.stop()
        last = self.source.begin - 1 if self.mirror.committed is None else self.mirror.committed
        self.mirror.alter(min(last + offsets, self.source.high - 1))

    def put_back(self, _: int = 0) -> None:
        """Alter the committed offset to the highest that it ever was."""
        self.mirror.alter(self.mirror.highest_committed)

    def refilter(self, percent: int) -> None:
        """Restart with another filter."""
        self.mirror.stop()
        self.mirror.set(dropped=percent / 100)

    def restamp(self, _: int = 0) -> None:
        """From now on the target's topic has LogAppendTime."""
        self.mirror.set(append_time=True)

    def catch_up(self, _: int = 0) -> None:
        """Copy all there is, with room for syncs, and commit."""
        self.mirror.unblock()
        self.mirror.copy(self.source.high + 1)
        self.mirror.commit()

    def archive(self, _: int = 0) -> None:
        """Let the syncs be archived, with the topics' ids."""
        then = copy(self)
        then.source = replace(self.source, records=dict(self.source.records))
        then.target = replace(self.target, entries=list(self.target.entries))
        then.syncs = replace(
            self.syncs, syncs=list(self.syncs.syncs), of_target=list(self.syncs.of_target)
        )
        self.archived.append(then)

    def _record(self) -> Record:
        self._written += 1
        number = self._written % self.kinds
        return Record(b"%d" % (number % _KEYS), b"%d" % number, BORN + number)

    # What is true.

    def truths(self) -> dict[int, int]:
        """Return g(p) for each p from the source's begin to its end."""
        highest, truth = self.highest_copies(), self.target.high
        truths = {self.source.high: truth}
        for position in range(self.source.high - 1, self.source.begin - 1, -1):
            truth = truths[position] = min(truth, highest.get(position, truth))
        return dict(reversed(truths.items()))

    def left_to_copy(self) -> bool:
        """Tell whether MirrorMaker 2 will copy a record that was never copied."""
        copied, dropped = self.highest_copies(), self.mirror.settings.dropped
        begin = self.mirror.task.position
        if begin is None:
            begin = self.source.high if self.mirror.settings.latest else self.source.low
        return any(
            begin <= offset < self.source.stable
            and self.source.luck[offset] >= dropped
            and offset not in copied
            for offset in self.source.records
        )

    @property
    def is_settled(self) -> bool:
        """MirrorMaker 2 has come as far as ever before: it has nothing to copy again."""
        return (self.mirror.task.position or 0) > max(self.highest_copies(), default=-1)

    @property
    def shows_every_rewind(self) -> bool:
        """The first record that each task wrote has a sync."""
        return {downstream for _, downstream in self.syncs.syncs} >= {*self.mirror.starts}

    def is_idle(self) -> bool:
        """Tell whether MirrorMaker 2 has copied and committed all, and sent the due syncs."""
        decided = self.source.open_from is None
        return decided and bool(self.steps) and self.steps[-1].action == "catch_up"

    def highest_copies(self) -> dict[int, int]:
        """Return the highest target offset of each source offset that has a copy."""
        return {
            entry.origin: offset
            for offset, entry in enumerate(self.target.entries)
            if entry.origin >= 0
            and entry.incarnation == self.source.incarnation
            and entry.origin not in self.source.aborted
        }
