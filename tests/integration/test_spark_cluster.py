"""The example job on a Spark standalone cluster, submitted and stopped as Airflow does."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from stack.mirror import Stack
from stack.process import Program
from stack.spark_cluster import SparkCluster
from stack.waiting import wait_until
from tests.integration.spark_jobs import (
    LOOPBACK,
    PYTHON,
    ROOT,
    before,
    busy_topic,
    example_arguments,
    kafka_jars,
    lineage,
    run_to_the_end,
    submit,
)
from tests.unit.operators.worker import Worker

# Starting the cluster, the stack and a job is a part of each test's time.
pytestmark = pytest.mark.long

CONNECTION = "spark_cluster"
MEMORY = {"spark.driver.memory": "512m", "spark.executor.memory": "512m"}
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("spark"), progress=print) as running:
        yield running


@pytest.fixture(autouse=True)
def connection(cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Airflow know the cluster, and find what it runs."""
    _define(monkeypatch, cluster)
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")


def _define(monkeypatch: pytest.MonkeyPatch, cluster: SparkCluster, **extra: Any) -> None:
    fields = {"conn_type": "spark", "host": cluster.url, "extra": extra}
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(fields))


@pytest.fixture
def folder(stack: Stack, tmp_path: Path) -> Iterator[Path]:
    """The folder of the example job, which has committed a batch on the cluster."""
    with busy_topic(stack) as topic:
        program = _job(stack, topic, tmp_path)
        try:
            program.start()
            program.wait_ready((tmp_path / "checkpoint" / "commits" / "0").exists)
            yield tmp_path
        finally:
            program.kill()


def _job(stack: Stack, topic: str, folder: Path) -> Program:
    hook = SparkSubmitHook(
        conn_id=CONNECTION,
        conf=LOOPBACK | MEMORY,
        jars=kafka_jars(),
        py_files=py_files(),
        application_args=example_arguments(stack, topic, folder),
    )
    application = str(ROOT / "dags" / "jobs" / "orders_stream.py")
    command = hook._build_spark_submit_command(application)  # noqa: SLF001 - what submit() runs
    return submit("the job", command, folder, PYTHON)


def _stop(worker: Worker, folder: Path, *, kill_after: float | None = None) -> dict[str, Any]:
    """Run the operator to its end; return its XCom."""
    home = Home(cluster="east", folder=str(folder), spark_conn_id=CONNECTION)
    with DAG("failover", schedule=None):
        task = StopSparkStreamingOperator(
            task_id="stop",
            deferrable=True,
            job=SparkJob(name="orders", homes=(home,), kill_after=kill_after),
            poll_interval=0.5,
        )
    return run_to_the_end(worker, task)


def _active(cluster: SparkCluster) -> list[dict[str, Any]]:
    """Return the applications that run, as the master has them."""
    active: list[dict[str, Any]] = httpx.get(f"{cluster.page}/json/").json()["activeapps"]
    return active


def test_a_job_on_the_cluster_stops_between_batches(
    cluster: SparkCluster, folder: Path, worker: Worker
) -> None:
    """A job with executors on workers is stopped by the operator; its sink has each record once."""
    (application,) = _active(cluster)
    assert application["cores"] == 2
    result = _stop(worker, folder)

    checkpoint = read_checkpoint(str(folder / "checkpoint"))
    assert (result["application_id"], result["clean"]) == (application["id"], True)
    assert (result["proof"], result["batch_id"]) == ("acknowledged", checkpoint.committed_batch)
    assert checkpoint.pending is None
    assert sorted(lineage(folder / "output")) == sorted(before(checkpoint.positions))
    wait_until(lambda: not _active(cluster), "the master to see its end")


def test_a_driver_in_client_mode_is_killed_here(
    cluster: SparkCluster, folder: Path, worker: Worker
) -> None:
    """The machine of a client-mode driver kills it, and its executors end with it."""
    result = _stop(worker, folder, kill_after=0.0)

    assert (result["proof"], result["clean"]) == ("killed", False)
    wait_until(lambda: not _active(cluster), "the master to see its end")
    checkpoint = read_checkpoint(str(folder / "checkpoint"))
    assert before(checkpoint.positions) <= set(lineage(folder / "output"))
