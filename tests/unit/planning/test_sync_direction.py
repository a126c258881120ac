"""Syncs of the flow back are not taken for those of the pair, where mirrors run both ways."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.core.wire import OffsetSync, encode_offset_sync
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Mm2Simulation, Record, simulated_mm2

POSITION, TRUTH = 600, 100


@dataclass(frozen=True)
class BothWays:
    """A to B copied orders 500 and later to offset 0; B to A has syncs of its own topic orders."""

    simulation: Mm2Simulation

    def pair(self, location: SyncsLocation) -> ClusterPair:
        """Return the pair with this location in its connection, and without Connect."""
        return replace(self.simulation.pair, syncs_location=location, connect=None)

    def write_back(self, *syncs: tuple[int, int]) -> None:
        """Write offset syncs as the flow back does, by default on the cluster that it copies."""
        topic = self.pair(SyncsLocation.TARGET).syncs_topic
        for upstream, downstream in syncs:
            sync = OffsetSync(topic="orders", partition=0, upstream=upstream, downstream=downstream)
            self.simulation.target.produce(topic, 0, [Record(*encode_offset_sync(sync))])


@pytest.fixture(params=ReplicationPolicy)
def both_ways(request: pytest.FixtureRequest) -> Iterator[BothWays]:
    """Return clusters with mirrors both ways; the job's syncs are on the source."""
    naming = Naming(source_alias="A", target_alias="B", policy=request.param)
    with simulated_mm2(naming) as simulation:
        simulation.source.produce("orders", 0, [b"%d" % number for number in range(1000)])
        simulation.source.delete_records("orders", 0, 500)
        simulation.mirror()
        world = BothWays(simulation)
        world.write_back((0, 0), (100, 100), (300, 300), (450, 450))
        yield world


def _target(pair: ClusterPair, options: PlanOptions = DEFAULT_OPTIONS) -> int | None:
    (planned,) = plan_failover(pair, {"orders": {0: POSITION}}, options=options).partitions
    return planned.start


@pytest.mark.parametrize(
    "options", [PlanOptions(max_evidence_bytes=0), PlanOptions(changed_records=True)]
)
def test_syncs_of_the_flow_back_are_refused(both_ways: BothWays, options: PlanOptions) -> None:
    """The syncs alone would answer 451, and lose 351 records: the source holds none of theirs."""
    with pytest.raises(ConfigurationError, match="may be those of the flow back") as caught:
        _target(both_ways.pair(SyncsLocation.TARGET), options)
    for name in ("mm2-offset-syncs.A.internal", "mm2-offset-syncs.B.internal", "connect_url"):
        assert name in str(caught.value)


@pytest.mark.parametrize("more", [(), ((520, 460),)])
def test_syncs_with_records_that_differ_are_refused(
    both_ways: BothWays, more: tuple[tuple[int, int], ...]
) -> None:
    """The records tell: those of a sync that both clusters hold, or those after the last sync."""
    both_ways.write_back(*more)
    assert _target(both_ways.pair(SyncsLocation.TARGET)) is None


def test_the_right_location_is_proven_by_its_records(both_ways: BothWays) -> None:
    """The topic of the flow back is no reason to refuse."""
    assert _target(both_ways.pair(SyncsLocation.SOURCE)) == TRUTH


def test_connect_proves_the_location(both_ways: BothWays) -> None:
    """Its settings were compared: no record need be read."""
    options = PlanOptions(max_evidence_bytes=0)
    answer = _target(both_ways.simulation.pair, options)
    assert answer is not None
    assert answer <= TRUTH


def test_one_location_needs_no_proof(both_ways: BothWays) -> None:
    """Without a flow back, the name alone tells."""
    pair = both_ways.pair(SyncsLocation.SOURCE)
    of_flow_back = both_ways.pair(SyncsLocation.TARGET).syncs_topic
    both_ways.simulation.target.delete_topic(of_flow_back)
    answer = _target(pair, PlanOptions(max_evidence_bytes=0))
    assert answer is not None
    assert answer <= TRUTH
