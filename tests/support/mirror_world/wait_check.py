"""Asks the wait of a planned failover whether MirrorMaker 2 has copied all that there is."""

from collections import Counter
from enum import StrEnum

from airflow_mm2_offsets.core import SyncsLocation
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.plan import still_copying
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.draw import Drawn


class Waited(StrEnum):
    """What came of the wait."""

    ENDED = "ended"
    """All was copied, and it said so."""
    FOR_EVER = "for ever"
    """All was copied and noted, nothing will come any more, and it still waits."""
    GOES_ON = "goes on"
    """Records are left to copy, and it waits for them."""
    TOO_EARLY = "too early"
    """Records are left to copy, and it says that there are none."""


class Waits(Counter[Waited]):
    """How often each came of it."""

    def add(self, drawn: Drawn) -> None:
        """Ask for a position at the source's end, with Connect."""
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
