"""A job that was moved away, on real Spark: it runs no more, whatever brings it back."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.control import (
    Acknowledgement,
    Driver,
    read_acknowledgement,
    read_driver,
)
from airflow_mm2_offsets.spark.fence import (
    Fence,
    lift_fence,
    mark_moved,
    new_fence,
    raise_fence,
    read_fence,
)
from airflow_mm2_offsets.spark.stopping import (
    Withdrawal,
    begin_stop,
    keep_asking,
    request_stop,
    withdraw_request,
)
from stack.process import ProgramError
from stack.waiting import wait_until
from tests.integration.spark_jobs import run_to_the_end, submit_without_kafka
from tests.unit.operators.worker import Worker

STARTS = int(os.environ.get("FENCED_STARTS", "1"))
"""Each needs a JVM of its own, so there are few unless told."""


class Job:
    """The job of fenced_job.py, and what it leaves."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.control = str(folder / "control")
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
        held = self.folder / file
        held.touch()
        since = held.stat().st_mtime_ns

        def is_held() -> bool:  # it notes a batch, and looks for the file after that
            noted = (self.folder / "batches").glob(f"{name}-*")
            return any(path.stat().st_mtime_ns > since for path in noted)

        wait_until(is_held, "a batch that is held")

    def start(self, *, until: str = "commits", names: str = "a") -> None:
        """Start it, and wait until each query has come to its third batch."""
        self.program.start()
        self.program.wait_ready(lambda: all(self.last(until, name) >= 2 for name in names))

    def driver(self) -> Driver:
        driver = read_driver(self.control)
        assert driver is not None
        return driver

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the driver: its Python and its JVM."""
        for process in self.driver().processes:
            os.kill(process, number)

    def answer(self, request_id: str) -> Acknowledgement:
        answer = read_acknowledgement(self.control, request_id)
        assert answer is not None
        return answer

    def has_seen(self, stop: Fence) -> bool:
        """Tell whether the job obeys a stop, whose task gives signs of life."""
        return f"asks for {stop.request_id!r}" in self.program.log.read_text()

    def ends_refused(self, control: str | None = None) -> None:
        """Wait for an end by the fence, which says who moved the job and how to undo it."""
        with pytest.raises(ProgramError):
            self.program.wait_end()
        log = self.program.log.read_text()
        assert "JobMovedError: This job" in log
        assert f"fence lift {control or self.control} --request-id 'failover:manual__1'" in log


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    running = Job(tmp_path, *request.param)
    try:
        yield running
    finally:
        running.program.kill()


def stop(worker: Worker, job: Job, **settings: Any) -> dict[str, Any]:
    """Run the stop step of a failover to its proof."""
    with DAG("failover", schedule=None):
        task = StopSparkStreamingOperator(
            task_id="stop",
            deferrable=True,
            control=job.control,
            checkpoint=str(job.checkpoint()),
            moved_to="the target",
            quiet_period=0.5,
            poll_interval=0.1,
            **settings,
        )
    return run_to_the_end(worker, task)


@pytest.mark.parametrize("job", [("stream", "a")], indirect=True)
def test_a_job_that_can_not_look_waits_between_two_batches(job: Job) -> None:
    """Without its control location a job runs no batch, and continues once it is back."""
    job.start()
    unreadable = Path(job.control, "fence.json")
    unreadable.mkdir()  # a look can't open it
    wait_until(lambda: "trying again" in job.program.log.read_text(), "a look that fails")
    lease = 4 * 0.2
    time.sleep(3 * lease)  # the claim is about time that passes
    committed = job.last("commits")
    time.sleep(2 * lease)
    assert job.last("commits") == committed
    unreadable.rmdir()
    wait_until(lambda: job.last("commits") > committed + 2, "batches go on")
    request_stop(job.control, "the end")
    job.program.wait_end()
    assert job.answer("the end").clean


@pytest.mark.parametrize("job", [("once", "a")], indirect=True)
@pytest.mark.timeout(1800 + 60 * STARTS)
def test_a_scheduled_job_between_two_runs_is_stopped_already(job: Job, worker: Worker) -> None:
    """The stop proof needs no wait; a later start of the job runs no batch.

    Nor does such a start look like a driver that lives.
    """
    job.program.start()
    job.program.wait_end()
    assert job.driver().ended
    assert stop(worker, job)["proof"] == "ended"  # not by a silence
    mark_moved(job.control, "failover:manual__1", "the target")
    driver, batches, begun = job.driver(), job.batches(), job.last("offsets")
    for _ in range(STARTS):
        job.program.start()
        job.ends_refused()
    assert (job.driver(), job.batches(), job.last("offsets")) == (driver, batches, begun)

    lift_fence(job.control, "failover:manual__1")
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
    driver, batch = job.driver(), job.last("commits")
    assert noted() == driver.control == f"file:{job.control}"
    assert driver.batches == {driver.query_id: batch}

    old = job.folder / "old"
    old.mkdir()
    raise_fence(str(old), new_fence("failover:manual__1", "the target"))
    note.write_text(json.dumps({"control": f"file:{old}"}))
    job.program.start()
    job.ends_refused(f"file:{old}")
    # A batch may have begun before the query was given to run.
    assert (job.last("commits"), noted()) == (batch, f"file:{old}")
    assert job.driver().ended

    lift_fence(str(old), "failover:manual__1")
    job.program.start()
    job.program.wait_end()
    assert job.last("commits") > batch
    assert noted() == f"file:{job.control}"


def keep_asking_until(job: Job, fence: Fence, condition: Callable[[], bool]) -> None:
    """Give the signs of life of a stop step that waits for what the job does."""

    def has_come() -> bool:
        keep_asking(job.control, fence.request_id, 1.0)
        return condition()

    wait_until(has_come, "what the stop is to bring about")


@pytest.mark.long
@pytest.mark.parametrize("job", [("stream", "a")], indirect=True)
def test_a_stop_whose_task_is_gone_stops_nothing(job: Job) -> None:
    """A stop cancelled before its trigger starts is not obeyed, though nothing withdraws it."""
    job.start()
    begin_stop(job.control, new_fence("failover:manual__1", "the target"))
    wait_until(
        lambda: "once the task that asks for it waits" in job.program.log.read_text(),
        "that the job sees the stop",
    )
    committed = job.last("commits")
    wait_until(lambda: job.last("commits") > committed + 2, "that the job runs on")
    assert not job.driver().ended


@pytest.mark.parametrize("job", [("stream", "a")], indirect=True)
def test_a_stop_that_is_withdrawn_stops_nothing(job: Job) -> None:
    """A stop withdrawn in mid-batch is not obeyed; the same run may request it again."""
    job.start()
    job.hold("hold", "a")
    fence = new_fence("failover:manual__1", "the target")
    begin_stop(job.control, fence)
    keep_asking_until(job, fence, lambda: job.has_seen(fence))
    assert withdraw_request(job.control, fence.request_id) is Withdrawal.WITHDRAWN
    wait_until(lambda: "was withdrawn" in job.program.log.read_text(), "that it is seen")
    committed = job.last("commits")
    (job.folder / "hold").unlink()
    wait_until(lambda: job.last("commits") > committed + 2, "that the job runs on")
    assert read_acknowledgement(job.control, fence.request_id) is None

    begin_stop(job.control, fence)
    keep_asking_until(job, fence, lambda: Path(job.control, "stopped.json").exists())
    job.program.wait_end()
    answer = job.answer(fence.request_id)
    assert (answer.clean, answer.batch_id) == (True, job.last("commits"))
    assert withdraw_request(job.control, fence.request_id) is Withdrawal.STOPPED


@pytest.mark.parametrize("job", [("stream", "a", "b", "c")], indirect=True)
def test_all_queries_of_a_job_stop_between_batches(job: Job) -> None:
    """The job acknowledges once all three queries have stopped, with each one's positions."""
    job.start(names="abc")
    request_stop(job.control, "stop-1")
    job.program.wait_end()
    answer = job.answer("stop-1")
    assert (answer.clean, answer.error, answer.batch_id) == (True, None, None)
    batch_ids = sorted(query.batch_id or 0 for query in answer.queries)
    assert batch_ids == sorted(job.last("commits", name) for name in "abc")
    assert batch_ids == sorted(job.last("offsets", name) for name in "abc")
    assert answer.answers("a later stop", job.driver())
    assert job.driver().ended


