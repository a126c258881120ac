"""Plans of the way home by an exchanged pair, on two clusters in memory."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import (
    Basis,
    Direction,
    FailoverPlan,
    Naming,
    Positions,
    ReplicationPolicy,
    Status,
    SyncsLocation,
    TopicPartition,
)
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, PlanError
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.testing import Mm2Simulation, Record, simulated_mm2
from airflow_mm2_offsets.testing.mirror import MirrorSettings

PATH = UPath("/kept/plan.json")


@pytest.fixture(params=[ReplicationPolicy.IDENTITY, ReplicationPolicy.DEFAULT])
def mm2(request: pytest.FixtureRequest) -> Iterator[Mm2Simulation]:
    """Return clusters a and b, with MirrorMaker 2 from a to b."""
    naming = Naming(source_alias="a", target_alias="b", policy=request.param)
    with simulated_mm2(naming, settings=MirrorSettings(lag_max=3)) as simulation:
        simulation.source.create_topic("orders", partitions=2)
        yield simulation


def _write(mm2: Mm2Simulation, first: int, last: int) -> None:
    for number in range(first, last):
        mm2.source.produce("orders", number % 2, [Record(b"k", b"%d" % number, 10**12 + number)])


def _away_topic(mm2: Mm2Simulation) -> str:
    return mm2.pair.naming.target_topic("orders")


def _move_away(mm2: Mm2Simulation) -> FailoverPlan:
    """Write and copy, and move a job that has read half of it."""
    _write(mm2, 0, 40)
    mm2.target.create_topic(_away_topic(mm2), partitions=2)
    for number in range(2):  # Offsets differ between the clusters.
        mm2.target.log(_away_topic(mm2), number).skip(7)
    mm2.mirror()
    return plan_failover(mm2.pair, {"orders": {0: 10, 1: 10}})


def _home(mm2: Mm2Simulation, positions: dict[int, int], **options: object) -> FailoverPlan:
    return plan_failover(
        mm2.pair.exchanged(),
        {_away_topic(mm2): positions},
        options=PlanOptions(**options),  # type: ignore[arg-type]
    )


def test_a_job_comes_home_to_the_record_after_its_last(mm2: Mm2Simulation) -> None:
    """By the syncs of the same MirrorMaker 2, EXACT, under the names of each side."""
    first = _move_away(mm2)
    plan = _home(mm2, {0: 20, 1: 27}, first_plan=first)
    assert plan.direction is Direction.EXCHANGED
    assert plan.target_positions() == {"orders": {0: 13, 1: 20}}
    assert plan.source_positions() == {_away_topic(mm2): {0: 20, 1: 27}}
    assert {each.translation.status for each in plan.partitions} == {Status.EXACT}
    assert FailoverPlan.from_json(plan.to_json()) == plan


def test_five_round_trips_lose_and_repeat_nothing(mm2: Mm2Simulation) -> None:
    """A job that reads on each side while records are written gets each record once."""
    mm2.target.create_topic(_away_topic(mm2), partitions=2)
    mm2.target.log(_away_topic(mm2), 0).skip(5)
    seen: list[bytes] = []
    at_home: dict[int, int] = {0: 0, 1: 0}
    for trip in range(5):
        _write(mm2, trip * 40, trip * 40 + 20)
        for number, start in at_home.items():
            log = mm2.source.log("orders", number)
            seen += [record.value or b"" for _, record in log.committed_records(start)]
            at_home[number] = log.high
        mm2.mirror()
        first = plan_failover(mm2.pair, {"orders": at_home})
        _write(mm2, trip * 40 + 20, trip * 40 + 40)
        mm2.mirror()
        away = dict(first.target_positions()[_away_topic(mm2)])
        for number, start in away.items():
            records = list(mm2.target.log(_away_topic(mm2), number).committed_records(start))
            stop = records[len(records) // 2][0]  # It has not read all when it is moved.
            seen += [record.value or b"" for offset, record in records if offset < stop]
            away[number] = stop
        at_home = dict(_home(mm2, away, first_plan=first).target_positions()["orders"])
    for number, start in at_home.items():
        seen += [
            r.value or b"" for _, r in mm2.source.log("orders", number).committed_records(start)
        ]
    assert sorted(seen) == sorted(b"%d" % number for number in range(200))


def test_a_record_of_another_writer_is_never_left_behind(mm2: Mm2Simulation) -> None:
    """A producer that already writes to B is named; once the job has read it, the way is free."""
    first = _move_away(mm2)
    stray = Record(b"k", b"written on b", 10**12)
    mm2.target.produce(_away_topic(mm2), 0, [stray])
    end = mm2.target.log(_away_topic(mm2), 0).high
    (refused,) = _home(mm2, {0: 20, 1: 20}, first_plan=first).refused
    assert refused.basis is Basis.OTHER_WRITER
    assert f"offset {end - 1}" in refused.reason
    assert _home(mm2, {0: end, 1: 20}, first_plan=first).refused == ()


def test_what_is_not_read_is_refused_unless_the_user_vouches(mm2: Mm2Simulation) -> None:
    """Without records only the word ``sole_writer`` rules out another writer."""
    first = _move_away(mm2)
    plan = _home(mm2, {0: 20, 1: 20}, first_plan=first, max_evidence_bytes=0)
    assert [each.basis for each in plan.refused] == [Basis.UNREAD_RECORDS] * 2
    plan = _home(mm2, {0: 20, 1: 20}, first_plan=first, max_evidence_bytes=0, sole_writer=True)
    assert plan.target_positions()["orders"][0] <= 13


def test_a_topic_that_is_no_copy_is_an_error() -> None:
    """Under DefaultReplicationPolicy its name tells."""
    pair = Mm2Simulation(Naming(source_alias="a", target_alias="b")).pair.exchanged()
    assert pair.on_target(TopicPartition("a.orders", 0)) == ("orders", 0)
    with pytest.raises(ConfigurationError, match=r"payments: MirrorMaker 2 has not copied it"):
        pair.on_target(TopicPartition("payments", 0))


@pytest.mark.parametrize("location", list(SyncsLocation))
def test_an_exchanged_pair_reads_the_same_syncs(location: SyncsLocation) -> None:
    """Sides and names are exchanged, the syncs topic is not; twice is once."""
    pair = Mm2Simulation(syncs_location=location).pair
    assert pair.exchanged().syncs_cluster is pair.syncs_cluster
    assert pair.exchanged().syncs_topic == pair.syncs_topic
    assert pair.exchanged().exchanged() == pair
    assert pair.exchanged().mirrored == pair


def test_there_is_nothing_to_wait_for(mm2: Mm2Simulation) -> None:
    """What a job has read on B was copied: it lies on A."""
    _move_away(mm2)
    assert still_copying(mm2.pair.exchanged(), {_away_topic(mm2): {0: 99}}) == ()


def test_a_first_plan_of_other_topics_is_refused(mm2: Mm2Simulation) -> None:
    """Ids come before numbers: both ids are named."""
    first = _move_away(mm2)
    other = replace(first.ids.source, topic_ids={"orders": "another"})
    with pytest.raises(PlanError, match=r"clusters\.source\.topic_ids\.orders is 'another'"):
        _home(mm2, {0: 20}, first_plan=replace(first, ids=replace(first.ids, source=other)))
    with pytest.raises(PlanError, match="direction exchanged"):
        _home(mm2, {0: 20}, first_plan=replace(first, direction=Direction.EXCHANGED))
    with pytest.raises(PlanError, match="direction forward"):
        plan_failover(mm2.pair, {"orders": {0: 1}}, options=PlanOptions(first_plan=first))


def test_a_position_before_the_first_start_is_refused(mm2: Mm2Simulation) -> None:
    """Position and first plan contradict each other."""
    first = _move_away(mm2)
    (refused,) = _home(mm2, {0: 16}, first_plan=first).refused
    assert refused.basis is Basis.FIRST_PLAN
    assert "position 16 lies below 17" in refused.reason


def test_the_cluster_that_the_job_leaves_must_answer(mm2: Mm2Simulation) -> None:
    """Only it shows whether a producer has written there."""
    first = _move_away(mm2)
    with pytest.raises(ClusterUnreachableError, match="read_source"):
        _home(mm2, {0: 20}, first_plan=first, read_source=False)


def test_an_archive_serves_the_way_home(mm2: Mm2Simulation) -> None:
    """The syncs may come from the archive of the pair as MirrorMaker 2 copies."""
    first = _move_away(mm2)
    archive = SyncArchive(UPath(f"memory://way-home/{id(mm2)}"))
    archive_syncs(mm2.pair, archive)
    plan = _home(mm2, {0: 20, 1: 20}, first_plan=first, archive=archive)
    assert plan.target_positions() == {"orders": {0: 13, 1: 13}}


def test_a_kept_plan_holds_until_a_producer_writes(mm2: Mm2Simulation) -> None:
    """More copies, and more records on A, change nothing; a record of another writer does."""
    first = _move_away(mm2)
    positions: Positions = {_away_topic(mm2): {0: 27, 1: 27}}
    plan = _home(mm2, positions[_away_topic(mm2)], first_plan=first)
    pair = mm2.pair.exchanged()

    def check() -> None:
        ids = read_ids(pair, positions, ask_source=True)
        check_kept_plan(plan, PATH, pair, positions=positions, pending=None, ids=ids)

    check()
    _write(mm2, 40, 60)
    check()
    mm2.mirror()
    check()
    mm2.target.produce(_away_topic(mm2), 1, [Record(b"k", b"written on b", 10**12)])
    with pytest.raises(PlanError, match="a producer writes here already"):
        check()


def test_older_plans_are_still_read(mm2: Mm2Simulation) -> None:
    """A forward plan's JSON has no direction, as before."""
    first = _move_away(mm2)
    assert "direction" not in first.to_json()
    assert FailoverPlan.from_json(first.to_json()).direction is Direction.FORWARD
