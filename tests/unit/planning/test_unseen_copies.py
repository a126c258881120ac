"""Records that were copied twice, where little of it shows: no plan loses one or is called exact.

Each world was found by a simulator that shares no code with ``tests.support.mirror_world``. Source
offsets are moved: retention had deleted the source's beginning before MirrorMaker 2 began.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Status, Translation, Verdict
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from tests.support.pairs import Pair, connect

ORDERS = ("orders", 0)
SOURCE_GONE = PlanOptions(read_source=False)
RECORDS = 200


class Copied:
    """A source of 200 records from ``base`` on, and what was copied of it."""

    def __init__(
        self,
        clusters: Pair,
        base: int,
        copies: Iterable[int],
        syncs: Sequence[tuple[int, int]],
        *,
        compacted: int = 0,
    ) -> None:
        """Write the logs.

        Args:
            clusters: Where.
            base: The source's first offset; all other source offsets count from it.
            copies: The record at each target offset.
            syncs: The offset syncs.
            compacted: So many syncs before those are gone.
        """
        self.base, self.copies, self.clusters = base, [*copies], clusters
        clusters.source.create_topic("orders", partitions=4)
        clusters.source.skip_offsets(*ORDERS, base)
        clusters.source.delete_records(*ORDERS, base)
        clusters.write("orders", range(RECORDS))
        clusters.copy("orders", self.copies)
        if compacted:
            topic = clusters.pair.syncs_topic
            clusters.target.create_topic(topic)
            clusters.simulation.syncs_cluster.skip_offsets(topic, 0, compacted)
        clusters.sync("orders", *[(base + up, down) for up, down in syncs])

    def pair(self, committed: int | None = None) -> ClusterPair:
        """Return the clusters, with a Connect that has committed a record."""
        if committed is None:
            return self.clusters.pair
        return replace(self.clusters.pair, connect=connect({ORDERS: self.base + committed}))

    def plan(
        self, position: int, *, committed: int | None = None, options: PlanOptions = DEFAULT_OPTIONS
    ) -> FailoverPlan:
        """Plan one position."""
        positions = {"orders": {0: self.base + position}}
        return plan_failover(self.pair(committed), positions, options=options)

    def waits(self, position: int, *, committed: int | None = None) -> bool:
        """Tell whether a planned failover would wait."""
        positions = {"orders": {0: self.base + position}}
        return bool(still_copying(self.pair(committed), positions))

    def truth(self, position: int) -> int:
        """Return the target offset from which on no copied record is missed."""
        last = {record: offset for offset, record in enumerate(self.copies)}
        needed = [offset for record, offset in last.items() if record >= position]
        return min(needed, default=len(self.copies))

    def loses(self, plan: FailoverPlan, position: int) -> bool:
        """Tell whether the job would miss a record."""
        answer = _answer(plan)
        return answer.target is not None and answer.target > self.truth(position)


def _answer(plan: FailoverPlan) -> Translation:
    (partition,) = plan.partitions
    return partition.translation


def _late_sync(clusters: Pair, base: int) -> Copied:
    """A paused worker's task, whose work another one has, sends its delayed sync (59, 159) last."""
    copies = [*range(100), *range(60), *range(10, 20)]
    syncs = [(0, 0), (50, 50), (99, 99), (0, 100), (50, 150), (10, 160), (59, 159)]
    return Copied(clusters, base, copies, syncs)


@pytest.mark.parametrize("base", [0, 1000])
@pytest.mark.parametrize("options", [DEFAULT_OPTIONS, SOURCE_GONE], ids=["read", "source gone"])
def test_a_late_sync_hides_no_older_copy(clusters: Pair, base: int, options: PlanOptions) -> None:
    """Records 60 to 99 have only their first copies, at 60 to 99."""
    world = _late_sync(clusters, base)
    for position in (30, 60, 80, 99, 100):
        plan = world.plan(position, committed=19, options=options)
        assert not world.loses(plan, position), position


