"""A job that was moved away, on real Spark: it runs no more, whatever brings it back."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.process import ProgramError
from stack.waiting import wait_until
from tests.integration.spark_jobs import submit_without_kafka
from tests.support.stop_step import JOURNAL, RUN, StopStep

STARTS = int(os.environ.get("FENCED_STARTS", "1"))
"""Each needs a JVM of its own, so there are few unless told."""
INTERVAL_SECONDS = 0.2
LEASE_SECONDS = 4 * INTERVAL_SECONDS


class Job:
    """The job of fenced_job.py, and what it leaves."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.step = StopStep(folder / "control")
        script = Path(__file__).with_name("fenced_job.py")
        self.program = submit_without_kafka("the job", script, [str(folder), *arguments], folder)

    def checkpoint(self, name: str = "a") -> Path:
        return self.folder / "checkpoints" / name

    def last(self, log: str, name: str = "a") -> int:
        """Return the last batch in a log of a checkpoint; -1 before the first."""
        names = [path.name for path in (self.checkpoint(name) / log).glob("*")]
        return max((int(each) for each in names if each.isdecimal()), default=-1)

    def batches(self) -> set[str]:
        """Return every batch that has begun to be written."""
        return {path.name for path in (self.folder / "batches").glob("*")}

    def hold(self, file: str, name: str) -> None:
        """Hold the batches of a query, and wait until one is held."""
        hold = self.folder / file
        hold.touch()
        since = hold.stat().st_mtime_ns

        def is_held() -> bool:  # it notes a batch, and looks for the file after that
            noted = (self.folder / "batches").glob(f"{name}-*")
            return any(path.stat().st_mtime_ns > since for path in noted)

        wait_until(is_held, "a batch that is held")

    def start(self, *, until: str = "commits", names: str = "a") -> None:
        """Start it, and wait until each query has come to its third batch."""
        self.program.start()
        self.program.wait_ready(lambda: all(self.last(until, name) >= 2 for name in names))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the driver: its Python and its JVM."""
        for process in self.step.driver()["processes"]:
            os.kill(int(process), number)

    def has_seen(self, request_id: str) -> bool:
        """Tell whether the job obeys a stop, whose task gives signs of life."""
        return f"asks for {request_id!r}" in self.program.log.read_text()

    def ends_refused(self, home: Path | str | None = None) -> None:
        """Wait for an end by the fence, which says who moved the job and how to undo it."""
        with pytest.raises(ProgramError):
            self.program.wait_end()
        log = self.program.log.read_text()
        assert "JobMovedError: This job was" in log
        assert f"to the target by {RUN}#1" in log
        assert f"jobs settle --journal {JOURNAL} --at {home or self.folder}" in log

    def make_unreadable(self) -> Path:
        """Put a fence there that no look can open; without it the job can look again."""
        fence = self.step.control / "fence" / "999999.json"
        fence.mkdir(parents=True)
        return fence


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    running = Job(tmp_path, *request.param)
    try:
        yield running
    finally:
        running.program.kill()


@pytest.mark.parametrize("job", [("stream", "a")], indirect=True)
def test_a_job_that_can_not_look_waits_between_two_batches(job: Job) -> None:
    """Without its control location a job runs no batch, and continues once it is back."""
    job.start()
    unreadable = job.make_unreadable()
    wait_until(lambda: "trying again" in job.program.log.read_text(), "a look that fails")
    time.sleep(3 * LEASE_SECONDS)  # the claim is about time that passes
    committed = job.last("commits")
    time.sleep(2 * LEASE_SECONDS)
    assert job.last("commits") == committed
    unreadable.rmdir()
    wait_until(lambda: job.last("commits") > committed + 2, "batches go on")
    assert job.step.stop()["clean"]
    job.program.wait_end()


@pytest.mark.parametrize("job", [("once", "a")], indirect=True)
@pytest.mark.timeout(1800 + 60 * STARTS)
def test_a_scheduled_job_between_two_runs_is_stopped_already(job: Job) -> None:
    """A later start of the job runs no batch, and does not look like a driver that lives."""
    job.program.start()
    job.program.wait_end()
    assert job.step.driver()["ended"]
    job.step.ask()
    job.step.move()
    driver, batches, begun = job.step.driver(), job.batches(), job.last("offsets")
    for _ in range(STARTS):
        job.program.start()
        job.ends_refused()
    assert (job.step.driver(), job.batches(), job.last("offsets")) == (driver, batches, begun)

    job.step.let_run()
    job.program.start()
    job.program.wait_end()
    assert job.last("commits") > begun


@pytest.mark.parametrize("job", [("once", "a")], indirect=True)
def test_a_job_that_was_moved_by_another_control_location(job: Job) -> None:
    """A note beside the checkpoint names the control location; the job looks for a fence there."""
    note = job.checkpoint().with_name("a.control.json")

    def noted() -> str:
        return str(json.loads(note.read_text())["control"])

    job.program.start()
    job.program.wait_end()
    driver, batch = job.step.driver(), job.last("commits")
    assert noted() == driver["control"] == f"file:{job.step.control}"
    assert [query["batch_id"] for query in driver["queries"]] == [batch]

    old = job.folder / "old"
    StopStep(old / "control").ask()
    note.write_text(json.dumps({"control": f"file:{old}/control"}))
    job.program.start()
    job.ends_refused(f"file:{old}")
    # A batch may have begun before the query was given to run.
    assert (job.last("commits"), noted()) == (batch, f"file:{old}/control")
    assert job.step.driver()["ended"]

    StopStep(old / "control").let_run()
    job.program.start()
    job.program.wait_end()
    assert job.last("commits") > batch
    assert noted() == f"file:{job.step.control}"


@pytest.mark.long
@pytest.mark.parametrize("job", [("stream", "a")], indirect=True)
def test_a_stop_whose_task_is_gone_stops_nothing(job: Job) -> None:
    """A stop cancelled before its trigger starts is not obeyed, though nothing withdraws it."""
    job.start()
    job.step.ask()
    wait_until(
        lambda: "once the task that asks for it waits" in job.program.log.read_text(),
        "that the job sees the stop",
    )
    committed = job.last("commits")
    wait_until(lambda: job.last("commits") > committed + 2, "that the job runs on")
    assert not job.step.driver()["ended"]


@pytest.mark.parametrize("job", [("stream", "a")], indirect=True)
def test_a_stop_that_is_withdrawn_stops_nothing(job: Job) -> None:
    """A stop withdrawn in mid-batch is not obeyed; the next one is."""
    job.start()
    job.hold("hold", "a")
    stop = job.step.ask()
    job.step.sign_until(stop, lambda: job.has_seen(stop), "that the job obeys")
    assert job.step.withdraw(stop)
    wait_until(lambda: "was withdrawn" in job.program.log.read_text(), "that it is seen")
    committed = job.last("commits")
    (job.folder / "hold").unlink()
    wait_until(lambda: job.last("commits") > committed + 2, "that the job runs on")
    assert job.step.answer(stop) is None

    answer = job.step.stop()
    job.program.wait_end()
    assert (answer["clean"], answer["batch_id"]) == (True, job.last("commits"))
    assert not job.step.withdraw(answer["request_id"])


@pytest.mark.parametrize("job", [("stream", "a", "b", "c")], indirect=True)
def test_all_queries_of_a_job_stop_between_batches(job: Job) -> None:
    """The job acknowledges once all three queries have stopped, with each one's positions."""
    job.start(names="abc")
    answer = job.step.stop()
    job.program.wait_end()
    assert (answer["clean"], answer["error"], answer["batch_id"]) == (True, None, None)
    batch_ids = sorted(query["batch_id"] for query in answer["queries"])
    assert batch_ids == sorted(job.last("commits", name) for name in "abc")
    assert batch_ids == sorted(job.last("offsets", name) for name in "abc")
    assert job.step.driver()["ended"]


