"""A driver on real Spark that was paused for longer than its lease, and wakes."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_mm2_offsets.spark.fence import mark_moved, new_fence
from airflow_mm2_offsets.spark.stopping import begin_stop
from stack.waiting import wait_until
from tests.integration.test_spark_fence import Job, keep_asking_until, stop
from tests.unit.operators.worker import Worker

pytestmark = pytest.mark.long

WAKES = int(os.environ.get("WOKEN_DRIVERS", "8"))
"""Without the gate's clock two of five pauses end with a batch that was begun."""
LEASE_SECONDS = 4 * 0.2
TRIGGER_SECONDS = 3
"""Of the job "paced": Spark triggers at multiples of it (``ProcessingTimeExecutor``)."""
IDLE_SECONDS = 0.5
"""After a commit and before a trigger."""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    running = Job(tmp_path, "paced", "a")
    running.start()
    try:
        yield running
    finally:
        running.program.kill()


def _pause_between_batches(job: Job) -> None:
    while True:
        committed = job.last("commits")
        wait_until(lambda: job.last("commits") > committed, "a batch")  # noqa: B023 - asked at once
        time.sleep(IDLE_SECONDS)
        job.signal(signal.SIGSTOP)
        time.sleep(0.1)  # a thread stops when it comes to run
        if job.last("offsets") == job.last("commits") and _is_idle(job):
            return
        job.signal(signal.SIGCONT)


def _is_idle(job: Job) -> bool:
    """Tell whether the last batch was triggered last, and the next trigger is not near."""
    begun = (job.checkpoint() / "offsets" / str(job.last("offsets"))).stat().st_mtime
    triggered, since_trigger = divmod(time.time(), TRIGGER_SECONDS)
    return begun // TRIGGER_SECONDS == triggered and since_trigger < TRIGGER_SECONDS - IDLE_SECONDS


def test_a_driver_that_was_only_paused_ends_when_it_wakes(job: Job, worker: Worker) -> None:
    """A driver that was declared dead between two batches begins no batch when it wakes."""
    _pause_between_batches(job)
    try:
        assert stop(worker, job, heartbeat_timeout=1.0)["proof"] == "silent"
        batches, begun = job.batches(), job.last("offsets")
        mark_moved(job.control, "failover:manual__1", "the target")
    finally:
        job.signal(signal.SIGCONT)
    job.ends_refused()
    assert (job.batches(), job.last("offsets"), job.last("commits")) == (batches, begun, begun)


def test_a_driver_that_is_paused_while_it_stops_commits_nothing(job: Job, worker: Worker) -> None:
    """A driver paused while it waits for its batch, and moved meanwhile, abandons the batch."""
    job.hold("hold", "a")
    fence = new_fence("failover:manual__1", "the target")
    begin_stop(job.control, fence)
    keep_asking_until(job, fence, lambda: job.has_seen(fence))
    job.signal(signal.SIGSTOP)
    try:
        assert stop(worker, job, heartbeat_timeout=1.0)["proof"] == "silent"
        logs = job.last("offsets"), job.last("commits")
        mark_moved(job.control, "failover:manual__1", "the target")
        (job.folder / "hold").unlink()
    finally:
        job.signal(signal.SIGCONT)
    job.ends_refused()
    assert (job.last("offsets"), job.last("commits")) == logs == (logs[1] + 1, logs[1])


@pytest.mark.timeout(1800 + 30 * WAKES)
def test_a_driver_that_wakes_begins_no_batch_before_it_has_looked(job: Job) -> None:
    """If it can't read the fence when it wakes, it waits; then it reads it and continues."""
    fence = Path(job.control, "fence.json")
    for _ in range(WAKES):
        _pause_between_batches(job)
        batches, begun = job.batches(), job.last("offsets")
        fence.mkdir()  # a look can't open it
        time.sleep(max(2 * LEASE_SECONDS, 3))  # the next batch is due
        job.signal(signal.SIGCONT)
        time.sleep(LEASE_SECONDS)  # the claim is about time that passes
        assert (job.batches(), job.last("offsets")) == (batches, begun)
        fence.rmdir()
        wait_until(lambda: job.last("commits") > begun, "batches go on")  # noqa: B023 - asked at once
