"""What a preview says of each job, and that it reads the syncs topic once for all."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive, incremental_read
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core.policy import DISASTER, PLANNED, Policy
from airflow_mm2_offsets.fleet.preview import Cost, Stand, find_costs
from airflow_mm2_offsets.kafka import sync_log
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.testing import Mm2Simulation, Record
from tests.unit.operators.clusters import _NAMING

JOBS = 5
SYNCS = 40


@dataclass
class Fleet:
    """Jobs that read a topic each, of which MirrorMaker 2 has copied everything."""

    folder: Path
    simulation: Mm2Simulation = field(default_factory=lambda: Mm2Simulation(_NAMING))

    def __post_init__(self) -> None:
        self.pair = replace(self.simulation.pair, connect=None)
        self.archive = SyncArchive(UPath(self.folder / "archive"))
        self.options = PlanOptions(archive=self.archive)
        self.stands = [self._stand(f"topic{number}") for number in range(JOBS)]

    def stand(self, name: str, topic: str, position: int = SYNCS) -> Stand:
        return Stand(
            name=name,
            pair=self.pair,
            positions={topic: {0: position}},
            pending=None,
            options=self.options,
        )

    def costs(self, policy: Policy = PLANNED, *, give_up: int = 0) -> list[Cost]:
        options = replace(self.options, give_up=give_up) if give_up else self.options
        stands = [replace(each, options=options) for each in self.stands]
        costs = find_costs(stands, policy)
        return [costs[each.name] for each in stands]

    def _stand(self, topic: str) -> Stand:
        for cluster in (self.simulation.source, self.simulation.target):
            cluster.create_topic(topic, partitions=1)
            cluster.produce(topic, 0, [Record(b"%d" % number, b"") for number in range(SYNCS)])
        for number in range(SYNCS):
            self.simulation.write_sync(topic, 0, number, number)
        return self.stand(topic, topic)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    archive_syncs(fleet.pair, fleet.archive)
    return fleet


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records of the syncs topic each read has taken."""
    counts: list[int] = []
    read = sync_log.read_syncs_topic

    def counted(*arguments: object, **named: object) -> object:
        result = read(*arguments, **named)  # type: ignore[arg-type]
        counts.append(result.records_read)
        return result

    monkeypatch.setattr(incremental_read, "read_syncs_topic", counted)
    return counts


def test_the_syncs_topic_is_read_once_for_all(fleet: Fleet, reads: list[int]) -> None:
    """The archive has all but the newest; one plan answers for all jobs."""
    fleet.simulation.write_sync("topic0", 0, SYNCS, SYNCS)
    fleet.costs()
    assert reads == [1]


def test_jobs_of_one_topic_partition_are_planned_apart(fleet: Fleet) -> None:
    """A plan holds one position of each; both jobs get their own."""
    fleet.stands.append(fleet.stand("second", "topic0", position=7))
    first, *_, second = fleet.costs()
    assert first.plan is not None
    assert first.plan.source_positions() == {"topic0": {0: SYNCS}}
    assert second.plan is not None
    assert second.plan.source_positions() == {"topic0": {0: 7}}


def test_one_job_that_can_not_be_planned_holds_no_other(fleet: Fleet) -> None:
    """Its topic is gone: they are planned one by one, and its numbers are not known."""
    fleet.stands[1] = fleet.stand("broken", "gone")
    first, broken, *_ = fleet.costs()
    assert (first.problem, first.refused, first.read_again_at_most) == (None, 0, 0)
    assert "gone" in str(broken.problem)
    unknown = broken.refused, broken.read_again_at_most, broken.lost_at_most
    assert unknown == (None, None, None)


def test_what_is_not_copied_yet_has_no_cost_yet(fleet: Fleet) -> None:
    """A move waits for it; it is no refusal to be approved."""
    fleet.simulation.source.produce("topic0", 0, [Record(b"new", b"")] * 3)
    fleet.stands[0] = fleet.stand("topic0", "topic0", position=SYNCS + 3)
    first, *_ = fleet.costs()
    assert first.to_json()["not_copied_yet"] == 1
    assert (first.refused, first.read_again_at_most) == (0, 0)


def test_a_disaster_forecasts_each_job(fleet: Fleet) -> None:
    """What the source has and the target lacks may be lost, of that job alone."""
    fleet.simulation.source.produce("topic0", 0, [Record(b"new", b"")] * 3)
    first, second, *_ = fleet.costs(DISASTER)
    assert (first.lost_at_most, second.lost_at_most) == (3, 0)
    assert first.to_json()["not_copied_yet"] == 0


@pytest.mark.parametrize("policy", [PLANNED, DISASTER])
def test_what_may_be_given_up_counts_for_each_job(fleet: Fleet, policy: Policy) -> None:
    """As in the plan of each job alone; the total to be approved has it as records lost."""
    for each in fleet.stands:
        records = [Record(b"more %d" % one, b"") for one in range(4)]
        fleet.simulation.source.produce(each.name, 0, records)
        fleet.simulation.target.produce(each.name, 0, records[-1:])
        fleet.simulation.write_sync(each.name, 0, SYNCS + 3, SYNCS)
    given_up = fleet.costs(policy, give_up=3)
    assert [(each.refused, each.lost_at_most) for each in given_up] == [(0, 3)] * JOBS
    assert [each.refused for each in fleet.costs(policy, give_up=2)] == [1] * JOBS
