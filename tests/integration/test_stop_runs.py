"""A real Spark job, stopped and killed many times over, at random moments."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.control import Acknowledgement, read_acknowledgement, read_driver
from stack.mirror import Stack
from tests.integration.spark_jobs import before, busy_topic, lineage, submit_locally
from tests.support.stop_step import StopStep

pytestmark = pytest.mark.long

STOPS = 20
KILLS = int(os.environ.get("STOP_RUNS", "5"))
"""Each needs a JVM of its own, so there are few unless told."""


class Job:
    """The job of stop_runs_job.py, and what it leaves."""

    def __init__(self, stack: Stack, topic: str, folder: Path, *, rounds: int) -> None:
        self.topic, self.folder = topic, folder
        self.control, self.checkpoint = str(folder / "control"), str(folder / "checkpoint")
        self.step = StopStep(folder / "control")
        script = Path(__file__).with_name("stop_runs_job.py")
        arguments = [stack.source, topic, str(folder), str(rounds)]
        self.program = submit_locally("the job", script, arguments, folder)

    def run_id(self) -> str | None:
        driver = read_driver(self.control)
        return driver.run_id if driver else None

    def begun(self) -> int:
        """Return the number of the newest batch; -1 before the first."""
        names = [path.name for path in (self.folder / "checkpoint" / "offsets").glob("*")]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def has_begun_after(self, batch: int) -> bool:
        return self.begun() > batch

    def rows(self) -> Counter[tuple[int, int]]:
        """Count how often each record is in the sink."""
        return Counter(lineage(self.folder / "output"))

    def stop(self) -> Acknowledgement:
        """Stop the job, let it run again, and return its answer."""
        request_id = str(self.step.stop()["request_id"])
        answer = read_acknowledgement(self.control, request_id)
        self.step.let_run(request_id)
        assert answer is not None
        return answer


@pytest.fixture
def topic(stack: Stack) -> Iterator[str]:
    with busy_topic(stack) as name:
        yield name


@pytest.fixture
def job(request: pytest.FixtureRequest, stack: Stack, topic: str, tmp_path: Path) -> Iterator[Job]:
    running = Job(stack, topic, tmp_path, rounds=request.param)
    try:
        yield running
    finally:
        running.program.kill()


def at_a_random_moment(chance: random.Random, most: float) -> None:
    """Wait for a random time: the claim is about any moment."""
    Event().wait(chance.uniform(0, most))


@pytest.mark.parametrize("job", [STOPS], indirect=True)
def test_every_stop_is_between_two_batches(job: Job) -> None:
    """20 of 20: clean, with nothing pending, and word, checkpoint and sink agree to the record.

    Every second query never pauses between its batches.
    """
    chance = random.Random(20)  # noqa: S311 - any moments will do
    clean = 0
    job.program.start()
    for number in range(STOPS):
        job.program.wait_ready(partial(job.has_begun_after, job.begun()))
        at_a_random_moment(chance, 0.8)
        answer, checkpoint = job.stop(), _read(job)
        assert checkpoint is not None
        clean += answer.clean
        assert (answer.error, checkpoint.pending, checkpoint.reread) == (None, None, 0)
        assert answer.batch_id == checkpoint.committed_batch
        assert answer.offsets == checkpoint.positions
        assert job.rows() == Counter(before(checkpoint.positions))
        (job.folder / f"go-{number + 1}").touch()
    assert clean == STOPS
    job.program.wait_end()


@pytest.mark.timeout(1800 + 90 * KILLS)
@pytest.mark.parametrize("job", [1], indirect=True)
def test_a_killed_job_repeats_only_its_pending_batch(
    job: Job, record_property: Callable[[str, object], None]
) -> None:
    """SIGKILL at random moments loses nothing, and repeats only the pending batch.

    The run after a kill begins exactly where the checkpoint says that all before is done.
    """
    chance = random.Random(9)  # noqa: S311 - any moments will do
    left: Checkpoint | None = None
    announced = again = pending = 0
    for _ in range(KILLS):
        earlier = job.rows()
        run_to_a_random_moment(job, chance)
        job.program.kill()
        again += _check_run(left, earlier, job.rows())
        left = _read(job)
        announced += left.reread if left else 0
        pending += left is not None and left.pending is not None
        print(f"batch {job.begun()}: {pending} pending, {announced} announced, {again} again")  # noqa: T201 - what was measured

    earlier = job.rows()
    job.program.start()
    known = job.begun()
    job.program.wait_ready(lambda: job.begun() > known + 1)
    job.stop()
    job.program.wait_end()
    rows, end = job.rows(), read_checkpoint(job.checkpoint)
    again += _check_run(left, earlier, rows)
    assert set(rows) == before(end.positions)
    assert sum(rows.values()) - len(rows) == again <= announced
    found = f"{KILLS} kills, {pending} with a batch pending: {announced} announced, {again} again"
    record_property("found", found)
    print(found)  # noqa: T201 - what was measured


def run_to_a_random_moment(job: Job, chance: random.Random) -> None:
    """Start the job and let it come to some moment of some batch, however slow the machine."""
    run_id, batch = job.run_id(), job.begun() + chance.randrange(4)
    job.program.start()
    job.program.wait_ready(lambda: job.run_id() not in {None, run_id} and job.begun() >= batch)
    at_a_random_moment(chance, 1)


def _check_run(
    left: Checkpoint | None, earlier: Counter[tuple[int, int]], rows: Counter[tuple[int, int]]
) -> int:
    """Check what one run wrote against what the one before it left; return what it did again."""
    written = rows - earlier
    again = sum((written & earlier).values())
    if left is None:
        return again
    done = before(left.positions)
    assert done <= set(rows)
    assert not done & set(written)
    assert again <= left.reread
    return again


def _read(job: Job) -> Checkpoint | None:
    """Return the checkpoint; None where the job was killed before it began a batch."""
    return read_checkpoint(job.checkpoint) if job.begun() >= 0 else None