@pytest.mark.parametrize("job", [("stream", "a", "b")], indirect=True)
def test_a_stop_that_has_ended_one_query_is_not_withdrawn(job: Job) -> None:
    """Once one query has stopped, the fence stays, though another batch lasts for minutes."""
    job.start(names="ab")
    job.hold("hold-b", "b")
    stop = job.step.ask()
    job.step.sign_until(stop, lambda: _has_ended(job, "a"), "the end of one query")
    assert not job.step.withdraw(stop)
    (job.folder / "hold-b").unlink()
    job.program.wait_end()
    answer = job.step.answer(stop)
    assert answer is not None
    assert answer["clean"]
    assert {job.last("commits", name) - job.last("offsets", name) for name in "ab"} == {0}


def _has_ended(job: Job, name: str) -> bool:
    """Whether the job carries out a stop, and a query that runs batch after batch begins none."""
    begun = job.last("offsets", name)
    time.sleep(1)  # a busy machine may begin none either: then the announcement alone counts
    return job.step.driver()["stopping"] is not None and job.last("offsets", name) == begun


@pytest.mark.parametrize("job", [("stream", "a", "not", "b")], indirect=True)
def test_a_query_without_stop_control_is_named(job: Job) -> None:
    """A job that leaves a query out never stops cleanly, and names it."""
    job.start(names="ab")
    answer = job.step.stop()
    job.program.wait_end()
    error = "not given to run(), and still running: b"
    assert (answer["clean"], answer["error"]) == (False, error)


@pytest.mark.parametrize("job", [("stream", "a", "b")], indirect=True)
def test_if_one_query_fails_the_others_are_stopped(job: Job) -> None:
    """The other queries stop between batches, and the driver ends with the failure."""
    job.start(names="ab")
    (job.folder / "fail-a").touch()
    with pytest.raises(ProgramError):
        job.program.wait_end()
    assert "a fails" in job.program.log.read_text()
    assert job.last("commits", "b") == job.last("offsets", "b")
    assert job.step.driver()["ended"]
