"""Checks that the wait of a planned failover ends when MirrorMaker 2 has copied everything."""

from collections import Counter
from enum import StrEnum

from airflow_mm2_offsets.core import SyncsLocation
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.plan import still_copying
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.draw import Drawn


class Waited(StrEnum):
    """The result of a wait."""

    ENDED = "ended"
    """All was copied, and the wait ended."""
    FOR_EVER = "for ever"
    """All was copied and committed, no record will come any more, and it still waits."""
    GOES_ON = "goes on"
    """Records are left to copy, and the wait lasts."""
    TOO_EARLY = "too early"
    """Records are left to copy, and the wait ended."""


class Waits(Counter[Waited]):
    """The number of waits with each result."""

    def add(self, drawn: Drawn) -> None:
        """Wait for the source's end, with Connect."""
        world = drawn.world
        clusters = WorldClusters(world, Reach(partitions=1), on=SyncsLocation.TARGET)
        try:
            behind = still_copying(clusters.pair, {TOPIC: {0: world.source.high}})
        except Mm2OffsetsError:
            return
        if world.left_to_copy():
            self[Waited.GOES_ON if behind else Waited.TOO_EARLY] += 1
        elif world.is_idle():
            self[Waited.FOR_EVER if behind else Waited.ENDED] += 1