@pytest.mark.parametrize("base", [0, 50, 1000])
@pytest.mark.parametrize("left", [((40, 119),), ((30, 109), (40, 119))], ids=["one", "two"])
def test_compacted_syncs_prove_nothing_in_the_midst_of_a_second_copy(
    clusters: Pair, base: int, left: Sequence[tuple[int, int]]
) -> None:
    """MirrorMaker 2 was killed after 100 records and has copied 21 to 40 again.

    Connect has not committed the source's end, so a planned failover waits; a plan that is made
    all the same loses nothing.
    """
    copies = [*range(100), *range(21, 41)]
    world = Copied(clusters, base, copies, left, compacted=12)
    for position in (35, 40, 60):
        assert world.waits(position, committed=40), position
        assert not world.loses(world.plan(position, committed=40), position), position


@pytest.mark.parametrize("base", [0, 50, 1000])
@pytest.mark.parametrize("gone", [False, True], ids=["all up", "source gone"])
def test_an_archive_that_began_late_proves_nothing_in_the_midst_of_a_second_copy(
    clusters: Pair, tmp_path: Path, base: int, *, gone: bool
) -> None:
    """Its first sync was written during the second copy: it loses nothing, or says not ready."""
    copies = [*range(100), *range(21, 41)]
    world = Copied(clusters, base, copies, ((30, 109), (40, 119)), compacted=12)
    archive = SyncArchive(str(tmp_path / "archive"))
    archive_syncs(clusters.pair, archive)
    options = PlanOptions(read_source=not gone, archive=archive)
    for position in (35, 40, 60):
        plan = world.plan(position, committed=None if gone else 40, options=options)
        assert _answer(plan).status is not Status.EXACT, position
        may_lose = gone and plan.verdict is not Verdict.READY
        assert may_lose or not world.loses(plan, position), position


@pytest.mark.parametrize("q", [12, 14])
def test_the_way_home_without_the_first_plan_is_refused(clusters: Pair, q: int) -> None:
    """The job may have begun at q: nothing below it is known to be read. With the plan it is.

    MirrorMaker 2 copied records 0 to 11, was killed, and copied 0 to 14 again. The job was moved
    from 0 to 12.
    """
    clusters.write("orders", range(100))
    clusters.copy("orders", [*range(12), *range(15)])
    syncs = ((0, 0), (4, 4), (8, 8), (0, 12), (4, 16), (8, 20), (12, 24), (14, 26))
    clusters.sync("orders", *syncs)
    first = plan_failover(clusters.pair, {"orders": {0: 0}})
    assert _answer(first).target == 12
    back = clusters.pair.exchanged()
    home = plan_failover(back, {"orders": {0: q}}, options=PlanOptions(first_plan=first))
    assert (_answer(home).target or 0) <= q - 12
    alone = _answer(plan_failover(back, {"orders": {0: q}}))
    assert alone.status is Status.REFUSED


@pytest.mark.parametrize("base", [0, 500])
def test_a_truncated_target_is_waited_for(clusters: Pair, base: int) -> None:
    """The target lost 95 to 99 in an unclean leader election; 10 to 20 were copied again there."""
    copies = [*range(95), *range(10, 21)]
    syncs = [(0, 0), (50, 50), (99, 99), (10, 95), (20, 105)]
    world = Copied(clusters, base, copies, syncs)
    for position in (15, 20, 30, 60):
        assert world.waits(position, committed=20), position
        assert not world.loses(world.plan(position, committed=20), position), position


def _again(world: Copied, answer: Translation, position: int) -> int:
    """Return how many records from before the position the job gets again."""
    assert answer.target is not None
    return sum(record < position for record in world.copies[answer.target : world.truth(position)])


@pytest.mark.parametrize("position", [30, 33])
def test_a_surplus_is_in_the_upper_bound(clusters: Pair, position: int) -> None:
    """Records 15 to 35 were copied twice: the target grew by 21 more than the source."""
    copies = [*range(36), *range(15, 100)]
    syncs = [(0, 0), (11, 11), (22, 22), (33, 33), (48, 69), (99, 120)]
    world = Copied(clusters, 0, copies, syncs)
    options = PlanOptions(read_source=False, sole_writer=True)
    _check_reread(world, world.plan(position, options=options), position)


