"""The two sensors: from execute to the trigger and back, as Airflow does it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, AirflowSensorTimeout

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    NotReplicatedError,
    TargetJobError,
)
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from tests.support.pairs import STOPPED
from tests.unit.operators.clusters import Clusters, define, impatient
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints


def _cycle(
    worker: Worker, task: PollingSensor, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """Defer, run the trigger that the database gives back, and resume."""
    deferred = worker.run(task)
    meanwhile()
    (event,) = events(rebuild(deferred))
    worker.run(task, after=deferred, event=json.loads(json.dumps(event)))


def _replicated(**settings: Any) -> Mm2ReplicatedSensor:
    with DAG("failover", schedule=None):
        return Mm2ReplicatedSensor(
            task_id="wait", **{"timeout": 5, "poke_interval": 0.02, "deferrable": True, **settings}
        )


def _started(**settings: Any) -> SparkStartedSensor:
    with DAG("failover", schedule=None):
        return SparkStartedSensor(
            task_id="wait", **{"timeout": 5, "poke_interval": 0.02, "deferrable": True, **settings}
        )


@pytest.mark.parametrize(
    "positions",
    [
        '{"orders":{"1":3}}',
        {"orders": {"1": "3"}},
        {"orders": {"1": "{{ dag_run.conf.at }}"}},
        "{{ ti.xcom_pull(task_ids='read', key='positions') }}",
    ],
)
def test_what_is_not_copied_is_waited_for(
    worker: Worker,
    clusters: Clusters,
    positions: Any,  # noqa: ANN401 - of many kinds
) -> None:
    """However the positions come, they reach the trigger through Airflow's database."""
    worker.conf = {"at": 3}
    worker.xcoms["read", "positions"] = '{"orders":{"1":3}}'
    task = _replicated(positions=positions, mm2_conn_id="{{ 'mm2_default' }}")

    def copy() -> None:
        clusters.copy_the_rest()
        clusters.sync(3, 3, partition=1)

    _cycle(worker, task, copy)
    assert worker.xcoms["wait", "return_value"].keys() == {"source_ends"}


@pytest.mark.usefixtures("clusters")
def test_what_is_there_already_defers_no_task(worker: Worker, tmp_path: Path) -> None:
    """Airflow may fail a task whose trigger fires at once, before its scheduler has looked."""
    ended = worker.run(_replicated(positions='{"orders":{"0":4}}'))
    assert ended.type == "SucceedTask"
    assert worker.xcoms["wait", "return_value"].keys() == {"source_ends"}
    checkpoints.simple(tmp_path)
    assert worker.run(_started(checkpoint=str(tmp_path))).type == "SucceedTask"
    assert worker.xcoms["wait", "return_value"]["batch_id"] == 1


@pytest.mark.usefixtures("clusters")
def test_what_is_not_copied_is_named(worker: Worker) -> None:
    """The error says how long was waited, for what, and which partition was behind."""
    with pytest.raises(NotReplicatedError) as caught:
        _cycle(worker, _replicated(positions='{"orders":{"0":4,"1":3}}', timeout=0.4))
    text = str(caught.value)
    assert text.startswith("waited 0 s for MirrorMaker 2 to copy everything before the positions: ")
    assert "orders[1] at 3" in text
    assert "orders[0]" not in text


def test_a_cluster_that_stayed_down_is_named(
    worker: Worker, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the cluster that did not answer, and how long the task waited."""
    assert clusters
    impatient(monkeypatch)
    servers = STOPPED.bootstrap_servers
    down = {"bootstrap.servers": servers}
    define(monkeypatch, "kafka_source", conn_type="kafka", extra=down)
    with pytest.raises(NotReplicatedError) as caught:
        _cycle(worker, _replicated(positions='{"orders":{"0":4}}', timeout=0))
    assert f"source cluster (kafka_source) (bootstrap.servers={servers}): did not answer" in str(
        caught.value
    )


def test_a_wrong_connection_ends_the_wait(worker: Worker) -> None:
    """It fails the task without a retry, for a retry would find the same connection."""
    with pytest.raises(ConfigurationError) as caught:
        worker.run(_replicated(positions='{"orders":{"0":4}}'))
    assert isinstance(caught.value, AirflowFailException)
    assert str(caught.value).startswith(
        "waiting for MirrorMaker 2 to copy everything before the positions: connection mm2_default"
    )


def test_the_first_batch_is_waited_for(worker: Worker, tmp_path: Path) -> None:
    """The sensor returns up to where the job has come."""
    worker.conf = {"folder": str(tmp_path)}
    worker.xcoms["translate", "starting_offsets"] = checkpoints.orders(1, 2)
    sensor = _started(
        checkpoint="{{ dag_run.conf.folder }}",
        starting_offsets="{{ ti.xcom_pull(task_ids='translate', key='starting_offsets') }}",
    )
    _cycle(worker, sensor, lambda: checkpoints.simple(tmp_path))
    assert worker.xcoms["wait", "return_value"] == {
        "batch_id": 1,
        "query_id": checkpoints.QUERY_ID,
        "positions": checkpoints.orders(4, 6),
    }


def test_a_job_that_never_starts_fails_the_sensor(worker: Worker, tmp_path: Path) -> None:
    """The error says how long was waited and what of the checkpoint is missing."""
    with pytest.raises(TargetJobError) as caught:
        _cycle(worker, _started(checkpoint=str(tmp_path / "nothing"), timeout=0.05))
    assert isinstance(caught.value, AirflowSensorTimeout)  # Airflow does not begin the wait again
    text = str(caught.value)
    assert text.startswith("waited 0 s for the Spark job to commit its first batch: ")
    assert "nothing/metadata: is missing" in text


def test_a_job_that_began_elsewhere_fails_the_sensor(worker: Worker, tmp_path: Path) -> None:
    """The error is the trigger's, at once."""
    checkpoints.simple(tmp_path)
    with pytest.raises(TargetJobError, match="began at"):
        worker.run(_started(checkpoint=str(tmp_path), starting_offsets=checkpoints.orders(9, 9)))
