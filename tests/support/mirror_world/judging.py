"""Compares answers with the truth, and counts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_mm2_offsets.core import Status, Translation
from airflow_mm2_offsets.testing.logs import FOREIGN, Entry, Record
from tests.support.mirror_world.detection import DetectableBy, Loss, Readable, detectable_by
from tests.support.mirror_world.draw import Drawn


@dataclass(slots=True, kw_only=True)
class Tally:
    """The results of many positions."""

    worlds: int = 0
    lossy: int = 0
    """Worlds with an answer above the truth that was detectable."""
    positions: int = 0
    refused: int = 0
    exact_below: int = 0
    """EXACT answers that read records again."""
    reread: int = 0
    """Records read again, in all."""
    above: Counter[DetectableBy] = field(default_factory=Counter)
    """Answers that lose records, by what could have revealed it."""

    @property
    def known_above(self) -> int:
        """Answers whose loss was detectable."""
        return self.above.total() - self.above[DetectableBy.NOTHING]

    @property
    def mean_reread(self) -> float:
        """How many records are read again for an answer that loses none."""
        return self.reread / max(1, self.positions - self.refused - self.above.total())

    def add(self, other: "Tally") -> None:
        """Add another count."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An answer above the truth."""

    drawn: Drawn
    inputs: str
    """The inputs of the answer, in words."""
    answer: Translation
    truth: int
    detectable_by: DetectableBy
    """What could have revealed it."""

    @property
    def is_known(self) -> bool:
        """Whether anything could have revealed it."""
        return self.detectable_by is not DetectableBy.NOTHING

    def __str__(self) -> str:
        """Return the answer, the truth and the whole world."""
        world, answer = self.drawn.world, self.answer
        source = world.source
        steps = " ".join(f"{step.action}:{step.amount}" for step in world.steps)
        return (
            f"seed {self.drawn.seed} {'+'.join(self.drawn.kinds)}, {self.inputs}: position "
            f"{answer.position} -> {answer.target} ({answer.status.value}, {answer.basis.value}), "
            f"truth {self.truth}, detectable by {self.detectable_by.value}\n"
            f"  {world.mirror.settings}\n  {steps}\n"
            f"  syncs {world.syncs.syncs}\n  noted {world.mirror.committed}\n"
            f"  source [{source.low}, {source.high}) holds {_spans(source.records)}\n"
            f"  target from {world.target.low}: {_copied(self.drawn)}"
        )


def _spans(offsets: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and spans[-1][1] == offset - 1:
            spans[-1][1] = offset
        else:
            spans.append([offset, offset])
    return " ".join(f"{first}-{last}" if first < last else f"{first}" for first, last in spans)


def _copied(drawn: Drawn) -> str:
    """Return what the target's offsets copy: d=first-last of the source; -1 foreign, -2 marker."""
    spans: list[tuple[int, list[int]]] = []
    for offset, entry in enumerate(drawn.world.target.entries):
        stale = entry.origin >= 0 and entry.incarnation != drawn.world.source.incarnation
        origin = -3 if stale else entry.origin
        follows = spans and spans[-1][1][1] == (origin - 1 if origin >= 0 else origin)
        if follows:
            spans[-1][1][1] = origin
        else:
            spans.append((offset, [origin, origin]))
    return " ".join(f"{offset}={first}-{last}" for offset, (first, last) in spans)


@dataclass(slots=True, kw_only=True)
class Judge:
    """Judges the answers about one world."""

    drawn: Drawn
    inputs: str
    readable: Readable
    stands: bool = True
    """The world did not change during the plan."""
    tally: Tally = field(default_factory=lambda: Tally(worlds=1))
    findings: list[Finding] = field(default_factory=list)
    _truths: dict[int, int] = field(init=False)
    _copies: list[int] = field(init=False)
    """How many copies lie below each target offset."""

    def __post_init__(self) -> None:
        """Compute the truths."""
        self._truths = self.drawn.world.truths()
        if self.readable.misnamed:  # No position of another topic is right.
            self._truths = dict.fromkeys(self._truths, -1)
        self._copies = [0]
        for entry in self.drawn.world.target.entries:
            self._copies.append(self._copies[-1] + (entry.origin >= 0))

    def judge(self, answer: Translation) -> None:
        """Judge one answer."""
        begin = self.drawn.world.source.begin
        tally, truth = self.tally, self._truths[max(begin, answer.position)]
        tally.positions += 1
        if answer.target is None:
            tally.refused += 1
        elif answer.target > truth and not self._is_repeated(answer.position, answer.target):
            self._convict(answer, truth)
        else:
            tally.reread += max(0, self._copies[truth] - self._copies[answer.target])
            below = answer.status is Status.EXACT and answer.target < truth
            tally.exact_below += below and self.stands

    def _is_repeated(self, position: int, target: int) -> bool:
        """Tell whether equal records make up for all that an answer passes over.

        Another writer may have written them: then the job gets every record, with key, value,
        headers and time; without the time where the target's brokers have set it. Or compaction has
        removed what is passed over from the source, and has left an equal record there: then the
        job gets what it would get there.
        """
        world = self.drawn.world
        entries, source = world.target.entries, world.source
        has_foreign = any(each.origin == FOREIGN for each in entries[target:])
        if self.readable.misnamed or not (has_foreign or source.is_cleaned):
            return False
        if target > world.target.high:  # What is copied next is lost.
            return False
        needed = {up: at for up, at in world.highest_copies().items() if up >= position}
        removed = {up for up in needed if source.is_cleaned and source.low <= up} - {
            *source.records
        }
        got = self._count(entries[target:])
        kept = self._count(entries[at] for up, at in needed.items() if up not in removed)
        return kept <= got and {*self._count(entries[needed[up]] for up in removed)} <= {*got}

    def _count(self, entries: Iterable[Entry]) -> Counter[Record]:
        timed = not self.drawn.world.mirror.settings.append_time
        records = (each.record for each in entries if each.record)
        return Counter(each if timed else each._replace(timestamp=0) for each in records)

    def _convict(self, answer: Translation, truth: int) -> None:
        assert answer.target is not None
        loss = Loss(answer.position, answer.target, truth)
        evidence = detectable_by(self.drawn.world, self.readable, loss)
        self.tally.above[evidence] += 1
        if evidence is not DetectableBy.NOTHING:
            self.tally.lossy = 1
        self.findings.append(
            Finding(
                drawn=self.drawn,
                inputs=self.inputs,
                answer=answer,
                truth=truth,
                detectable_by=evidence,
            )
        )
