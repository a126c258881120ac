"""Counts what came of many worlds, and puts it as a table."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.mirror_world.judging import Finding, Judge, Tally
from tests.support.mirror_world.telling import ToldBy

_HEAD = ("worlds", "lossy", "positions", *ToldBy, "refused", "exact<", "again")


@dataclass(slots=True, kw_only=True)
class Report:
    """The counts of one kind of check, by the kind of the worlds."""

    title: str
    shown: int = 3
    """Findings that are kept of each kind."""
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    findings: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))

    def add(self, judge: Judge) -> None:
        """Count what came of one world; a world of several kinds counts for its first."""
        kind = judge.drawn.kinds[0]
        self.tallies[kind].add(judge.tally)
        room = self.shown - len(self.findings[kind])
        known = [each for each in judge.findings if each.told_by is not ToldBy.NOTHING]
        # One for each world: the others of it are much the same.
        self.findings[kind] += known[: min(room, 1)]

    @property
    def total(self) -> Tally:
        """All kinds together."""
        total = Tally()
        for tally in self.tallies.values():
            total.add(tally)
        return total

    def lines(self) -> Iterator[str]:
        """Yield the findings that were kept, and the table."""
        for findings in self.findings.values():
            yield from map(str, findings)
        yield f"{self.title:19}" + "".join(f"{each:>10}" for each in _HEAD)
        for kind, tally in self.tallies.items():
            yield _line(kind, tally)
        yield _line("all", self.total)


def _line(kind: str, tally: Tally) -> str:
    numbers = (
        tally.worlds,
        tally.lossy,
        tally.positions,
        *(tally.above[each] for each in ToldBy),
        tally.refused,
        tally.exact_below,
    )
    counts = "".join(f"{each:10}" for each in numbers)
    return f"{kind:19}{counts}{tally.mean_reread:10.1f}"
