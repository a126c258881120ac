"""Many positions of one topic-partition, translated in one go."""

from itertools import product

import pytest

from airflow_mm2_offsets.core import SyncsLocation, TopicPartition, Translation
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.planning import many_positions
from airflow_mm2_offsets.planning.many_positions import translate_many
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.syncs import load_syncs
from tests.support.mirror_world.cases import by_kind, some
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.kinds import Kind

KEY = TopicPartition(TOPIC, 0)
POSITIONS, WORLDS = 12, 3
OPTIONS = [
    PlanOptions(read_source=read_source, sole_writer=sole_writer, max_evidence_bytes=max_bytes)
    for read_source, sole_writer, max_bytes in product((True, False), (True, False), (0, 2**20))
]


def _positions(drawn: Drawn) -> list[int]:
    """Return positions of all kinds: in the log, beyond both ends of it, and at syncs."""
    source, random = drawn.world.source, drawn.random
    syncs = [up for up, _ in drawn.world.syncs.syncs[-2:]]
    ends = [0, source.low, source.high, source.high + 3]
    others = random.choices(range(source.high + 1), k=POSITIONS - len(ends))
    return sorted({*ends, *syncs, *others})


def _alone(clusters: WorldClusters, position: int, options: PlanOptions) -> Translation:
    (planned,) = plan_failover(clusters.pair, {TOPIC: {0: position}}, options=options).partitions
    return planned.translation


@by_kind
def test_many_positions_have_the_answers_that_each_has_alone(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status, basis, bounds, reason: all are equal, in worlds of each kind, with drawn options."""
    for drawn in filter(_is_mirrored, some(WORLDS, kind)):
        random = drawn.random
        monkeypatch.setattr(many_positions, "AT_ONCE", random.choice((3, 100)))
        reach = Reach(partitions=1, connect=random.random() < 0.5)
        clusters = WorldClusters(drawn.world, reach, on=SyncsLocation.TARGET)
        options, positions = random.choice(OPTIONS), _positions(drawn)
        syncs = load_syncs(clusters.pair, None, ask_source=options.read_source)
        many = translate_many(clusters.pair, {KEY: positions}, syncs, options=options)
        for position in positions:
            alone = _alone(clusters, position, options)
            assert many.answers[PartitionPosition(KEY, position)] == alone, f"{drawn}: {options}"


def _is_mirrored(drawn: Drawn) -> bool:
    return bool(drawn.world.syncs.syncs)
