"""Adds up the results of many worlds, and prints them as a table."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.mirror_world.detection import DetectableBy
from tests.support.mirror_world.judging import Judge, Tally

_HEAD = ("worlds", "lossy", "positions", *DetectableBy, "refused", "exact<", "again")


@dataclass(slots=True, kw_only=True)
class Report:
    """The counts of one kind of check, by the kind of the worlds."""

    title: str
    shown: int = 3
    """The most findings to keep of each kind."""
    hidden: bool = False
    """Undetectable losses count as well."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    findings: dict[str, list[str]] = field(default_factory=dict)

    def add(self, judge: Judge) -> None:
        """Count one world, by the first of its kinds."""
        kind = judge.drawn.kinds[0]
        self.tallies.setdefault(kind, Tally()).add(judge.tally)
        counted = [each for each in judge.findings if self.hidden or each.is_known]
        # One for each world: the others of it are much the same.
        if counted and len(self.findings.setdefault(kind, [])) < self.shown:
            self.findings[kind].append(str(counted[0]))

    def merge(self, other: "Report") -> None:
        """Add the counts of another report."""
        for kind, tally in other.tallies.items():
            self.tallies.setdefault(kind, Tally()).add(tally)
            mine = self.findings.setdefault(kind, [])
            mine += other.findings.get(kind, [])[: self.shown - len(mine)]

    @property
    def total(self) -> Tally:
        """All kinds together."""
        total = Tally()
        for tally in self.tallies.values():
            total.add(tally)
        return total

    @property
    def above(self) -> int:
        """Answers that lose records, of those that count."""
        total = self.total
        return total.above.total() if self.hidden else total.known_above

    def lines(self) -> Iterator[str]:
        """Yield the findings that were kept, and the table."""
        for findings in self.findings.values():
            yield from findings
        yield f"{self.title:19}" + "".join(f"{each:>10}" for each in _HEAD)
        for kind, tally in self.tallies.items():
            yield _line(kind, tally)
        yield _line("all", self.total)


def _line(kind: str, tally: Tally) -> str:
    numbers = (
        tally.worlds,
        tally.lossy,
        tally.positions,
        *(tally.above[each] for each in DetectableBy),
        tally.refused,
        tally.exact_below,
    )
    counts = "".join(f"{each:10}" for each in numbers)
    return f"{kind:19}{counts}{tally.mean_reread:10.1f}"
