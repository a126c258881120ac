"""Stopping a real Spark job, on real Kafka."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.spark.checkpoint import listing, read_checkpoint
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver, request_stop
from airflow_mm2_offsets.spark.job import py_files
from stack import jars
from stack.mirror import Stack
from stack.process import Program, ProgramError
from stack.waiting import WaitTimeoutError, wait_until

ROOT = Path(__file__).parents[2]
PARTITIONS = 3
HEARTBEAT_SECONDS = 2.0
SUBMIT: list[str | Path] = [
    Path(sys.executable).with_name("spark-submit"),
    *("--master", "local[1]", "--conf", "spark.ui.enabled=false"),
    *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
]
PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
OLD_ANSWER = {
    "request_id": "old",
    "application_id": "app",
    "batch_id": None,
    "offsets": None,
    "clean": True,
    "error": None,
}


@pytest.fixture
def topic(stack: Stack) -> Iterator[str]:
    """A topic of three partitions that somebody writes to all the time."""
    name = f"orders-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": stack.source})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(timeout=30)
    enough = Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_write, stack.source, name, enough)
        try:
            yield name
        finally:
            enough.set()
        writing.result()


def _write(servers: str, topic: str, enough: Event) -> None:
    producer = Producer({"bootstrap.servers": servers})
    number = 0
    while not enough.wait(0.01):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
        number += 1
    producer.flush(30)


class Job:
    """The example job under spark-submit."""

    def __init__(self, stack: Stack, topic: str, folder: Path) -> None:
        self.checkpoint = str(folder / "checkpoint")
        self.control = str(folder / "control")
        self.output = folder / "output"
        spark_jars = jars.fetch(ROOT / "build").spark
        self.program = Program(
            "the job",
            [
                *SUBMIT,
                *("--jars", ",".join(map(str, spark_jars)), "--py-files", py_files()),
                ROOT / "dags" / "jobs" / "orders_stream.py",
                *("--bootstrap-servers", stack.source, "--topic", topic, "--trigger", "1"),
                *("--checkpoint", self.checkpoint, "--control", self.control),
                *("--output", str(self.output)),
            ],
            log=folder / "job.log",
            env=PYTHON,
        )

    def start(self, *, batches: int) -> None:
        """Start it, and wait until it has committed so many batches."""
        self.program.start()
        commits = Path(self.checkpoint, "commits")
        self.program.wait_ready((commits / str(batches - 1)).exists, seconds=120)

    def rows(self) -> Positions:
        """Count the sink's rows; what is there twice counts twice."""
        counts: Positions = {}
        for file in self.output.rglob("*.parquet"):
            for row in pq.read_table(file, columns=["topic", "partition"]).to_pylist():
                partitions = counts.setdefault(row["topic"], {})
                partitions[row["partition"]] = partitions.get(row["partition"], 0) + 1
        return counts


@pytest.fixture
def job(stack: Stack, topic: str, tmp_path: Path) -> Iterator[Job]:
    running = Job(stack, topic, tmp_path)
    try:
        yield running
    finally:
        running.program.kill()


def test_a_job_stops_between_batches_and_proves_it(job: Job) -> None:
    """Asked mid-stream, it exits 0; its word, its checkpoint and its sink agree to the record."""
    job.start(batches=3)
    request_stop(job.control, "stop-1")
    job.program.wait_end(seconds=60)

    answer = read_acknowledgement(job.control, "stop-1")
    checkpoint = read_checkpoint(job.checkpoint)
    assert answer is not None
    assert (answer.clean, answer.error) == (True, None)
    assert (checkpoint.pending, checkpoint.reread) == (None, 0)
    assert answer.batch_id == checkpoint.committed_batch
    assert answer.offsets == checkpoint.positions == job.rows()
    assert sum(checkpoint.positions.popitem()[1].values()) > 0
    assert listing(job.checkpoint) == listing(job.checkpoint)


