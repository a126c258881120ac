"""Stopping a real Spark job, on real Kafka."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.checkpoint import listing, read_checkpoint
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver, request_stop
from airflow_mm2_offsets.spark.job import py_files
from stack.mirror import Stack
from stack.process import ProgramError
from stack.waiting import WaitTimeoutError, wait_until
from tests.integration.spark_jobs import (
    ROOT,
    START_SECONDS,
    SUBMIT,
    before,
    busy_topic,
    example_arguments,
    lineage,
    run_to_the_end,
    submit,
    submit_locally,
)
from tests.unit.operators.worker import Worker

HEARTBEAT_SECONDS = 2.0
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
    with busy_topic(stack) as name:
        yield name


class Job:
    """The example job under spark-submit."""

    def __init__(self, stack: Stack, topic: str, folder: Path) -> None:
        self.topic = topic
        self.checkpoint = str(folder / "checkpoint")
        self.control = str(folder / "control")
        self.output = folder / "output"
        example = ROOT / "dags" / "jobs" / "orders_stream.py"
        arguments = example_arguments(stack, topic, folder)
        self.program = submit_locally("the job", example, arguments, folder)

    def start(self, *, batches: int) -> None:
        """Start it, and wait until it has committed so many batches."""
        self.program.start()
        commits = Path(self.checkpoint, "commits")
        self.program.wait_ready((commits / str(batches - 1)).exists, seconds=START_SECONDS)

    def rows(self) -> Positions:
        """Count the sink's rows; what is there twice counts twice."""
        return {self.topic: dict(Counter(partition for partition, _ in lineage(self.output)))}


@pytest.fixture
def job(stack: Stack, topic: str, tmp_path: Path) -> Iterator[Job]:
    running = Job(stack, topic, tmp_path)
    try:
        yield running
    finally:
        running.program.kill()


def test_a_job_stops_between_batches_and_proves_it(stack: Stack, job: Job) -> None:
    """Asked mid-stream, it exits 0; its word, its checkpoint and its sink agree to the record."""
    job.start(batches=3)
    driver = read_driver(job.control)
    assert driver is not None
    assert driver.bootstrap_servers == {stack.source}
    assert driver.pid in driver.processes
    assert len(driver.processes) == 2
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
    job.program.wait_end(seconds=START_SECONDS)
    answer = read_acknowledgement(job.control, "stop-1")
    second = read_driver(job.control)
    assert answer is not None
    assert second is not None
    assert (second.query_id, answer.application_id) == (first.query_id, second.application_id)
    assert second.run_id != first.run_id


def test_a_driver_that_died_is_given_up_where_told(job: Job, worker: Worker) -> None:
    """Killed without a word, it is gone once it has been silent; what it had done is in its sink.

    A failover asks, waits and goes on from its checkpoint: only the pending batch comes again.
    """
    job.start(batches=1)
    job.program.kill()
    with DAG("failover", schedule=None):
        stop = StopSparkStreamingOperator(
            task_id="stop",
            control=job.control,
            checkpoint=job.checkpoint,
            still_for=1.0,
            gone_after=2 * HEARTBEAT_SECONDS,
            poll_interval=0.5,
        )
    result = run_to_the_end(worker, stop)
    assert (result["proof"], result["clean"], result["batch_id"]) == ("silent", False, None)
    checkpoint = read_checkpoint(job.checkpoint)
    rows = lineage(job.output)
    assert before(checkpoint.positions) <= set(rows)
    assert len(rows) - len(before(checkpoint.positions)) <= checkpoint.reread


QUERY = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from mm2_stop_control import StopControl

control, checkpoint, kind = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if kind == "hanging":
    spark.conf.set("spark.sql.streaming.stopTimeout", "1s")
rate = spark.readStream.format("rate").load()

def fail(frame, number):
    while not Path(control, "stop-request.json").exists():
        time.sleep(0.1)
    raise ValueError("the sink is full")

def hang(frame, number):
    time.sleep(600)

writers = {
    "steady": rate.writeStream.format("noop"),
    "endless": rate.crossJoin(spark.range(10**13)).writeStream.format("noop"),
    "failing": rate.writeStream.foreachBatch(fail),
    "hanging": rate.writeStream.foreachBatch(hang),
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
        command = [*SUBMIT, "--py-files", py_files(), *arguments]
        self.program = submit("the query", command, folder)


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
    query.program.wait_ready((query.checkpoint / "commits" / "2").exists, seconds=START_SECONDS)
    request_stop(str(query.control), "new")
    query.program.wait_end(seconds=60)

    answer = read_acknowledgement(str(query.control), "new")
    assert answer is not None
    assert (answer.clean, answer.offsets) == (True, {})


@pytest.mark.parametrize("query", ["endless"], indirect=True)
def test_a_batch_that_does_not_end_is_abandoned(query: Query) -> None:
    """After the time it was given the batch is left pending, and the answer says so."""
    query.program.start()
    query.program.wait_ready((query.checkpoint / "offsets" / "1").exists, seconds=START_SECONDS)
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
    query.program.wait_ready((query.control / "driver.json").exists, seconds=START_SECONDS)
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


@pytest.mark.parametrize("query", ["hanging"], indirect=True)
def test_a_batch_that_hangs_ends_with_its_driver(query: Query) -> None:
    """Python code can't be interrupted: the job says so, fails, and takes the code with it."""
    query.program.start()
    query.program.wait_ready((query.checkpoint / "offsets" / "0").exists, seconds=START_SECONDS)
    request_stop(str(query.control), "stop-1")
    with pytest.raises(ProgramError):
        query.program.wait_end(seconds=60)

    answer = read_acknowledgement(str(query.control), "stop-1")
    assert answer is not None
    assert (answer.clean, answer.batch_id) == (False, None)
    assert answer.error is not None
    assert "failed to stop within" in answer.error


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_a_control_location_that_nobody_can_write(query: Query) -> None:
    """A job that could never be stopped ends when it starts, naming the location."""
    query.control.write_text("a file, not a folder")
    query.program.start()
    with pytest.raises(ProgramError):
        query.program.wait_end(seconds=START_SECONDS)
    said = query.program.log.read_text()
    assert "OSError" in said  # apart, for Spark's log may come between
    assert f"The control location {query.control} can't be written" in said
