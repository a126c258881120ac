"""Stopping queries that need no Kafka, and do what few jobs do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.spark.control import Driver, read_driver
from stack.process import ProgramError
from tests.integration.spark_jobs import submit_locally, submit_without_kafka
from tests.support.stop_step import StopStep

QUERY = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from airflow_mm2_offsets.job import StopControl

home, kind = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if kind == "hanging":
    spark.conf.set("spark.sql.streaming.stopTimeout", "1s")
# The batches of the others end: on a busy machine they may take a second, and be abandoned.
batch_timeout = 1 if kind in ("endless", "hanging") else 60
stop_control = StopControl(spark, home, interval=0.2, batch_timeout=batch_timeout)
rate = spark.readStream.format("rate").load()

def fail(frame, number):
    while not Path(home, "control", "stop-heartbeat.json").exists():
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
started = writers[kind].option("checkpointLocation", stop_control.checkpoint)
stop_control.run(started.trigger(processingTime="1 second").start())
"""


class Query:
    """A query that needs no Kafka, with what it does made up for one test."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.control = folder / "control"
        self.checkpoint = folder / "checkpoint"
        self.step = StopStep(self.control)
        script = folder / "query.py"
        script.write_text(QUERY)
        self.program = submit_without_kafka("the query", script, [str(folder), kind], folder)

    def start_and_stop(self, *, when: Path) -> dict[str, Any]:
        """Start it, ask it to stop when a file of its is there, and return its answer."""
        self.program.start()
        self.program.wait_ready(when.exists)
        return self.step.stop()


@pytest.fixture
def query(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Query]:
    running = Query(tmp_path, request.param)
    try:
        yield running
    finally:
        running.program.kill()


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_an_answered_stop_does_not_stop_the_next_run(query: Query) -> None:
    """The files of an earlier stop are ignored; a new one is obeyed."""
    query.step.answer_in_its_place(query.step.ask("old"))
    query.step.let_run("old")

    answer = query.start_and_stop(when=query.checkpoint / "commits" / "2")
    query.program.wait_end()

    assert answer["clean"]


@pytest.mark.parametrize("query", ["endless"], indirect=True)
def test_a_batch_that_does_not_end_is_abandoned(query: Query) -> None:
    """After the batch timeout the batch is left pending, and the acknowledgement says so."""
    answer = query.start_and_stop(when=query.checkpoint / "offsets" / "1")
    query.program.wait_end()

    assert (answer["clean"], answer["batch_id"], answer["error"]) == (False, 0, None)
    assert not (query.checkpoint / "commits" / "1").exists()


@pytest.mark.parametrize("query", ["failing"], indirect=True)
def test_a_failing_query_says_why(query: Query) -> None:
    """Its exception ends the driver with an error, and answers the request that was open."""
    answer = query.start_and_stop(when=query.checkpoint / "offsets" / "0")
    with pytest.raises(ProgramError):
        query.program.wait_end()

    assert not answer["clean"]
    assert "ValueError: the sink is full" in answer["error"]
    assert "query.py" not in answer["error"]
    assert "StreamingQueryException" in query.program.log.read_text()


@pytest.mark.parametrize("query", ["hanging"], indirect=True)
def test_a_batch_that_hangs_ends_with_its_driver(query: Query) -> None:
    """Python code can't be interrupted: the job reports it, fails, and ends with that code."""
    answer = query.start_and_stop(when=query.checkpoint / "offsets" / "0")
    with pytest.raises(ProgramError):
        query.program.wait_end()

    assert (answer["clean"], answer["batch_id"]) == (False, None)
    assert "failed to stop within" in answer["error"]


@pytest.mark.parametrize("query", ["steady"], indirect=True)
def test_a_control_location_that_can_not_be_written(query: Query) -> None:
    """A job that could never be stopped ends at its start, and names the location."""
    query.control.write_text("a file, not a folder")
    query.program.start()
    with pytest.raises(ProgramError):
        query.program.wait_end()
    said = query.program.log.read_text()
    assert "OSError" in said  # apart, for Spark's log may come between
    assert f"The control location file:{query.control} can't be read and written" in said


PATTERN = """
import sys
from pyspark.sql import SparkSession
from airflow_mm2_offsets.job import StopControl

home, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
stop_control = StopControl(spark, home, interval=0.2)

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
    program = submit_locally("the job", script, [f"{tmp_path}/", f"{checkpoint}/"], tmp_path)

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
