"""TranslateOffsetsOperator in a disaster: how often the source is asked, and what is compared."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import ClusterUnreachableError, HandoverError, PlanError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.mover import Mover


@pytest.fixture
def mover(mover: Mover, monkeypatch: pytest.MonkeyPatch) -> Mover:
    """A job that was stopped while the source lived; the archive has all syncs."""
    monkeypatch.setattr("airflow_mm2_offsets.planning.lost_parts.PROBE_SECONDS", 0.05)
    mover.policy = "disaster"
    mover.more = {"archive": str(mover.folder / "archive")}
    archive = SyncArchive(f"{mover.folder}/archive/{mover.job.mm2_conn_id}")
    archive_syncs(Mm2OffsetHook().get_conn(), archive)
    mover.stop(mover.source.folder)
    return mover


def _plan(mover: Mover) -> FailoverPlan:
    return FailoverPlan.from_json(mover.run(TranslateOffsetsOperator))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each cluster was waited for in vain, by its question."""
    counted: Counter[str] = Counter()

    def count(name: str) -> None:
        ask = getattr(KafkaCluster, name)

        def counting(cluster: KafkaCluster, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any method
            try:
                return ask(cluster, *arguments, **named)
            except ClusterUnreachableError:
                counted[f"{cluster.name.split()[0]} {name}"] += 1
                raise

        monkeypatch.setattr(KafkaCluster, name, counting)

    for name in ("describe", "topics", "topic_names", "leaderless", "watermarks", "offsets_at"):
        count(name)
    return counted


def test_a_dead_source_is_waited_for_once(
    mover: Mover, clusters: Clusters, waits: Counter[str]
) -> None:
    """For itself and for its syncs topic at the same time, by plan and by forecast.

    A retry has the kept plan, compares it, and takes the kept forecast.
    """
    clusters.source.is_running = False
    once = Counter({"source describe": 1, "source topics": 1})
    plan = _plan(mover)
    assert waits == once + once
    assert [each.part for each in plan.left_out] == ["source", "syncs topic"]
    waits.clear()
    assert _plan(mover) == plan
    assert waits == once


def test_a_source_that_comes_back_is_seen(mover: Mover, clusters: Clusters) -> None:
    """The next task asks again: nothing is remembered of its silence."""
    clusters.source.is_running = False
    assert _plan(mover).left_out
    Path(mover.steps.find().noted("plan")).unlink()
    clusters.source.is_running = True
    assert _plan(mover).left_out == ()


@pytest.mark.parametrize("change", ["deleted", "recreated", "recreated, and its leader is gone"])
def test_ids_are_compared_with_all_that_answers(
    mover: Mover, clusters: Clusters, change: str
) -> None:
    """A topic that is gone from a living source is no lost source: the positions are refused."""
    clusters.source.delete_topic("orders")
    if change != "deleted":
        clusters.source.produce("orders", 0, [b"other"] * 10)
    if "leader" in change:
        clusters.source.leaderless = {("orders", 0)}
    with pytest.raises(HandoverError, match=r"clusters\.source\.topic_ids\.orders is .* now"):
        _plan(mover)


def test_a_kept_plan_is_compared_with_all_that_answers(mover: Mover, clusters: Clusters) -> None:
    """A plan of a topic that was recreated since is refused."""
    _plan(mover)
    clusters.source.delete_topic("orders")
    with pytest.raises((HandoverError, PlanError), match=r"clusters\.source\.topic_ids\.orders"):
        _plan(mover)
