"""Stopping a real Spark job, on real Kafka."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.move import Mover, job_at
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.checkpoint import listing, read_checkpoint
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger
from stack.mirror import Stack
from stack.process import ProgramError
from stack.waiting import WaitTimeoutError, wait_until
from tests.integration.spark_jobs import (
    ROOT,
    START_SECONDS,
    before,
    busy_topic,
    example_arguments,
    lineage,
    run_to_the_end,
    submit_locally,
)
from tests.support.stop_step import StopStep
from tests.unit.operators.worker import Worker, events

HEARTBEAT_SECONDS = 2.0


@pytest.fixture
def topic(stack: Stack) -> Iterator[str]:
    with busy_topic(stack) as name:
        yield name


class Job:
    """The example job under spark-submit."""

    def __init__(self, stack: Stack, topic: str, folder: Path) -> None:
        self.topic = topic
        self.folder = folder
        self.checkpoint = str(folder / "checkpoint")
        self.control = str(folder / "control")
        self.step = StopStep(folder / "control")
        self.output = folder / "output"
        example = ROOT / "dags" / "jobs" / "orders_stream.py"
        arguments = example_arguments(stack, topic, folder)
        self.program = submit_locally("the job", example, arguments, folder)

    def start(self, *, batches: int) -> None:
        """Start the job, and wait until it has committed ``batches`` batches."""
        self.program.start()
        commits = Path(self.checkpoint, "commits")
        self.program.wait_ready((commits / str(batches - 1)).exists)

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
    """Stopped mid-stream, it exits with 0; acknowledgement, checkpoint and sink agree."""
    job.start(batches=3)
    driver = read_driver(job.control)
    assert driver is not None
    assert driver.bootstrap_servers == {stack.source}
    assert driver.pid in driver.processes
    assert len(driver.processes) == 2
    request_id = job.step.stop()["request_id"]
    job.program.wait_end()

    answer = read_acknowledgement(job.control, request_id)
    checkpoint = read_checkpoint(job.checkpoint)
    assert answer is not None
    assert (answer.clean, answer.error) == (True, None)
    assert (checkpoint.pending, checkpoint.reread) == (None, 0)
    assert answer.batch_id == checkpoint.committed_batch
    assert answer.offsets == checkpoint.positions == job.rows()
    assert sum(checkpoint.positions.popitem()[1].values()) > 0
    assert listing(job.checkpoint) == listing(job.checkpoint)


@pytest.mark.long
def test_a_killed_job_proves_nothing(job: Job) -> None:
    """After SIGKILL there is no answer and no heartbeat; once it may run again, it goes on."""
    job.start(batches=1)
    first = read_driver(job.control)
    assert first is not None
    wait_until(lambda: read_driver(job.control) != first, "a heartbeat")
    job.program.kill()
    killed = read_driver(job.control)
    request_id = job.step.ask()

    with pytest.raises(WaitTimeoutError):
        wait_until(
            lambda: read_driver(job.control) != killed,
            "a heartbeat of the dead",
            seconds=3 * HEARTBEAT_SECONDS,
        )
    job.program.start()
    with pytest.raises(ProgramError):
        job.program.wait_end()
    assert read_driver(job.control) == killed
    assert job.step.withdraw(request_id)

    job.program.start()
    job.program.wait_ready(lambda: read_driver(job.control) != killed)
    answer = job.step.stop()
    job.program.wait_end()
    second = read_driver(job.control)
    assert second is not None
    assert (second.query_id, answer["application_id"]) == (first.query_id, second.application_id)
    assert second.run_id != first.run_id


@pytest.mark.long
def test_a_driver_that_died_is_given_up_where_told(job: Job, worker: Worker) -> None:
    """Killed without a word, it is gone once it has been silent; what it had done is in its sink.

    A failover requests the stop, waits, and continues from the checkpoint: only the pending batch
    is repeated.
    """
    job.start(batches=1)
    job.program.kill()
    with DAG("failover", schedule=None):
        stop = StopSparkStreamingOperator(
            task_id="stop",
            deferrable=True,
            job=SparkJob(
                name="orders",
                homes=(Home(cluster="east", folder=str(job.folder)),),
                heartbeat_timeout=2 * HEARTBEAT_SECONDS,
            ),
            quiet_period=1.0,
            poll_interval=0.5,
        )
    result = run_to_the_end(worker, stop)
    assert (result["proof"], result["clean"], result["batch_id"]) == ("silent", False, None)
    checkpoint = read_checkpoint(job.checkpoint)
    rows = lineage(job.output)
    assert before(checkpoint.positions) <= set(rows)
    assert len(rows) - len(before(checkpoint.positions)) <= checkpoint.reread


def test_a_checkpoint_that_is_being_written(job: Job) -> None:
    """At any moment the checkpoint reads whole and only grows, and its driver counts as alive.

    The stop is asked for in another folder, where the job's files are seen and no driver looks.
    """
    job.start(batches=1)
    seen_from = job.folder / "elsewhere"
    (seen_from / "control").mkdir(parents=True)
    for name in ("checkpoint", "control/driver.json"):
        (seen_from / name).symlink_to(job.folder / name)
    mover = Mover(job_at(str(seen_from), UPath), "nobody's", PLANNED, UPath)
    trigger = SparkStoppedTrigger(
        job=mover.job.to_json(),
        run_name=mover.run,
        policy=PLANNED.name,
        folder=str(seen_from),
        request_id=mover.ask().request_id,
        quiet_period=1.0,
        heartbeat_timeout=4 * HEARTBEAT_SECONDS,
        deadline=time.time() + 5 * HEARTBEAT_SECONDS,
        poll_interval=0.1,
    )
    reads: list[tuple[int | None, Positions]] = []

    def lacks_a_second_batch() -> bool:
        batches = {batch for batch, _ in (*reads[:1], *reads[-1:])}
        return len(batches) < 2 and time.monotonic() < deadline

    with ThreadPoolExecutor(1) as pool:
        deadline = time.monotonic() + START_SECONDS
        waiting = pool.submit(events, trigger)
        # On a busy machine a batch may take longer than the trigger waits.
        while not waiting.done() or lacks_a_second_batch():
            seen = read_checkpoint(job.checkpoint)
            reads.append((seen.committed_batch, seen.positions))
    assert "timeout" in waiting.result()[0]
    batches = [batch for batch, _ in reads if batch is not None]
    assert len(batches) == len(reads)
    assert len(set(batches)) > 1
    assert batches == sorted(batches)
    read = [sum(positions[job.topic].values()) for _, positions in reads]
    assert read == sorted(read)
