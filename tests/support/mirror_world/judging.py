"""Compares answers with the truth, and counts."""

from dataclasses import dataclass, field

from airflow_mm2_offsets.core import Status, Translation
from tests.support.mirror_world.draw import Drawn


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of many positions of one kind."""

    worlds: int = 0
    positions: int = 0
    refused: int = 0
    above: int = 0
    """Answers that lose records."""
    above_worlds: int = 0
    exact_below: int = 0
    """Answers called exact that read records again."""
    reread: int = 0
    """Records read again, in all."""

    @property
    def answered(self) -> int:
        """Positions that got an answer."""
        return self.positions - self.refused

    def add(self, other: "Tally") -> None:
        """Add another count."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An answer above the truth."""

    drawn: Drawn
    asked: str
    """Of what the answer was made."""
    answer: Translation
    truth: int

    def __str__(self) -> str:
        """Return all it takes to see it."""
        world, answer = self.drawn.world, self.answer
        steps = " ".join(f"{step.action}:{step.amount}" for step in world.steps)
        return (
            f"seed {self.drawn.seed} {'+'.join(self.drawn.kinds)}, {self.asked}: position "
            f"{answer.position} -> {answer.target} ({answer.status.value}, {answer.basis.value}), "
            f"truth {self.truth}\n  {world.mirror.settings}\n  {steps}\n"
            f"  syncs {world.syncs.syncs}, noted {world.mirror.noted}, "
            f"source [{world.source.low}, {world.source.high}), "
            f"target [{world.target.low}, {world.target.high}): {_target(self.drawn)}"
        )


def _target(drawn: Drawn) -> str:
    return " ".join(
        f"{entry.origin}"
        if entry.incarnation == drawn.world.source.incarnation or entry.origin < 0
        else f"old{entry.origin}"
        for entry in drawn.world.target.entries
    )


@dataclass(slots=True, kw_only=True)
class Judge:
    """Judges the answers about one world."""

    drawn: Drawn
    asked: str
    tally: Tally = field(default_factory=lambda: Tally(worlds=1))
    findings: list[Finding] = field(default_factory=list)
    truths: list[int] = field(init=False)
    _copies: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Find out what is true."""
        self.truths = self.drawn.world.truths()
        self._copies = [0]
        for entry in self.drawn.world.target.entries:
            self._copies.append(self._copies[-1] + (entry.origin >= 0))

    def judge(self, answer: Translation) -> None:
        """Judge one answer."""
        tally, truth = self.tally, self.truths[answer.position]
        tally.positions += 1
        if answer.target is None:
            tally.refused += 1
        elif answer.target > truth:
            tally.above += 1
            tally.above_worlds = 1
            self.findings.append(
                Finding(drawn=self.drawn, asked=self.asked, answer=answer, truth=truth)
            )
        else:
            tally.reread += self._copies[truth] - self._copies[answer.target]
            tally.exact_below += answer.status is Status.EXACT and answer.target < truth
