"""Settled worlds as cases: an index of the syncs of each, and the true answer to each position."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random

from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    SourceWindow,
    SyncIndex,
    TargetWindow,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.bracket import SyncBracket
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.rules import segments_with
from airflow_mm2_offsets.core.search_ranges import search_range
from airflow_mm2_offsets.testing.logs import FOREIGN, Record
from tests.support.mirror_world.world import MirrorWorld
from tests.support.worlds import last_read, settled_worlds, truths_of

TOPIC = "orders"

UNFINISHED = {Basis.AFTER_LAST_SYNC, Basis.COPYING_AGAIN}
"""The bases without an upper bound: MirrorMaker 2 may have records left to copy."""


class WorldCase:
    """A world, and the index of its syncs, or of some of them."""

    def __init__(self, world: MirrorWorld, syncs: list[tuple[int, int]] | None = None) -> None:
        self.world = world
        self.truths = truths_of(world)
        self.syncs = PartitionSyncs(world.syncs.syncs if syncs is None else syncs)
        self.index = SyncIndex.of_partitions({TopicPartition(TOPIC, 0): self.syncs})
        self.target = Watermarks(low=0, high=world.target.high)

    def positions(self) -> range:
        return range(len(self.truths) if len(self.syncs) else 0)

    def answer(self, position: int, evidence: Evidence | None = None) -> Translation:
        evidence = evidence or Evidence(target=self.target)
        return self.index.translate(TOPIC, 0, position, evidence=evidence)

    def check(self, position: int, evidence: Evidence | None = None, *, upper: bool = True) -> None:
        """Check the lower bound; if the syncs show every rewind, check the upper bound too."""
        answer = self.answer(position, evidence)
        shown = (answer, self.truths[position], self.world)
        assert answer.target is not None, shown
        assert answer.target <= self.truths[position], shown
        assert answer.target == answer.low, shown
        is_whole = len(self.syncs) == len(self.world.syncs.syncs)
        if upper and is_whole and self.world.shows_every_rewind:
            if answer.high is None:
                assert answer.basis in UNFINISHED, shown
            else:
                assert answer.high >= self.truths[position], shown

    @property
    def originals(self) -> Mapping[int, Record]:
        """The source's records, by offset."""
        return self.world.source.records

    def delivered(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return target and source offset of the target's records in ``[first, last]``."""
        entries = self.world.target.entries[first : last + 1]
        return [
            (offset, entry.origin) for offset, entry in enumerate(entries, first) if entry.record
        ]

    def copies_in_order(self, first: int, last: int) -> bool:
        """Tell whether each target offset in ``[first, last]`` copies a later record."""
        origins = [entry.origin for entry in self.world.target.entries[first : last + 1]]
        return min(origins) >= 0 and all(one < other for one, other in pairwise(origins))

    def bracket(self, position: int) -> SyncBracket:
        return self.syncs.segments.bracket(position)


def some_of(syncs: list[tuple[int, int]], random: Random) -> list[tuple[int, int]]:
    """Return all syncs, or those that compaction or a late archive has left."""
    share = random.choice((1.0, 1.0, 0.5))
    return [sync for sync in syncs if random.random() < share]


def bounded(
    without: tuple[str, ...] = (),
) -> Iterator[tuple[WorldCase, int, tuple[int, int], tuple[int, int], Random]]:
    """Yield cases, positions that lie before a sync, and the bracket of each.

    The bracket is given as the source offsets and the target offsets of its two syncs.
    """
    for world, random in settled_worlds(without):
        case = WorldCase(world, some_of(world.syncs.syncs, random))
        for position in case.positions():
            bracket = case.bracket(position)
            if bracket.after:
                begin, end = bracket.before or (0, 0), bracket.rewind or bracket.after
                upstream, downstream = zip(begin, end, strict=True)
                yield case, position, upstream, downstream, random


def read_on(case: WorldCase, position: int, last: int, kinds: int) -> Evidence:
    """Return the evidence of a plan that reads the source, and the target up to ``last``."""
    end = case.world.source.high
    evidence = Evidence(
        source=Watermarks(low=0, high=max(end, position)),
        target=case.target,
        committed=last_read(case.world),
        source_end=last_read(case.world) + 1,
    )
    segments = segments_with(case.syncs, evidence)
    bracket = segments.bracket(position)
    window = search_range(segments, bracket)
    first = (window or bracket).begin.downstream
    records = [
        (offset, ("other", offset) if original == FOREIGN else original % kinds)
        for offset, original in case.delivered(first, last)
    ]
    return replace(
        evidence,
        target_window=TargetWindow.of(first, last, records),
        source_window=SourceWindow(
            first=0, last=end, records=[(offset, offset % kinds) for offset in case.originals]
        ),
    )


def read_on_cases(
    without: tuple[str, ...] = (),
) -> Iterator[tuple[WorldCase, int, int, Random]]:
    """Yield cases, positions up to the last sync, and the last target offset to read."""
    for world, random in settled_worlds(without):
        case = WorldCase(world, some_of(world.syncs.syncs, random))
        for position in case.positions():
            end = case.bracket(position).end
            if end:
                later = [down for down in case.syncs.downstream if down >= end.downstream]
                yield case, position, random.choice((later[-1], *later)), random
