"""Stopping queries that need no Kafka, and do what few jobs do."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.spark.control import (
    Acknowledgement,
    Driver,
    read_acknowledgement,
    read_driver,
)
from airflow_mm2_offsets.spark.stopping import request_stop
from stack.process import ProgramError
from tests.integration.spark_jobs import submit_locally, submit_without_kafka

OLD_ANSWER = {
    "request_id": "old",
    "application_id": "app",
    "batch_id": None,
    "offsets": None,
    "clean": True,
    "error": None,
}
QUERY = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from airflow_mm2_offsets.job import StopControl

control, checkpoint, kind = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if kind == "hanging":
    spark.conf.set("spark.sql.streaming.stopTimeout", "1s")
# The batches of the others end: on a busy machine they may take a second, and be abandoned.
batch_timeout = 1 if kind in ("endless", "hanging") else 60
stop_control = StopControl(spark, control, interval=0.2, batch_timeout=batch_timeout)
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
stop_control.run(started.start())
"""


class Query:
    """A query that needs no Kafka, with what it does made up for one test."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.control = folder / "control"
        self.checkpoint = folder / "checkpoint"
        script = folder / "query.py"
        script.write_text(QUERY)
        arguments = [str(self.control), str(self.checkpoint), kind]
        self.program = submit_without_kafka("the query", script, arguments, folder)

    def start_and_ask(self, *, when: Path, request_id: str = "stop-1") -> None:
        """Start it, and ask it to stop when a file of its is there."""
        self.program.start()
        self.program.wait_ready(when.exists)
        request_stop(str(self.control), request_id)

    def answer(self, request_id: str = "stop-1") -> Acknowledgement:
        """Return what it has answered; it must have."""
        answer = read_acknowledgement(str(self.control), request_id)
        assert answer is not None
        return answer


@pytest.fixture
def query(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Query]:
    running = Query(tmp_path, request.param)
    try:
        yield running
    finally:
        running.program.kill()


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_an_answered_request_does_not_stop_the_next_run(query: Query) -> None:
    """The files of an earlier stop are ignored; a new request is obeyed."""
    query.control.mkdir()
    (query.control / "stop-request.json").write_text('{"schema_version":1,"request_id":"old"}')
    (query.control / "stopped.json").write_text(json.dumps(OLD_ANSWER))

    query.start_and_ask(when=query.checkpoint / "commits" / "2", request_id="new")
    query.program.wait_end()

    answer = query.answer("new")
    assert (answer.clean, answer.offsets) == (True, {})


@pytest.mark.parametrize("query", ["endless"], indirect=True)
def test_a_batch_that_does_not_end_is_abandoned(query: Query) -> None:
    """After the batch timeout the batch is left pending, and the acknowledgement says so."""
    query.start_and_ask(when=query.checkpoint / "offsets" / "1")
    query.program.wait_end()

    answer = query.answer()
    assert (answer.clean, answer.batch_id, answer.error) == (False, 0, None)
    assert not (query.checkpoint / "commits" / "1").exists()


@pytest.mark.parametrize("query", ["failing"], indirect=True)
def test_a_failing_query_says_why(query: Query) -> None:
    """Its exception ends the driver with an error, and answers the request that was open."""
    query.start_and_ask(when=query.checkpoint / "offsets" / "0")
    with pytest.raises(ProgramError):
        query.program.wait_end()

    answer = query.answer()
    assert not answer.clean
    assert answer.error is not None
    assert "ValueError: the sink is full" in answer.error
    assert "query.py" not in answer.error
    assert "StreamingQueryException" in query.program.log.read_text()


@pytest.mark.parametrize("query", ["hanging"], indirect=True)
def test_a_batch_that_hangs_ends_with_its_driver(query: Query) -> None:
    """Python code can't be interrupted: the job reports it, fails, and ends with that code."""
    query.start_and_ask(when=query.checkpoint / "offsets" / "0")
    with pytest.raises(ProgramError):
        query.program.wait_end()

    answer = query.answer()
    assert (answer.clean, answer.batch_id) == (False, None)
    assert answer.error is not None
    assert "failed to stop within" in answer.error


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_a_control_location_that_can_not_be_written(query: Query) -> None:
    """A job that could never be stopped ends at its start, and names the location."""
    query.control.write_text("a file, not a folder")
    query.program.start()
    with pytest.raises(ProgramError):
        query.program.wait_end()
    said = query.program.log.read_text()
    assert "OSError" in said  # apart, for Spark's log may come between
    assert f"The control location {query.control} can't be read and written" in said


PATTERN = """
import sys
from pyspark.sql import SparkSession
from airflow_mm2_offsets.job import StopControl

control, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
stop_control = StopControl(spark, control, interval=0.2)

def read(**options):
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", **options}
    return spark.readStream.format("kafka").options(**options).load()

both = read(subscribePattern="orders-.*").union(read(subscribe="refunds"))
stop_control.run(both.writeStream.format("noop").option("checkpointLocation", checkpoint).start())
"""


def test_a_job_says_what_it_reads_and_where_it_writes(tmp_path: Path) -> None:
    """Topic pattern and locations are reported before a broker has answered."""
    control, checkpoint, script = (tmp_path / name for name in ("control", "points", "job.py"))
    script.write_text(PATTERN)
    program = submit_locally("the job", script, [str(control), f"{checkpoint}/"], tmp_path)

    def driver() -> Driver | None:
        found = read_driver(str(control))
        return found if found is not None and found.query_id else None

    program.start()
    try:
        program.wait_ready(lambda: driver() is not None)
    finally:
        program.kill()
    found = driver()
    assert found is not None
    assert found.subscribe_patterns == {found.query_id: ("orders-.*",)}
    assert same_folder(UPath(control), found.control)
    assert same_folder(UPath(checkpoint), found.checkpoints[found.query_id])
    assert not same_folder(UPath(checkpoint), found.control)
