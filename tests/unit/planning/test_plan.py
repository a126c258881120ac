"""What a plan reads of the clusters, and what it makes of that."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    Status,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.kafka import clients as kafka_clients
from airflow_mm2_offsets.kafka import drain, ranges
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.ranges import OffsetRange, PartitionRange, RangeRecord
from airflow_mm2_offsets.planning import contradictions, record_evidence, record_ranges
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.testing.logs import SourceLog
from tests.support.pairs import Pair, connect

Reads = dict[str, dict[TopicPartition, OffsetRange]]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Note what each cluster is asked to be read, by its name."""
    noted: Reads = {}
    read = ranges.read_ranges

    def noting(
        cluster: KafkaCluster, wanted: Mapping[Hashable, PartitionRange], **options: Any
    ) -> dict[Hashable, list[RangeRecord]]:
        noted.setdefault(cluster.name, {}).update(wanted.values())
        return read(cluster, wanted, **options)

    monkeypatch.setattr(record_evidence, "read_ranges", noting)
    monkeypatch.setattr(contradictions, "read_ranges", noting)
    return noted


@pytest.fixture
def copied(clusters: Pair) -> Pair:
    """Return clusters where every third record of orders[0] was dropped on the way."""
    clusters.write("orders", range(100))
    clusters.copy("orders", [number for number in range(100) if number % 3])
    clusters.sync("orders", (1, 0), (40, 26), (70, 46), (98, 65))
    clusters.filter()
    return clusters


def _answer(
    pair: ClusterPair, position: int, options: PlanOptions = DEFAULT_OPTIONS
) -> Translation:
    (planned,) = plan_failover(pair, {"orders": {0: position}}, options=options).partitions
    return planned.translation


def test_only_the_stretch_between_the_syncs_is_read(copied: Pair, reads: Reads) -> None:
    """One read on each side finds the record: the answer is exact.

    The source is read from sync to sync; the target one sync further, for as many records may
    have been copied again between the next two.
    """
    answer = _answer(copied.pair, 51)
    assert (answer.status, answer.basis, answer.target) == ("exact", "content", 34)
    assert reads == {
        "source": {("orders", 0): OffsetRange(40, 70)},
        "target": {("orders", 0): OffsetRange(26, 65)},
    }


def test_before_the_first_sync_all_is_read_that_is_held(copied: Pair, reads: Reads) -> None:
    """Where no sync comes before, both sides are read from their beginning to the last sync.

    All that the source holds was copied by then: no copy before the first sync is the only one.
    """
    copied.sync("orders", (61, 40), (199, 132), partition=1)
    copied.write("orders", range(200), 1)
    copied.copy("orders", [number for number in range(200) if number % 3], 1)
    (planned,) = plan_failover(copied.pair, {"orders": {1: 30}}).partitions
    assert (planned.translation.status, planned.translation.target) == ("exact", 20)
    assert reads["source"] == {("orders", 1): OffsetRange(0, 199)}
    assert reads["target"] == {("orders", 1): OffsetRange(0, 132)}


def test_before_a_rewind_both_sides_are_read_up_to_it(clusters: Pair, reads: Reads) -> None:
    """The source is read up to the rewind; the target also where a second one may be hidden."""
    clusters.write("orders", range(120))
    clusters.copy("orders", [*range(101), *range(53, 120)])
    clusters.sync("orders", (0, 0), (100, 100), (53, 101), (119, 167))
    clusters.filter()  # Else a plan looks for records that were never copied.
    answer = _answer(clusters.pair, 30)
    assert (answer.status, answer.basis, answer.target) == ("exact", "content", 30)
    assert reads == {
        "source": {("orders", 0): OffsetRange(0, 53)},
        "target": {("orders", 0): OffsetRange(0, 167)},
    }


@pytest.fixture
def late(clusters: Pair) -> Pair:
    """Return clusters where 50 to 149 were copied again before the first sync shows it."""
    clusters.write("orders", range(401))
    clusters.copy("orders", [*range(201), *range(50, 401)])
    clusters.sync("orders", (0, 0), (100, 100), (200, 200), (150, 301), (400, 551))
    return clusters


@pytest.mark.parametrize(
    ("position", "target"), [(0, 0), (1, 1), (49, 49), (50, 201), (60, 211), (100, 251), (149, 300)]
)
def test_a_late_first_sync_hides_no_copy(late: Pair, position: int, target: int) -> None:
    """What was copied again before the first sync of an epoch is found there."""
    answer = _answer(late.pair, position)
    assert (answer.status, answer.target) == ("exact", target)


