"""In simulated worlds a plan finds the records that were never copied, and no others."""

from collections import Counter

import pytest

from airflow_mm2_offsets.core import Basis, SyncsLocation, Translation
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing.logs import Record
from tests.support.mirror_world.cases import some
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.kinds import KINDS, LATER, Kind
from tests.support.mirror_world.world import MirrorWorld

_CHANGING = {"transform", "stamps"}
"""Kinds whose Connect does not say that a transform changes records: their copies are unknown."""


def _answers(drawn: Drawn) -> list[Translation]:
    """Return the answers to some positions where everything can be read."""
    world = drawn.world
    step = max(1, world.source.high // 12)
    positions = {TOPIC: dict(enumerate(range(0, world.source.high + 1, step)))}
    reach = Reach(partitions=len(positions[TOPIC]), misnamed="misnamed" in drawn.kinds)
    clusters = WorldClusters(world, reach, on=SyncsLocation.TARGET)
    try:
        plan = plan_failover(clusters.pair, positions)
    except Mm2OffsetsError:
        return []
    return [each.translation for each in plan.partitions]


def _uncopied(world: MirrorWorld, position: int, until: int) -> int:
    """Return how many records of ``[position, until)`` no target record ever was equal to."""
    copied = Counter(_content(world, each.record) for each in world.target.entries if each.record)
    missing = 0
    for offset in sorted(world.source.records):
        content = _content(world, world.source.records[offset])
        if position <= offset < min(until, world.source.stable):
            missing += not copied[content]
            copied[content] -= bool(copied[content])
    return missing


def _content(world: MirrorWorld, record: Record) -> Record:
    return record._replace(timestamp=0) if world.mirror.settings.append_time else record


@pytest.mark.parametrize(
    "kind", [each for each in (*KINDS, *LATER) if each.name not in _CHANGING], ids=lambda k: k.name
)
def test_no_copied_record_is_called_uncopied(kind: Kind) -> None:
    """What a finding surely counts has no copy, read or deleted."""
    for drawn in some(8, kind):
        world = drawn.world
        for answer in _answers(drawn):
            if answer.uncopied is not None:
                until = answer.uncopied.last + 1
                truth = _uncopied(world, answer.position, until)
                assert answer.uncopied.at_least <= truth, (answer, repr(world))
                assert not world.mirror.settings.dropped, (answer, repr(world))
            elif answer.basis is Basis.NEVER_COPIED:
                raise AssertionError(answer)
