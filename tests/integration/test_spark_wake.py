"""A driver on real Spark that was paused for longer than its lease, and wakes."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.process import ProgramError
from stack.waiting import wait_until
from tests.integration.test_spark_fence import LEASE_SECONDS, Job

pytestmark = pytest.mark.long

WAKES = int(os.environ.get("WOKEN_DRIVERS", "8"))
"""Without the gate's clock two of five pauses end with a batch that was begun."""
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


def _answer_for(job: Job, stop: str) -> None:
    """Take the job for gone, and move it to the target."""
    time.sleep(2 * LEASE_SECONDS)  # its lease must be over when it wakes
    job.step.answer_in_its_place(stop)
    job.step.move(stop)


def test_a_driver_that_was_only_paused_ends_when_it_wakes(job: Job) -> None:
    """A driver that was declared dead between two batches begins no batch when it wakes."""
    _pause_between_batches(job)
    try:
        batches, begun = job.batches(), job.last("offsets")
        _answer_for(job, job.step.ask())
    finally:
        job.signal(signal.SIGCONT)
    job.ends_refused()
    assert (job.batches(), job.last("offsets"), job.last("commits")) == (batches, begun, begun)


def test_a_driver_that_was_paused_while_its_job_was_away_ends(job: Job) -> None:
    """The newest fence is open, but for a driver that begins where the job is now."""
    _pause_between_batches(job)
    try:
        batches, begun = job.batches(), job.last("offsets")
        _answer_for(job, job.step.ask())
        job.step.let_run()
    finally:
        job.signal(signal.SIGCONT)
    with pytest.raises(ProgramError):
        job.program.wait_end()
    assert "start another one" in job.program.log.read_text()
    assert (job.batches(), job.last("offsets"), job.last("commits")) == (batches, begun, begun)


def test_a_driver_that_is_paused_while_it_stops_commits_nothing(job: Job) -> None:
    """A driver paused while it waits for its batch, and moved meanwhile, abandons the batch."""
    job.hold("hold", "a")
    stop = job.step.ask()
    job.step.sign_until(stop, lambda: job.has_seen(stop), "that the job obeys")
    job.signal(signal.SIGSTOP)
    try:
        logs = job.last("offsets"), job.last("commits")
        _answer_for(job, stop)
        (job.folder / "hold").unlink()
    finally:
        job.signal(signal.SIGCONT)
    job.ends_refused()
    assert (job.last("offsets"), job.last("commits")) == logs == (logs[1] + 1, logs[1])


@pytest.mark.timeout(1800 + 30 * WAKES)
def test_a_driver_that_wakes_begins_no_batch_before_it_has_looked(job: Job) -> None:
    """If it can't read the fence when it wakes, it waits; then it reads it and continues."""
    for _ in range(WAKES):
        _pause_between_batches(job)
        batches, begun = job.batches(), job.last("offsets")
        unreadable = job.make_unreadable()
        time.sleep(max(2 * LEASE_SECONDS, 3))  # the next batch is due
        job.signal(signal.SIGCONT)
        time.sleep(LEASE_SECONDS)  # the claim is about time that passes
        assert (job.batches(), job.last("offsets")) == (batches, begun)
        unreadable.rmdir()
        wait_until(lambda: job.last("commits") > begun, "batches go on")  # noqa: B023 - asked at once