@pytest.mark.parametrize(
    "options", [PlanOptions(read_source=False), PlanOptions(max_evidence_bytes=0)]
)
@pytest.mark.parametrize(("position", "low"), [(60, 1), (100, 100), (149, 101)])
def test_a_late_first_sync_is_told_where_nothing_is_read(
    late: Pair, options: PlanOptions, position: int, low: int
) -> None:
    """Without the records the answer says that they may have been copied again."""
    answer = _answer(late.pair, position, options)
    assert (answer.status, answer.low, answer.high) == ("bounded", low, 301)


def test_a_copy_before_a_late_first_sync_is_no_proof_while_the_source_goes_on(
    late: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the source is not read to its end, a second record may be equal to the first."""
    monkeypatch.setattr(record_ranges, "MAX_WINDOW", 350)
    answer = _answer(late.pair, 60)
    assert (answer.status, answer.low, answer.high) == ("bounded", 60, 251)


def test_a_sync_is_looked_for_only_where_it_can_be_again(copied: Pair, reads: Reads) -> None:
    """Of a sync one record is read on either side, and where it can be again.

    The same of the oldest sync, after that of the position.
    """
    assert _answer(copied.pair, 98).basis is Basis.SYNC
    assert reads == {
        "source": {("orders", 0): OffsetRange(1, 1)},
        "target": {("orders", 0): OffsetRange(0, 0)},
    }
    answer = _answer(copied.pair, 40)
    assert (answer.status, answer.basis, answer.target) == ("exact", "sync", 26)
    assert reads == {
        "source": {("orders", 0): OffsetRange(40, 40)},
        "target": {("orders", 0): OffsetRange(26, 46)},
    }


@pytest.mark.parametrize("most", [20, 30])
def test_a_wide_stretch_stays_open(
    copied: Pair, reads: Reads, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Where either side has too many offsets between the syncs, one sync's record alone is read."""
    monkeypatch.setattr(record_ranges, "MAX_WINDOW", most)
    answer = _answer(copied.pair, 51)
    assert (answer.status, answer.low, answer.high) == ("bounded", 27, 46)
    assert [each.size for side in reads.values() for each in side.values()] == [1, 1]


def test_without_the_source_the_target_is_read_for_its_sole_writer_alone(
    copied: Pair, reads: Reads
) -> None:
    """What the target holds is of use without the source only where records may be counted."""
    assert _answer(copied.pair, 51, PlanOptions(read_source=False)).basis is Basis.BETWEEN_SYNCS
    assert not any(reads.values())
    counted = _answer(copied.pair, 51, PlanOptions(read_source=False, sole_writer=True))
    assert counted.basis is Basis.TARGET_WINDOW
    assert (counted.low, counted.high) == (27, 37)
    assert not reads.get("source")
    assert reads["target"] == {("orders", 0): OffsetRange(26, 46)}


def test_the_end_is_exact_when_connect_has_noted_it(copied: Pair) -> None:
    """The last record was dropped: only Connect can tell that nothing is left to copy."""
    assert _answer(copied.pair, 100).status is Status.BOUNDED
    (behind,) = still_copying(copied.pair, {"orders": {0: 100}})
    assert "if a transform drops the last records" in behind.reason
    noted = replace(copied.pair, connect=connect({("orders", 0): 99}))
    answer = _answer(noted, 100)
    assert (answer.status, answer.basis, answer.target) == ("exact", "drained", 66)
    assert still_copying(noted, {"orders": {0: 100}}) == ()


def test_a_record_after_the_position_is_to_be_copied(copied: Pair) -> None:
    """A position is not the end where the source has a record from it on."""
    copied.write("orders", [100])
    noted = replace(copied.pair, connect=connect({("orders", 0): 99}))
    assert _answer(noted, 100).basis is Basis.AFTER_LAST_SYNC


@pytest.mark.parametrize("stable", [99, 100])
def test_an_open_transaction_may_hold_a_record(
    copied: Pair, monkeypatch: pytest.MonkeyPatch, stable: int
) -> None:
    """Neither before the position nor after it is an open transaction taken for nothing."""
    copied.copy("orders", [100])
    ask = KafkaCluster.watermarks

    def watermarks(
        cluster: KafkaCluster, places: Iterable[TopicPartition], *, isolation: str = ""
    ) -> dict[TopicPartition, Watermarks]:
        found = ask(cluster, places)
        if cluster.name == "target":
            return found
        high = stable if isolation == "read_committed" else 101
        return {place: Watermarks(low=each.low, high=high) for place, each in found.items()}

    monkeypatch.setattr(KafkaCluster, "watermarks", watermarks)
    noted = replace(copied.pair, connect=connect({("orders", 0): 99}))
    assert _answer(noted, 100).basis is Basis.AFTER_LAST_SYNC


def test_a_source_read_ends_where_an_open_transaction_begins(clusters: Pair) -> None:
    """MirrorMaker 2 copies what follows, by its default; the read does not show these records.

    Another writer's record equals the first one. It is no second copy of all from there on.
    """
    clusters.write("orders", range(8))
    clusters.copy("orders", [*range(6), *range(100, 110), 0, 6, 7])
    clusters.sync("orders", (0, 0), (4, 4), (7, 18))
    log = clusters.source.log("orders", 0)
    assert isinstance(log, SourceLog)
    log.open_from = 1
    answer = _answer(clusters.pair, 0)
    assert (answer.status, answer.low, answer.high) == ("bounded", 0, 16)


def test_old_syncs_that_fit_the_log_of_a_recreated_target_are_found(clusters: Pair) -> None:
    """MirrorMaker 2 went on at 16 in the new log, and went back to 8, which a sync shows."""
    clusters.write("orders", range(30))
    clusters.copy("orders", [16, 17, 18, 8, 9, 10])
    clusters.sync("orders", (0, 0), (2, 2), (8, 3))
    refused = _answer(clusters.pair, 16)
    assert (refused.status, refused.basis) == ("refused", "records-differ")
    assert "the records of the sync 0 -> 0" in refused.reason


def test_the_end_is_exact_though_a_restart_may_be_unseen(clusters: Pair) -> None:
    """Where the target grew by more than the source, the wait still comes to an end."""
    clusters.write("orders", range(8))
    clusters.copy("orders", [*range(6), *range(2, 8)])
    clusters.sync("orders", (0, 0), (5, 9), (7, 11))
    lost = PlanOptions(read_source=False)
    assert _answer(clusters.pair, 6, lost).basis is Basis.COPYING_AGAIN
    assert still_copying(clusters.pair, {"orders": {0: 8}}) == ()
    answer = _answer(clusters.pair, 8)
    assert (answer.status, answer.basis, answer.target) == ("exact", "drained", 12)


@pytest.mark.parametrize(
    ("noted", "basis", "target"),
    [
        (6, "copying-again", 1),
        (7, "sync", 9),
        (8, "copying-again", 1),
        (None, "copying-again", 1),
    ],
)
def test_nothing_is_copied_again_once_all_is_noted(
    clusters: Pair, noted: int | None, basis: str, target: int
) -> None:
    """Connect clears what no sync clears, unless its number is of a longer topic of that name.

    So do the records after the last sync, where they are read.
    """
    clusters.write("orders", range(8))
    clusters.copy("orders", [*range(6), *range(2, 8)])
    clusters.sync("orders", (0, 0), (5, 9))
    offsets = {} if noted is None else {("orders", 0): noted}
    pair = replace(clusters.pair, connect=connect(offsets))
    answer = _answer(pair, 5, PlanOptions(max_evidence_bytes=0))
    assert (answer.basis, answer.target) == (basis, target)
    assert _answer(pair, 5).target == 9


def test_an_offset_that_connect_notes_may_have_been_put_back(clusters: Pair) -> None:
    """0 to 4 were copied again, and the offset altered to 19; others wrote 15 records since."""
    clusters.write("orders", range(20))
    clusters.copy("orders", [*range(20), *range(5), *range(100, 115)])
    clusters.sync("orders", (0, 0), (4, 4), (16, 16), (0, 20), (4, 24))
    answer = _answer(replace(clusters.pair, connect=connect({("orders", 0): 19})), 8)
    assert (answer.basis, answer.low) == ("copying-again", 8)


def test_other_records_do_not_stand_in_for_those_of_older_copies(clusters: Pair) -> None:
    """0 was copied again, and 12 to 25 before 6: 1 to 5 have older copies only."""
    clusters.write("orders", range(26))
    clusters.copy("orders", [*range(12), 0, *range(12, 26), 6, 7])
    clusters.sync("orders", (0, 0), (6, 6), (11, 11), (0, 12), (6, 27))
    answer = _answer(replace(clusters.pair, connect=connect({("orders", 0): 25})), 3)
    assert answer.low is not None
    assert answer.low <= 3


@pytest.mark.parametrize("position", [91, 120, 149, 150, 199])
def test_records_settle_a_position_after_the_last_sync(clusters: Pair, position: int) -> None:
    """Of 200 records, every second is filtered out, and the last 50 are yet to be copied."""
    clusters.write("orders", range(200))
    clusters.copy("orders", range(0, 150, 2))
    clusters.sync("orders", (0, 0), (90, 45))
    clusters.filter()
    answer = _answer(clusters.pair, position)
    assert answer.target == (min(position, 150) + 1) // 2
    assert answer.high == (answer.target if position < 149 else None)


def test_an_equal_record_that_can_t_be_read_is_not_skipped(clusters: Pair) -> None:
    """Record 105 is equal to 95, and of an open transaction; compaction has removed 95's copy."""
    clusters.write("orders", [*range(105), 95])
    log = clusters.source.log("orders", 0)
    assert isinstance(log, SourceLog)
    log.open_from = 105
    clusters.copy("orders", range(95))
    clusters.target.skip_offsets("orders", 0, 1)
    clusters.copy("orders", [*range(96, 105), 95])
    clusters.sync("orders", (0, 0), (90, 90))
    answer, truth = _answer(clusters.pair, 105), 105
    assert answer.target is not None
    assert answer.target <= truth


def test_what_came_after_the_noted_record_may_be_copied_again(clusters: Pair) -> None:
    """A restart goes on after what is noted: only a source that ends there rules it out."""
    clusters.write("orders", range(9))
    clusters.copy("orders", [*range(6), *range(2, 8)])
    clusters.sync("orders", (0, 0), (5, 9), (7, 11))
    noted = replace(clusters.pair, connect=connect({("orders", 0): 7}))
    answer, truth = _answer(noted, 6), 10
    assert (answer.status, answer.low, answer.high) == (Status.BOUNDED, 2, truth + 1)


def test_partitions_without_a_record_need_no_sync(copied: Pair) -> None:
    """A partition that never held a record continues at the target's end."""
    plan = plan_failover(copied.pair, {"orders": {1: 0, 2: 0}})
    assert {each.translation.basis for each in plan.partitions} == {Basis.DRAINED}
    assert plan.target_positions() == {"orders": {1: 0, 2: 0}}


@pytest.mark.parametrize("position", [50, 99, 100])
def test_many_topics_are_read_at_once(
    clusters: Pair, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    """However many topics a job reads, a plan opens a handful of consumers."""
    topics = [f"topic-{number}" for number in range(20)]
    for topic in topics:
        clusters.write(topic, range(100))
        clusters.copy(topic, range(100))
        clusters.sync(topic, (0, 0), (90, 90))
    opened, make_consumer = [], kafka_clients.make_consumer

    def counting(*args: object, **options: object) -> object:
        opened.append(args)
        return make_consumer(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(drain, "make_consumer", counting)
    plan = plan_failover(clusters.pair, {topic: {0: position} for topic in topics})
    assert plan.target_positions()
    # Two for the sync at the position, two for the oldest one, two for the end, two for the
    # windows, and two to see whether all was copied from there on.
    assert len(opened) <= 10


def test_a_plan_asks_connect_for_its_connector_once(copied: Pair) -> None:
    """Its configuration and its offsets are of one connector, looked for once."""
    answering = connect({("orders", 0): 99})
    asked: list[str] = []

    async def note(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        assert answering.transport is not None
        return await answering.transport.handle_async_request(request)

    noted = replace(answering, url="http://noted:8083", transport=httpx.MockTransport(note))
    assert _answer(replace(copied.pair, connect=noted), 100).basis is Basis.DRAINED
    assert asked.count("/connectors") == 1
    assert "/connectors/mirror/offsets" in asked


def test_the_target_is_read_up_to_where_nothing_is_in_doubt(clusters: Pair) -> None:
    """A sync that the second pass lost leaves a range open that lies behind the last duplicate."""
    first, second = ([n for n in range(*ends) if n % 3] for ends in ((0, 90), (40, 200)))
    clusters.write("orders", range(200))
    clusters.copy("orders", [*first, *second])
    again = len(first)
    clusters.sync("orders", *((n, first.index(n)) for n in (1, 10, 34, 40, 52, 61, 70, 88)))
    clusters.sync(
        "orders", *((n, again + second.index(n)) for n in (40, 52, 70, 88, 100, 121, 148, 199))
    )
    clusters.filter()
    answer = _answer(clusters.pair, 36)
    assert (answer.status, answer.target) == ("exact", first.index(37))