def test_a_killed_job_proves_nothing(job: Job) -> None:
    """After SIGKILL there's no acknowledgement and no heartbeat; the next run answers at once."""
    job.start(batches=1)
    first = read_driver(job.control)
    assert first is not None
    wait_until(lambda: read_driver(job.control) != first, "a heartbeat")
    job.program.kill()
    killed = read_driver(job.control)
    request_stop(job.control, "stop-1")

    with pytest.raises(WaitTimeoutError):
        wait_until(
            lambda: read_driver(job.control) != killed,
            "a heartbeat of the dead",
            seconds=3 * HEARTBEAT_SECONDS,
        )
    assert read_acknowledgement(job.control, "stop-1") is None

    job.program.start()
    job.program.wait_end(seconds=120)
    answer = read_acknowledgement(job.control, "stop-1")
    second = read_driver(job.control)
    assert answer is not None
    assert second is not None
    assert (second.query_id, answer.application_id) == (first.query_id, second.application_id)
    assert second.run_id != first.run_id


QUERY = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from mm2_stop_control import StopControl

control, checkpoint, kind = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rate = spark.readStream.format("rate").load()

def fail(frame, number):
    while not Path(control, "stop-request.json").exists():
        time.sleep(0.1)
    raise ValueError("the sink is full")

writers = {
    "steady": rate.writeStream.format("noop"),
    "endless": rate.crossJoin(spark.range(10**13)).writeStream.format("noop"),
    "failing": rate.writeStream.foreachBatch(fail),
}
started = writers[kind].option("checkpointLocation", checkpoint).trigger(processingTime="1 second")
StopControl(spark, control, interval=0.2, batch_timeout=1).run(started.start())
"""


class Query:
    """A query that needs no Kafka, with what it does made up for one test."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.control = folder / "control"
        self.checkpoint = folder / "checkpoint"
        script = folder / "query.py"
        script.write_text(QUERY)
        arguments: list[str | Path] = [script, self.control, self.checkpoint, kind]
        self.program = Program(
            "the query",
            [*SUBMIT, "--py-files", py_files(), *arguments],
            log=folder / "query.log",
            env=PYTHON,
        )


@pytest.fixture
def query(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Query]:
    running = Query(tmp_path, request.param)
    try:
        yield running
    finally:
        running.program.kill()


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_an_answered_request_does_not_stop_the_next_run(query: Query) -> None:
    """What is left of an earlier stop is passed over; a new request is heeded."""
    query.control.mkdir()
    (query.control / "stop-request.json").write_text('{"schema_version":1,"request_id":"old"}')
    (query.control / "stopped.json").write_text(json.dumps(OLD_ANSWER))

    query.program.start()
    query.program.wait_ready((query.checkpoint / "commits" / "2").exists, seconds=120)
    request_stop(str(query.control), "new")
    query.program.wait_end(seconds=60)

    answer = read_acknowledgement(str(query.control), "new")
    assert answer is not None
    assert (answer.clean, answer.offsets) == (True, {})


@pytest.mark.parametrize("query", ["endless"], indirect=True)
def test_a_batch_that_does_not_end_is_abandoned(query: Query) -> None:
    """After the time it was given the batch is left pending, and the answer says so."""
    query.program.start()
    query.program.wait_ready((query.checkpoint / "offsets" / "1").exists, seconds=120)
    request_stop(str(query.control), "stop-1")
    query.program.wait_end(seconds=60)

    answer = read_acknowledgement(str(query.control), "stop-1")
    assert answer is not None
    assert (answer.clean, answer.batch_id, answer.error) == (False, 0, None)
    assert not (query.checkpoint / "commits" / "1").exists()


@pytest.mark.parametrize("query", ["failing"], indirect=True)
def test_a_failing_query_says_why(query: Query) -> None:
    """Its exception ends the driver with an error, and answers the request that was open."""
    query.program.start()
    query.program.wait_ready((query.control / "driver.json").exists, seconds=120)
    request_stop(str(query.control), "stop-1")
    with pytest.raises(ProgramError):
        query.program.wait_end(seconds=60)

    answer = read_acknowledgement(str(query.control), "stop-1")
    assert answer is not None
    assert not answer.clean
    assert answer.error is not None
    assert "ValueError: the sink is full" in answer.error
    assert "query.py" not in answer.error
    assert "StreamingQueryException" in query.program.log.read_text()


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_a_control_location_that_nobody_can_write(query: Query) -> None:
    """A job that could never be stopped ends when it starts, naming the location."""
    query.control.write_text("a file, not a folder")
    query.program.start()
    with pytest.raises(ProgramError):
        query.program.wait_end(seconds=120)
    assert (
        f"OSError: The control location {query.control} can't be" in query.program.log.read_text()
    )
