"""Copies that a plan must not skip: none of these answers lies above the truth."""

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_mm2_offsets.core import Status, Translation
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.ranges import PartitionRange, RangeRecord, read_ranges
from airflow_mm2_offsets.planning import record_evidence
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Record
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP, TargetLog
from tests.support.pairs import Pair


def _answer(clusters: Pair, position: int, **options: Any) -> Translation:
    plan = plan_failover(clusters.pair, {"orders": {0: position}}, options=PlanOptions(**options))
    return plan.partitions[0].translation


def _open_on_target(clusters: Pair, offset: int) -> None:
    log = clusters.target.log("orders", 0)
    assert isinstance(log, TargetLog)
    log.open_from = offset


def _up(number: int, *headers: tuple[str, bytes | None]) -> Record:
    return Record(b"key", b"up", FIRST_TIMESTAMP + number, headers)


@pytest.mark.parametrize("position", [95, 98])
def test_those_of_an_open_transaction(clusters: Pair, position: int) -> None:
    """With exactly-once, MirrorMaker 2's last copies are not delivered until it commits."""
    clusters.write("orders", range(100))
    clusters.copy("orders", range(100))
    clusters.sync("orders", (0, 0), (90, 90))
    _open_on_target(clusters, 95)
    assert _answer(clusters, position).target == 95


def test_those_of_an_open_transaction_after_a_first_sync_that_was_dropped(clusters: Pair) -> None:
    """All from the target's beginning may be copies of any record."""
    clusters.write("orders", range(100))
    clusters.copy("orders", range(100))
    clusters.sync("orders", (50, 50), (90, 90))
    _open_on_target(clusters, 95)
    assert (_answer(clusters, 97).target or 0) <= 95


@pytest.mark.parametrize("position", [40, 60, 75])
def test_those_after_another_writer_s_open_transaction(clusters: Pair, position: int) -> None:
    """It begins between two syncs: the copies after it are there, and are not delivered."""
    clusters.write("orders", range(100))
    clusters.copy("orders", range(100))
    clusters.sync("orders", (0, 0), (20, 20), (90, 90))
    _open_on_target(clusters, 50)
    assert (_answer(clusters, position).target or 0) <= position


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("later", [5, 95])
def test_one_that_a_transform_made_equal(clusters: Pair, later: int, *, changed: bool) -> None:
    """Record 95 has lost its header on the way, and is now what record 5 is."""
    clusters.write("orders", range(5))
    clusters.source.produce("orders", 0, [_up(5)])
    clusters.write("orders", range(6, 95))
    clusters.source.produce("orders", 0, [_up(later, ("trace", b"1"))])
    clusters.write("orders", range(96, 100))
    clusters.copy("orders", range(5))
    clusters.target.produce("orders", 0, [_up(5)])
    clusters.copy("orders", range(6, 95))
    clusters.target.produce("orders", 0, [_up(later)])
    clusters.copy("orders", range(96, 100))
    clusters.target.topics["orders"].log_append_time = later != 5
    clusters.sync("orders", (0, 0), (90, 90))
    assert (_answer(clusters, 95, changed_records=changed).target or 0) <= 95


@pytest.mark.parametrize(("syncs", "deleted", "position"), [((0, 90), 97, 92), ((50, 90), 70, 60)])
def test_those_that_retention_deletes_meanwhile(
    clusters: Pair,
    monkeypatch: pytest.MonkeyPatch,
    syncs: tuple[int, ...],
    deleted: int,
    position: int,
) -> None:
    """They were there when the low offset was read, and gone when the records were."""
    clusters.write("orders", range(100))
    clusters.copy("orders", range(97))
    clusters.sync("orders", *((each, each) for each in syncs))

    def deleting(
        cluster: KafkaCluster, wanted: Mapping[str, PartitionRange], *, max_bytes: int
    ) -> dict[str, list[RangeRecord]]:
        if cluster.name == "target":
            clusters.target.delete_records("orders", 0, deleted)
        return read_ranges(cluster, wanted, max_bytes=max_bytes)

    monkeypatch.setattr(record_evidence, "read_ranges", deleting)
    answer = _answer(clusters, position)
    assert answer.status is Status.REFUSED or (answer.target or 0) <= position


@pytest.mark.parametrize("position", [10, 19])
def test_the_older_copy_of_an_equal_record(clusters: Pair, position: int) -> None:
    """19 is equal to 17, and was not copied again; a marker makes up for its offset."""
    numbers = [*range(19), 17]
    clusters.write("orders", numbers)
    clusters.copy("orders", [*numbers, *range(19)])
    clusters.target.skip_offsets("orders", 0, 1)
    clusters.sync("orders", (0, 0), (16, 16), (0, 20), (4, 24))
    assert (_answer(clusters, position).target or 0) <= 19
