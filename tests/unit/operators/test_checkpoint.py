"""ReadSparkCheckpointOperator."""

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints


def _read(checkpoint: str = "{{ dag_run.conf.checkpoint }}") -> ReadSparkCheckpointOperator:
    with DAG("failover", schedule=None):
        return ReadSparkCheckpointOperator(task_id="read", checkpoint=checkpoint)


def test_what_is_read_is_pushed_one_by_one(worker: Worker, tmp_path: Path) -> None:
    """Positions are Spark's text; each result is an XCom, and all are the return value."""
    checkpoints.simple(tmp_path, offsets__2=checkpoints.batch(checkpoints.orders(9, 7)))
    worker.conf = {"checkpoint": str(tmp_path)}
    worker.run(_read())
    pushed = {key: value for (_, key), value in worker.xcoms.items()}
    expected = {
        "positions": '{"orders":{"0":4,"1":6}}',
        "pending": '{"orders":{"0":9,"1":7}}',
        "read_until": '{"orders":{"0":9,"1":7}}',
        "committed_batch": 1,
        "pending_batch": 2,
        "reread": 6,
        "query_id": checkpoints.QUERY_ID,
        "driver_run_id": None,
        "heartbeat": None,
        "clusters": None,
        "topics": "orders",
        "as_of": None,
        "origin": "checkpoint",
    }
    assert pushed.pop("return_value") == expected
    assert pushed == expected


def test_the_driver_that_ran_last_is_noted(worker: Worker, tmp_path: Path) -> None:
    """Who finds the same heartbeat again knows that no driver has run since."""
    job = Job(tmp_path, 4)
    job.beat(17, run_id="r2")
    with DAG("failover", schedule=None):
        task = ReadSparkCheckpointOperator(
            task_id="read", checkpoint=str(job.checkpoint), control=str(job.control)
        )
    worker.run(task)
    assert worker.xcoms["read", "driver_run_id"] == "r2"
    assert worker.xcoms["read", "heartbeat"] == 17


def test_nothing_pending_is_nothing(worker: Worker, tmp_path: Path) -> None:
    """A job that stopped between two batches has no pending positions."""
    worker.conf = {"checkpoint": str(checkpoints.simple(tmp_path))}
    worker.run(_read())
    assert worker.xcoms["read", "pending"] is None
    assert worker.xcoms["read", "reread"] == 0


def test_a_checkpoint_that_is_missing_is_named(worker: Worker, tmp_path: Path) -> None:
    """The error names the place; nothing is pushed."""
    worker.conf = {"checkpoint": str(tmp_path / "nothing")}
    with pytest.raises(CheckpointError, match=r"nothing/metadata: is missing"):
        worker.run(_read())
    assert not worker.results


def test_a_storage_that_nobody_knows_is_named(worker: Worker) -> None:
    """A location of an unknown kind is an error of this package, with the location."""
    with pytest.raises(ConfigurationError, match=r"^nosuch:/+bucket/checkpoint is out of reach"):
        worker.run(_read("nosuch://bucket/checkpoint"))
