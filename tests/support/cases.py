"""Worlds of the simulator as cases: what is known of them, and what is true."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    SourceWindow,
    SyncIndex,
    TargetWindow,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.bracket import SyncBracket
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.rules import segments_with
from tests.support.simulator import FOREIGN, World
from tests.support.worlds import settled_worlds

TOPIC = "orders"

UNFINISHED = {Basis.AFTER_LAST_SYNC, Basis.COPYING_AGAIN}
"""What has no upper bound yet: MirrorMaker 2 may have records left to copy."""


class Case:
    """A world, and the index of its syncs (or of those that are left of them)."""

    def __init__(self, world: World, syncs: list[tuple[int, int]] | None = None) -> None:
        self.world = world
        self.truths = world.truths()
        self.syncs = PartitionSyncs(world.syncs if syncs is None else syncs)
        self.index = SyncIndex().extended({(TOPIC, 0): world.syncs if syncs is None else syncs})
        self.target = Watermarks(low=0, high=len(world.target))

    def positions(self) -> range:
        return range(self.world.source_end + 2 if len(self.syncs) else 0)

    def answer(self, position: int, evidence: Evidence | None = None) -> Translation:
        evidence = evidence or Evidence(target=self.target)
        return self.index.translate(TOPIC, 0, position, evidence=evidence)

    def check(self, position: int, evidence: Evidence | None = None, *, upper: bool = True) -> None:
        """Check that nothing is lost, and where every rewind is shown, the upper bound."""
        answer = self.answer(position, evidence)
        told = (answer, self.truths[position], self.world)
        assert answer.target is not None, told
        assert answer.target <= self.truths[position], told
        assert answer.target == answer.low, told
        if upper and self.world.every_rewind_shown and len(self.syncs) == len(self.world.syncs):
            if answer.high is None:
                assert answer.basis in UNFINISHED, told
            else:
                assert answer.high >= self.truths[position], told

    def bracket(self, position: int) -> SyncBracket:
        return self.syncs.segments.bracket(position)


def some_of(syncs: list[tuple[int, int]], random: Random) -> list[tuple[int, int]]:
    """All of ``syncs``, or what compaction or a late archive left of them."""
    left = random.choice((1.0, 1.0, 0.5))
    return [sync for sync in syncs if random.random() < left]


def bounded(
    without: tuple[str, ...] = (),
) -> Iterator[tuple[Case, int, tuple[int, int], tuple[int, int], Random]]:
    """Yield cases and positions that lie before a sync.

    With them go the source and the target offsets, first and last, between the syncs around.
    """
    for world, random in settled_worlds(without):
        case = Case(world, some_of(world.syncs, random))
        for position in case.positions():
            bracket = case.bracket(position)
            if bracket.after:
                begin, end = bracket.before or (0, 0), bracket.rewind or bracket.after
                upstream, downstream = zip(begin, end, strict=True)
                yield case, position, upstream, downstream, random


def read_on(case: Case, position: int, last: int, kinds: int) -> Evidence:
    """Return what a plan with the source up knows, with the target read up to ``last``."""
    end = case.world.source_end
    known = Evidence(
        source=Watermarks(low=0, high=max(end, position)),
        target=case.target,
        copied_to=case.world.position - 1,
    )
    segments = segments_with(case.syncs, known)
    bracket = segments.bracket(position)
    window = segments.search_range(bracket)
    first = (window or bracket).begin.downstream
    records = [
        (offset, ("other", offset) if original == FOREIGN else original % kinds)
        for offset, original in case.world.delivered(first, last)
    ]
    return replace(
        known,
        target_window=TargetWindow.of(first, last, records),
        source_window=SourceWindow(
            first=0, last=end, records=[(each, each % kinds) for each in case.world.source]
        ),
    )


def read_on_cases(
    without: tuple[str, ...] = (),
) -> Iterator[tuple[Case, int, int, Random]]:
    """Yield cases, positions up to the last sync, and up to which sync the target is read."""
    for world, random in settled_worlds(without):
        case = Case(world, some_of(world.syncs, random))
        for position in case.positions():
            end = case.bracket(position).end
            if end:
                later = [down for down in case.syncs.downstream if down >= end.downstream]
                yield case, position, random.choice((later[-1], *later)), random
