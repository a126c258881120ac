"""A real Spark job that keeps checkpoint and control location on S3, moved to the other cluster."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.migration import migrate_checkpoint
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.offsets import parse_offsets
from stack import jars
from stack.mirror import Stack
from stack.process import Program
from tests.integration.mirrors import Mirror, Writer, mirror, topic_partitions, wait_copied
from tests.integration.s3 import BUCKET, Server
from tests.integration.spark_jobs import (
    ROOT,
    SUBMIT,
    kafka_jars,
    run_to_the_end,
    submit,
)
from tests.unit.operators.worker import Worker

pytestmark = pytest.mark.long  # Spark starts twice


@pytest.fixture
def server(s3_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", s3_server.connection())
    return s3_server


def _submit_with_s3(server: Server) -> list[str | Path]:
    """Return spark-submit with the jars of Kafka and S3A, and what it must know of the server."""
    conf = [f"--conf={key}={value}" for key, value in server.spark_conf().items()]
    lake = ",".join(map(str, jars.fetch_lake(ROOT / "build", progress=print).s3a))
    return [*SUBMIT, *conf, "--jars", f"{kafka_jars()},{lake}", "--py-files", py_files()]


@dataclass(frozen=True, kw_only=True)
class Job:
    """The example job on one cluster; its rows alone are on the local disk."""

    server: Server
    cluster: str
    topic: str
    name: str
    folder: Path

    @property
    def home(self) -> str:
        """The job's folder in Airflow's spelling."""
        return f"s3://lake@{BUCKET}/{self.name}"

    @property
    def checkpoint(self) -> str:
        """Its checkpoint location, likewise."""
        return f"{self.home}/checkpoint"

    def program(self) -> Program:
        command = [
            *_submit_with_s3(self.server),
            *(ROOT / "dags" / "jobs" / "orders_stream.py", "--bootstrap-servers", self.cluster),
            *("--topic", self.topic, "--trigger", "1", "--output", str(self.folder / "output")),
            *("--home", f"s3a://{BUCKET}/{self.name}"),
        ]
        return submit(f"the job on the {self.name}", command, self.folder)

    def has_read(self, mirror: Mirror) -> bool:
        """Tell whether its checkpoint stands at the end of the topic on its cluster."""
        pair, is_on_source = mirror.pair, self.cluster == mirror.stack.source
        cluster = pair.source if is_on_source else pair.target
        watermarks = cluster.watermarks(topic_partitions(self.topic, range(2)))
        try:
            positions = read_checkpoint(storage_path(self.checkpoint)).positions
        except CheckpointError:
            return False
        ends = {number: each.high for (_, number), each in watermarks.items()}
        return positions == {self.topic: ends}

    def numbers(self) -> Counter[bytes]:
        """Count how often each record is in the output."""
        files = sorted((self.folder / "output").glob("*/part-*.parquet"))
        return Counter(
            value.encode()
            for file in files
            for value in pq.read_table(file, columns=["value"]).column("value").to_pylist()
        )


def _run_and_stop(job: Job, made: Mirror, worker: Worker) -> None:
    """Run a job until it has read all there is; stop it as the failover DAG does."""
    program = job.program()
    try:
        program.start()
        program.wait_ready(lambda: job.has_read(made))
        with DAG("failover", schedule=None):
            stop = StopSparkStreamingOperator(
                task_id="stop",
                deferrable=True,
                job={"name": "orders", "homes": {"source": job.home}},
                quiet_period=3.0,
                poll_interval=0.5,
            )
        stopped = run_to_the_end(worker, stop)
        assert (stopped["proof"], stopped["clean"]) == ("acknowledged", True)
        program.wait_end()
    finally:
        program.kill()


def _read(job: Job, worker: Worker) -> Positions:
    with DAG("failover", schedule=None):
        read = ReadSparkCheckpointOperator(task_id="read", checkpoint=job.checkpoint)
    return parse_offsets(run_to_the_end(worker, read)["positions"])


def test_a_job_on_s3_goes_on_where_it_stopped(
    stack: Stack, server: Server, worker: Worker, tmp_path: Path
) -> None:
    """Stop, read, plan and migrate through S3 alone; Spark continues there on the target.

    Every record is in the output once, though offsets differ between the clusters.
    """
    with mirror(stack) as made:
        made.configure()
        topic = made.create_topic(2)
        writer = Writer(made, topic)
        writer.abort({0: 7})
        writer.write({0: 40, 1: 20})
        source, target = (
            Job(server=server, cluster=cluster, topic=topic, name=name, folder=tmp_path)
            for cluster, name in ((stack.source, "source"), (stack.target, "target"))
        )
        _run_and_stop(source, made, worker)
        done = source.numbers()
        assert (done.total(), len(done)) == (60, 60)

        writer.write({0: 30, 1: 10})
        positions = _read(source, worker)
        wait_copied(made.pair, positions)
        plan = plan_failover(made.pair, positions)
        original, copy = (storage_path(each.checkpoint) for each in (source, target))
        migrated = migrate_checkpoint(made.pair, original, copy)
        assert read_checkpoint(copy).positions == plan.target_positions()
        assert plan.target_positions() == {topic: {0: 40, 1: 20}}
        assert positions[topic][0] > 40

        _run_and_stop(target, made, worker)
        again = read_checkpoint(copy)
        assert again.query_id == migrated["query_id"]
        assert again.committed_batch > migrated["committed_batch"]
        numbers = target.numbers()
        assert (numbers.total(), len(numbers)) == (100, 100)


def test_a_file_is_read_while_it_is_replaced(server: Server, tmp_path: Path) -> None:
    """S3A refuses to read the rest of an object from its next version; the job reads it again.

    A driver reads its heartbeat while it writes it: that must not end it, or hide its answer.
    """
    location = f"s3a://{BUCKET}/replaced/control"
    job = Path(__file__).with_name("replaced_file_job.py")
    program = submit("the job", [*_submit_with_s3(server), job, location], tmp_path)
    try:
        program.start()
        program.wait_end()
    finally:
        program.kill()