@pytest.mark.parametrize("position", [15, 20])
def test_the_unread_tail_is_in_the_upper_bound(clusters: Pair, position: int) -> None:
    """Records 1 to 20 were copied again after the last sync, and the target ends 20 above it."""
    copies = [*range(21), *range(1, 21)]
    world = Copied(clusters, 0, copies, [(0, 0), (11, 11), (20, 20)])
    _check_reread(world, world.plan(position, committed=0), position)


def _check_reread(world: Copied, plan: FailoverPlan, position: int) -> None:
    answer = _answer(plan)
    again = _again(world, answer, position)
    assert answer.max_reread is None or answer.max_reread >= again
    assert answer.status is not Status.EXACT or not again


def _behind_a_gap(clusters: Pair) -> Copied:
    """A filter dropped 1 to 3. The second copy has come to 4, and its only sync rises."""
    return Copied(clusters, 0, [0, 4, 5, 6, 7, 4], [(0, 0), (4, 5)])


@pytest.mark.parametrize("committed", [None, 0, 4])
@pytest.mark.parametrize("position", [5, 6, 7])
def test_a_gap_hides_no_second_copy_where_records_are_read(
    clusters: Pair, committed: int | None, position: int
) -> None:
    """Records 5 to 7 have only their first copies, which the clusters show."""
    world = _behind_a_gap(clusters)
    assert not world.loses(world.plan(position, committed=committed), position)


@pytest.mark.parametrize("position", [5, 6, 7])
def test_a_gap_proves_nothing_of_a_lost_source(clusters: Pair, position: int) -> None:
    """By the syncs, record 4 was copied once: the answer is not exact."""
    world = _behind_a_gap(clusters)
    assert _answer(world.plan(position, options=SOURCE_GONE)).status is not Status.EXACT


def test_a_wait_ends_where_a_range_was_skipped(clusters: Pair) -> None:
    """Records 10 to 19 may lie before the first known sync, or were never copied: no wait shows it.

    MirrorMaker 2 has come to the source's end: only a plan, which reads records, shows more.
    """
    first = RECORDS - 30
    copies = [0] * 5 + [*range(first, first + 10), *range(first + 20, RECORDS)]
    syncs = [(first + up, down) for up, down in ((0, 5), (4, 9), (9, 14), (20, 15), (29, 24))]
    world = Copied(clusters, 0, copies, syncs)
    for committed in (None, RECORDS - 1):
        assert not world.waits(first + 4, committed=committed), committed
    assert not world.loses(world.plan(first + 4), first + 4)


def test_a_wait_goes_on_while_older_copies_count(clusters: Pair) -> None:
    """After a rewind to 50, MirrorMaker 2 has not come to the records 60 to 99 again."""
    world = Copied(clusters, 0, [*range(100), *range(50, 60)], [(0, 0), (99, 99), (50, 100)])
    for committed in (None, 59):
        assert world.waits(60, committed=committed), committed


def test_a_source_with_holes_hides_no_second_copy(clusters: Pair) -> None:
    """Half of the source's offsets are markers, so the target grows by less than the source.

    MirrorMaker 2 copied the records 0 to 15, was killed, and copied 4 to 22. Its last sync is older
    than the kill: only the records after it show that the answer is not the first copy.
    """
    records, copies = range(23), [*range(16), *range(4, 23)]
    clusters.source.create_topic("orders", partitions=4)
    for record in records:
        clusters.write("orders", [record])
        clusters.source.skip_offsets(*ORDERS, 1)
    clusters.copy("orders", copies)
    clusters.sync("orders", (28, 14), (30, 15))
    pair = replace(clusters.pair, connect=connect({ORDERS: 2 * len(records) - 1}))
    answer = _answer(plan_failover(pair, {"orders": {0: 7}}))
    assert (answer.status, answer.target) == (Status.EXACT, 16)
