"""In simulated worlds that go on after a plan was made, what contradicts the plan is true."""

from collections.abc import Iterator
from dataclasses import replace

from airflow_mm2_offsets.core import PartitionPlan, SyncsLocation
from airflow_mm2_offsets.core.kept_answer import find_contradiction
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import collect_evidence, plan_failover
from tests.support.mirror_world.cases import by_kind, some
from tests.support.mirror_world.clusters import TOPIC, Reach, WorldClusters
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.kinds import Kind, amount
from tests.support.mirror_world.steps import Step

POSITIONS = 8
GOES_ON = ("grow", "copy", "commit")
AGAIN = PlanOptions(changed_records=True)


def _contradictions(drawn: Drawn, actions: list[str]) -> Iterator[tuple[PartitionPlan, str]]:
    """Yield what is said of each partition of a plan that was made before some steps."""
    world, random = drawn.world, drawn.random
    wanted = random.choices(range(world.source.low, world.source.high + 1), k=POSITIONS)
    clusters = WorldClusters(world, Reach(partitions=POSITIONS), on=SyncsLocation.TARGET)
    positions = {TOPIC: dict(enumerate(wanted))}
    plan = plan_failover(clusters.pair, positions)
    world.run([Step(action, amount(random)) for action in actions])
    clusters.refresh()
    pair = replace(clusters.pair, connect=None)
    collector, _ = collect_evidence(pair, positions, AGAIN)
    for each, now in zip(plan.partitions, collector.translations(), strict=True):
        key = each.translation.topic_partition
        syncs = collector.index.partitions.get(key)
        said = find_contradiction(each.translation, now, syncs, is_complete=True)
        if said is not None:
            yield each, said


def _records_again(drawn: Drawn, each: PartitionPlan) -> int:
    """Return how many records from before the position, or copied again, follow the start."""
    start, position = each.translation.target, each.translation.position
    assert start is not None
    entries = drawn.world.target.entries
    before = sum(0 <= entry.origin < position for entry in entries[start:])
    truth = drawn.world.truths()[position]
    return max(before, sum(entry.origin >= 0 for entry in entries[start:truth]))


STEPS_BACK = ("truncated", "late-sync")
"""A sync below the last one makes it doubtful what was copied before: the plan is refused, too."""


@by_kind
def test_a_world_that_goes_on_contradicts_a_plan_only_where_more_is_read_again(kind: Kind) -> None:
    """Producers write and MirrorMaker 2 copies; it copies again only where it was about to."""
    for drawn in some(8, kind):
        actions = drawn.random.choices(GOES_ON, k=6)
        if drawn.world.syncs.syncs:
            for each, said in _contradictions(drawn, actions):
                announced = each.translation.max_reread
                if kind.name in STEPS_BACK and "may not have copied again" in said:
                    continue
                assert "would be read again" in said, drawn
                assert announced is not None
                assert _records_again(drawn, each) > announced, f"{drawn}: {each}: {said}"


@by_kind
def test_a_reset_that_has_copied_all_again_loses_nothing(kind: Kind) -> None:
    """It repeats records: a plan from before is refused for that alone."""
    for drawn in some(4, kind):
        if drawn.world.syncs.syncs:
            for each, said in _contradictions(drawn, ["reset_offsets", "catch_up"]):
                assert "would be read again" in said, f"{drawn}: {each}: {said}"