@pytest.mark.parametrize("job", [("stream", "a", "b")], indirect=True)
def test_a_stop_that_has_ended_one_query_is_not_withdrawn(job: Job) -> None:
    """Once one query has stopped, the fence stays, though another batch lasts for minutes."""
    job.start(names="ab")
    job.hold("hold-b", "b")
    fence = new_fence("failover:manual__1", "the target")
    begin_stop(job.control, fence)
    keep_asking_until(job, fence, lambda: _has_ended(job, "a"))
    assert withdraw_request(job.control, fence.request_id) is Withdrawal.STOPPED
    assert read_fence(job.control) == fence
    (job.folder / "hold-b").unlink()
    job.program.wait_end()
    assert job.answer(fence.request_id).clean
    assert {job.last("commits", name) - job.last("offsets", name) for name in "ab"} == {0}


def _has_ended(job: Job, name: str) -> bool:
    """Whether the job carries out a stop, and a query that runs batch after batch begins none."""
    begun = job.last("offsets", name)
    time.sleep(1)  # a busy machine may begin none either: then the announcement alone counts
    return job.driver().stopping is not None and job.last("offsets", name) == begun


@pytest.mark.parametrize("job", [("stream", "a", "not", "b")], indirect=True)
def test_a_query_without_stop_control_is_named(job: Job) -> None:
    """A job that leaves a query out never stops cleanly, and names it."""
    job.start(names="ab")
    request_stop(job.control, "stop-1")
    job.program.wait_end()
    answer = job.answer("stop-1")
    assert (answer.clean, answer.error) == (False, "not given to run(), and still running: b")


@pytest.mark.parametrize("job", [("stream", "a", "b")], indirect=True)
def test_if_one_query_fails_the_others_are_stopped(job: Job) -> None:
    """The other queries stop between batches, and the driver ends with the failure."""
    job.start(names="ab")
    (job.folder / "fail-a").touch()
    with pytest.raises(ProgramError):
        job.program.wait_end()
    assert "a fails" in job.program.log.read_text()
    assert job.last("commits", "b") == job.last("offsets", "b")
    assert job.driver().ended
