"""A kept plan against the clusters of now."""

from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, SyncsLocation
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.kept_plan import check_kept_plan
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import simulated_mm2
from tests.support.pairs import STOPPED_CONNECT, Pair, connect

POSITIONS = {"orders": {0: 6}}


@pytest.fixture
def clusters() -> Pair:
    """The syncs lie on the target; of source offset 6 only the content tells, or nothing."""
    pair = Pair()
    pair.write("orders", range(10))
    pair.copy("orders", range(-5, 10))
    pair.sync("orders", (0, 5), (4, 9), (9, 14))
    return pair


def _copy_again(clusters: Pair) -> None:
    clusters.copy("orders", range(10))
    clusters.sync("orders", (0, 15), (4, 19), (9, 24))


def _check(plan: FailoverPlan, pair: ClusterPair, tmp_path: Path, ids: PairIds) -> None:
    path = UPath(tmp_path / "plan.json")
    check_kept_plan(plan, path, pair, positions=POSITIONS, pending=None, ids=ids)


def test_without_the_source_a_less_close_answer_passes_and_a_reset_shows(
    clusters: Pair, tmp_path: Path
) -> None:
    """By content the plan is exact; without the source the syncs bound it, and tell of a reset."""
    plan = plan_failover(clusters.pair, POSITIONS)
    (only,) = plan.partitions
    assert (only.translation.low, only.translation.high) == (11, 11)
    clusters.source.is_running = False
    ids = read_ids(clusters.pair, POSITIONS, ask_source=False)
    _check(plan, clusters.pair, tmp_path, ids)
    _copy_again(clusters)
    with pytest.raises(PlanError, match=r"plan\.json: orders\[0\]: starts at 11 for position 6: "):
        _check(plan, clusters.pair, tmp_path, ids)


@pytest.mark.parametrize("max_evidence_bytes", [0, 2**20])
def test_no_records_are_read_where_the_plan_has_read_none(
    clusters: Pair, tmp_path: Path, max_evidence_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not read the topics goes by the plan all the same; the syncs show a reset."""
    options = PlanOptions(max_evidence_bytes=max_evidence_bytes)
    plan = plan_failover(clusters.pair, POSITIONS, options=options)
    ids = read_ids(clusters.pair, POSITIONS, ask_source=True)
    read = []
    module = "airflow_mm2_offsets.planning.plan.EvidenceCollector"
    monkeypatch.setattr(f"{module}.compare_records", lambda each: read.append(each.options))
    _check(plan, clusters.pair, tmp_path, ids)
    assert [bool(each.max_evidence_bytes) for each in read] == [bool(max_evidence_bytes)]
    _copy_again(clusters)
    with pytest.raises(PlanError, match="has gone back to 0 on the source"):
        _check(plan, clusters.pair, tmp_path, ids)


def test_a_connect_that_is_down_does_not_hold_the_job_back(clusters: Pair, tmp_path: Path) -> None:
    """Nothing is asked of it."""
    plan = plan_failover(clusters.pair, POSITIONS)
    ids = read_ids(clusters.pair, POSITIONS, ask_source=True)
    _check(plan, replace(clusters.pair, connect=STOPPED_CONNECT.client()), tmp_path, ids)


def test_a_plan_of_the_archive_alone_asks_for_no_syncs(
    clusters: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic was gone then; the log says that nothing is compared."""
    plan = replace(plan_failover(clusters.pair, POSITIONS), syncs_as_of="2026-11-21T08:00:00+00:00")
    _copy_again(clusters)
    with caplog.at_level("WARNING"):
        _check(plan, clusters.pair, tmp_path, read_ids(clusters.pair, POSITIONS, ask_source=True))
    assert "of an archive alone" in caplog.text


def test_a_source_that_is_silent_is_not_asked_for_its_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ids were waited for already; the syncs that lie there would be waited for again."""
    with simulated_mm2(syncs_location=SyncsLocation.SOURCE) as simulation:
        simulation.source.produce("orders", 0, [b"%d" % number for number in range(10)])
        simulation.mirror()
        pair = simulation.pair
        plan = plan_failover(pair, POSITIONS)
        ids = read_ids(pair, POSITIONS, ask_source=False)
        asked: list[bool] = []
        monkeypatch.setattr(simulation.source, "before_answer", lambda: asked.append(True))
        _check(plan, pair, tmp_path, ids)
        assert not asked


@pytest.mark.parametrize("connect_answers", [True, False])
def test_records_that_are_passed_over_after_the_plan_was_made(
    tmp_path: Path,
    connect_answers: bool,  # noqa: FBT001
) -> None:
    """An approval took long, and MirrorMaker 2 was set ahead: without Connect nobody can tell."""
    clusters = Pair()
    clusters.write("orders", range(400))
    clusters.copy("orders", range(50))
    clusters.sync("orders", *((number, number) for number in range(50)))
    clusters.pair = replace(clusters.pair, connect=connect())
    plan = plan_failover(clusters.pair, {"orders": {0: 45}})
    ids = read_ids(clusters.pair, plan.source_positions(), ask_source=True)
    path = UPath(tmp_path / "plan.json")
    positions = plan.source_positions()
    check_kept_plan(plan, path, clusters.pair, positions=positions, pending=None, ids=ids)

    clusters.copy("orders", range(150, 400))
    clusters.sync("orders", (150, 50), (399, 299))
    if not connect_answers:
        pair = replace(clusters.pair, connect=STOPPED_CONNECT.client())
        check_kept_plan(plan, path, pair, positions=positions, pending=None, ids=ids)
        return
    with pytest.raises(PlanError, match="passed 100 records over since, from offset 50 to 149"):
        check_kept_plan(plan, path, clusters.pair, positions=positions, pending=None, ids=ids)
