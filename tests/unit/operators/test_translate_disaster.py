"""TranslateOffsetsOperator in a disaster: how often the source is asked, and what is compared."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ClusterUnreachableError, HandoverError, PlanError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.ids import read_ids
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.translate_task import plan_of, translate
from tests.unit.operators.worker import Worker

POSITIONS = {"orders": {0: 7}}


@pytest.fixture
def settings(
    all_copied: Clusters, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, Any]:
    """A translation of positions whose ids were noted while the source lived."""
    all_copied.connect(monkeypatch)
    monkeypatch.setattr("airflow_mm2_offsets.planning.lost_parts.PROBE_SECONDS", 0.05)
    pair = Mm2OffsetHook().get_conn()
    archive_syncs(pair, SyncArchive(str(tmp_path / "archive")))
    return {
        "mode": FailoverMode.DISASTER.value,
        "positions": '{"orders":{"0":7}}',
        "clusters": read_ids(pair, POSITIONS, ask_source=True).to_json(),
        "archive": str(tmp_path / "archive"),
        "plan_path": str(tmp_path / "plan.json"),
    }


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


def test_a_dead_source_is_asked_once(
    worker: Worker, all_copied: Clusters, settings: dict[str, Any], waits: Counter[str]
) -> None:
    """For itself and for its syncs topic, at the same time: a new plan, and a kept one."""
    all_copied.source.is_running = False
    once = {"source describe": 1, "source topics": 1}
    worker.run(translate(**settings))
    assert waits == once
    plan = plan_of(worker)
    assert [each.part for each in plan.left_out] == ["source", "syncs topic"]
    waits.clear()
    worker.run(translate(**settings))
    assert waits == once
    assert plan_of(worker) == plan


def test_a_source_that_comes_back_is_seen(
    worker: Worker, all_copied: Clusters, settings: dict[str, Any]
) -> None:
    """The next task asks again: nothing is remembered of its silence."""
    all_copied.source.is_running = False
    worker.run(translate(**{**settings, "plan_path": None}))
    assert plan_of(worker).left_out
    all_copied.source.is_running = True
    worker.run(translate(**{**settings, "plan_path": None}))
    assert plan_of(worker).left_out == ()


@pytest.mark.parametrize("change", ["deleted", "recreated", "recreated, and its leader is gone"])
def test_ids_are_compared_with_all_that_answers(
    worker: Worker, all_copied: Clusters, settings: dict[str, Any], change: str
) -> None:
    """A topic that is gone from a living source is no lost source: the positions are refused."""
    all_copied.source.delete_topic("orders")
    if change != "deleted":
        all_copied.source.produce("orders", 0, [b"other"] * 10)
    if "leader" in change:
        all_copied.source.leaderless = {("orders", 0)}
    with pytest.raises(HandoverError, match=r"clusters\.source\.topic_ids\.orders is .* now"):
        worker.run(translate(**settings))


def test_a_kept_plan_is_compared_with_all_that_answers(
    worker: Worker, all_copied: Clusters, settings: dict[str, Any]
) -> None:
    """A plan of a topic that was recreated since is refused."""
    worker.run(translate(**settings))
    all_copied.source.delete_topic("orders")
    with pytest.raises((HandoverError, PlanError), match=r"clusters\.source\.topic_ids\.orders"):
        worker.run(translate(**settings))
