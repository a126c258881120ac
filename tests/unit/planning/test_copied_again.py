"""Plans where MirrorMaker 2 has copied records again, or Connect's offsets were altered."""

from dataclasses import replace
from typing import Any

import pytest

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Translation
from airflow_mm2_offsets.kafka.ranges import find_empty
from airflow_mm2_offsets.planning import offset_evidence
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from tests.support.pairs import FILTERING, Pair, connect


def _noted(offset: int) -> ConnectClient:
    return connect({("orders", 0): offset})


def _answer(
    clusters: Pair, position: int, *, noted: ConnectClient | None = None, max_bytes: int = 2**20
) -> Translation:
    plan = plan_failover(
        replace(clusters.pair, connect=noted),
        {"orders": {0: position}},
        options=PlanOptions(max_evidence_bytes=max_bytes),
    )
    (partition,) = plan.partitions
    return partition.translation


@pytest.fixture
def twice(clusters: Pair) -> Pair:
    """Copied twice; the syncs show a rewind and the second life up to 100."""
    clusters.write("orders", range(180))
    clusters.copy("orders", [*range(180), *range(180)])
    clusters.sync("orders", (0, 0), (179, 179), (0, 180), (100, 280))
    return clusters


@pytest.mark.parametrize("position", [0, 1, 50, 100, 101, 150, 178, 179])
def test_copies_that_follow_a_rewind_are_announced(twice: Pair, position: int) -> None:
    """The older copies count, and the job that begins there reads the newer ones again.

    The records after the last sync show that all was copied again, where they are read.
    """
    answer, truth = _answer(twice, position, max_bytes=0), position + 180
    assert answer.low is not None
    assert answer.low <= max(1, position)
    assert answer.high is None or answer.high >= truth
    read = _answer(twice, position)
    assert (read.low, read.high) == (truth, truth)


@pytest.mark.parametrize("position", [0, 1, 50, 100])
def test_connect_tells_that_all_was_copied_again(twice: Pair, position: int) -> None:
    """What it has noted needs no older copy: the newer ones are the truth."""
    answer = _answer(twice, position, noted=_noted(179))
    assert (answer.low, answer.high) == (position + 180, position + 180)


@pytest.mark.parametrize("position", range(50, 60, 2))
def test_a_restart_whose_sync_comes_late_is_read_past(clusters: Pair, position: int) -> None:
    """A filter keeps even records; all up to 90 was copied, then from 50 on again.

    The first sync since is of 70. What was copied once only by then follows behind it: until there
    the target is read.
    """
    clusters.write("orders", range(161))
    clusters.copy("orders", [*range(0, 92, 2), *range(50, 162, 2)])
    since = [(offset, offset // 2 + 21) for offset in range(70, 161, 4)]
    clusters.sync("orders", (0, 0), (40, 20), (60, 30), (80, 40), *since)
    noted = connect(config=FILTERING)
    answer, truth = _answer(clusters, position, noted=noted), position // 2 + 21
    assert (answer.low, answer.high) == (truth, truth)


def test_offsets_put_back_leave_older_copies(clusters: Pair) -> None:
    """Copied, gone back unseen, copied up to 10, and Connect's offsets put back (KIP-875)."""
    clusters.write("orders", range(101))
    clusters.copy("orders", [*range(101), *range(11)])
    clusters.sync("orders", (0, 0), (10, 111))
    answer = _answer(clusters, 50, noted=_noted(100), max_bytes=0)
    assert (answer.target or 0) <= 50


def test_another_writer_s_records_do_not_stand_in_for_what_was_passed_over(
    clusters: Pair,
) -> None:
    """Offsets put back as above, and the target grew all the same: its records tell."""
    clusters.write("orders", range(20))
    clusters.copy("orders", [*range(20), *range(8), *range(1000, 1013)])
    clusters.sync("orders", (0, 0), (16, 16), (0, 20), (4, 24))
    answer = _answer(clusters, 8, noted=_noted(19))
    assert (answer.target or 0) <= 8


@pytest.mark.parametrize("read_source", [True, False])
@pytest.mark.parametrize("noted", [0, 4, None])
@pytest.mark.parametrize("max_bytes", [0, 2**20])
def test_a_low_noted_offset_settles_nothing(
    clusters: Pair, *, read_source: bool, noted: int | None, max_bytes: int
) -> None:
    """All was copied, then 0 to 4 again: the rest exists in older copies alone."""
    clusters.write("orders", range(8))
    clusters.copy("orders", [*range(8), *range(5)])
    clusters.sync("orders", (0, 0), (5, 5), (0, 8))
    pair = replace(clusters.pair, connect=None if noted is None else _noted(noted))
    options = PlanOptions(read_source=read_source, max_evidence_bytes=max_bytes)
    for position, truth in ((3, 5), (5, 5), (6, 6), (7, 7), (8, 13)):
        plan = plan_failover(pair, {"orders": {0: position}}, options=options)
        (partition,) = plan.partitions
        assert (partition.translation.target or 0) <= truth


def test_a_source_without_records_now_had_some(clusters: Pair) -> None:
    """Retention has emptied it: that nothing is there does not say that all was copied."""
    clusters.write("orders", range(180))
    clusters.copy("orders", range(180))
    clusters.sync("orders", (0, 0), (101, 101))
    clusters.source.delete_records("orders", 0, 180)
    assert (_answer(clusters, 120).target or 0) <= 120


def test_retention_may_run_between_two_reads(
    clusters: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is deleted before the source is read is no gap: its first offset is asked afterwards."""
    clusters.write("orders", range(180))
    clusters.copy("orders", range(180))
    clusters.sync("orders", (0, 0), (101, 101))

    def delete_and_find(*given: Any) -> Any:  # noqa: ANN401 - as it is called
        clusters.source.delete_records("orders", 0, 180)
        return find_empty(*given)

    monkeypatch.setattr(offset_evidence, "find_empty", delete_and_find)
    assert (_answer(clusters, 120, max_bytes=0).target or 0) <= 120


def test_deleted_records_beyond_the_noted_offset_were_copied_once(clusters: Pair) -> None:
    """0 to 7 were copied, 2 to 5 again, unseen; 6 and 7 exist in older copies alone."""
    clusters.write("orders", range(8))
    clusters.copy("orders", [*range(8), *range(2, 6)])
    clusters.sync("orders", (0, 0), (5, 11))
    clusters.source.delete_records("orders", 0, 8)
    assert (_answer(clusters, 6, noted=_noted(5)).target or 0) <= 6
