"""MigrateSparkCheckpointOperator."""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    HandoverError,
    NotReadyError,
    TranslationRefusedError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.operators.migrate import MigrateSparkCheckpointOperator
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker


@pytest.fixture(autouse=True)
def copied(clusters: Clusters) -> Clusters:
    """Clusters of which every partition has a sync at its beginning."""
    clusters.copy_the_rest()
    return clusters


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "source", 4, 0, 0, 0)


def _migrate(job: Job, **settings: Any) -> MigrateSparkCheckpointOperator:
    arguments = {
        "checkpoint": str(job.checkpoint),
        "target_checkpoint": str(job.folder.parent / "target" / "{{ run_id }}"),
        **settings,
    }
    with DAG("failover", schedule=None):
        return MigrateSparkCheckpointOperator(task_id="migrate", **arguments)


def test_the_copy_goes_on_where_the_job_stopped(worker: Worker, job: Job) -> None:
    """The checkpoint is translated; report, summary and topics are pushed; a retry agrees."""
    worker.run(_migrate(job))
    copy = read_checkpoint(str(job.folder.parent / "target" / "manual__1"))
    assert copy.positions == {"orders": {0: 9, 1: 0, 2: 0, 3: 0}}
    pushed = dict(worker.xcoms)
    done = pushed["migrate", "return_value"]
    assert (done["query_id"], done["committed_batch"]) == (copy.query_id, 0)
    assert pushed["migrate", "target_topics"] == "orders"
    assert pushed["migrate", "committed_batch"] == 0
    assert pushed["migrate", "summary"].startswith("MIGRATED: query ")
    assert "orders[0] at 4" in pushed["migrate", "summary"]
    worker.xcoms.clear()
    worker.run(_migrate(job))
    assert worker.xcoms == pushed


def test_what_is_not_exact_needs_a_word(worker: Worker, tmp_path: Path) -> None:
    """Bounds are refused unless allowed; the report then says how much may count twice."""
    job = Job(tmp_path / "source", 7, 0, 0, 0)
    blind = {"read_source": False, "max_evidence_bytes": 0}
    with pytest.raises(TranslationRefusedError, match=r"orders\[0\] at 7: bounded"):
        worker.run(_migrate(job, options=blind))
    assert not worker.results
    worker.run(_migrate(job, options=blind, allow=["bounded"]))
    assert worker.xcoms["migrate", "return_value"]["max_reread"] > 0
    assert "lower bounds" in worker.xcoms["migrate", "summary"]


def test_a_sink_that_is_further_is_refused(worker: Worker, job: Job, tmp_path: Path) -> None:
    """An older copy of the checkpoint begins with batches that the sink has: it drops as many."""
    log = tmp_path / "output" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "0").write_text("v1")
    (log / "1").write_text("v1")
    sink = str(log.parent)
    with pytest.raises(
        NotReadyError, match="goes on at batch 1, and Spark drops all up to that one"
    ):
        worker.run(_migrate(job, sink=sink))
    assert not (tmp_path / "target").exists()
    (log / "1").unlink()
    assert worker.run(_migrate(job, sink=sink)).type == "SucceedTask"


def test_topics_that_match_the_job_s_pattern(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pattern of the job is compared with the target's topics."""
    with pytest.raises(TranslationRefusedError, match="does not match orders, which the"):
        worker.run(_migrate(job, subscribe_pattern="refunds"))
    names = frozenset({"orders", "orders-eu"})
    monkeypatch.setattr(KafkaCluster, "topic_names", lambda _: names)
    # The job says its own in its control location; the user's word comes first.
    driver = json.loads((job.control / "driver.json").read_text())
    job.beat(1, queries=[{**driver["queries"][0], "subscribe_patterns": [".*"]}])
    control = str(job.control)
    with pytest.raises(
        TranslationRefusedError, match=r"the job's subscribePattern .* matches orders-eu "
    ):
        worker.run(_migrate(job, control=control))
    worker.run(_migrate(job, control=control, subscribe_pattern="^orders$"))
    assert "does not know" not in worker.xcoms["migrate", "summary"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"allow": ["bound"]}, "allow names bound; give some of bounded, new_partitions"),
        ({"sink": {"table": "t"}}, "sink has table; give a location"),
        ({"options": {"give_upp": 1}}, "give_up"),
    ],
)
def test_a_misspelt_word_is_refused(
    worker: Worker, job: Job, settings: dict[str, Any], problem: str
) -> None:
    """Before anything is read."""
    with pytest.raises(ConfigurationError, match=problem):
        worker.run(_migrate(job, **settings))


def test_a_place_that_is_taken(worker: Worker, job: Job) -> None:
    """Another checkpoint stays as it is."""
    taken = Job(job.folder.parent / "other", 1)
    with pytest.raises(CheckpointError, match="holds a checkpoint that no migration wrote"):
        worker.run(_migrate(job, target_checkpoint=str(taken.checkpoint)))
    assert read_checkpoint(str(taken.checkpoint)).positions == {"orders": {0: 1}}


def test_clusters_of_other_ids_are_not_migrated_to(
    worker: Worker, job: Job, copied: Clusters
) -> None:
    """The ids from when the positions were read are compared before anything is copied."""
    now = {"source": copied.source.cluster_id, "target": copied.target.cluster_id}
    clusters = {side: {"cluster_id": each, "topic_ids": {}} for side, each in now.items()}
    clusters["target"]["cluster_id"] = "another"
    with pytest.raises(HandoverError, match=r"clusters\.target\.cluster_id is .* was 'another'"):
        worker.run(_migrate(job, clusters=clusters))
    assert not (job.folder.parent / "target").exists()
    clusters["target"]["cluster_id"] = now["target"]
    worker.run(_migrate(job, clusters=clusters))
    assert ("migrate", "return_value") in worker.xcoms
