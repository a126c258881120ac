"""A failover's run that fails, is finished, and is cleared in many ways; see soak_clearing.py."""

import random
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.spark.stopping import forget_stop
from demo.environment import Demo
from demo.failover import FAILOVER, STREAM, Failover
from tests.e2e.drivers import last_batch, send
from tests.unit.dags.dags_folder import STEPS

HARMLESS = tuple(task for task in STEPS if task != "stop_source")
"""Those that never move a job which runs again: the stop has to be asked for that."""


class ClearingError(RuntimeError):
    """A clear started what it must not, or ended in another way than it must."""


@dataclass(kw_only=True)
class Clearing:
    """A failover's run whose tasks are cleared, and the folders of its job."""

    demo: Demo
    failover: Failover
    chance: random.Random
    clears: Counter[str] = field(default_factory=Counter)
    orders: int = 0

    @property
    def source(self) -> Path:
        """The job's folder on the source."""
        return self.demo.job_folder("source")

    @property
    def control(self) -> str:
        """Its control location there."""
        return str(self.source / "control")

    @property
    def request_id(self) -> str:
        """What the run's stop is called."""
        return f"{FAILOVER}:{self.failover.run_id}"

    def fail_while_stopping(self) -> None:
        """Mark the run's stop as failed while the job, paused, can't answer: the job runs on.

        The first time before the stop's trigger has started: then Airflow calls nothing that could
        withdraw the stop, and the job itself must notice.
        """
        self.failover.start_stream()
        with self._paused():
            # Nothing is rolled back: the failed tasks are to be cleared. Nobody is asked: a plan of
            # the job that runs again may read a batch again.
            self.failover.trigger(on_failure="keep", approve="never")
            self._wait_deferred("stop_source")
            self._mark_failed("stop_source")
        self.wait_batches()
        if read_fence(self.control) is not None:
            forget_stop(self.control, self.request_id)
        heartbeat = self.source / "control" / "stop-heartbeat.json"
        with self._paused():
            heartbeat.unlink(missing_ok=True)
            self.clear("stop_source", downstream=True)
            self.demo.wait("the stop's trigger", heartbeat.exists)
            self._mark_failed("stop_source")
            self.demo.wait("a stop that is withdrawn", lambda: read_fence(self.control) is None)
        self.wait_batches()

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Pause the source job's driver."""
        send(self.source, signal.SIGSTOP)
        try:
            yield
        finally:
            send(self.source, signal.SIGCONT)

    def fail_without_mirror(self) -> None:
        """Stop the job at positions that MirrorMaker 2, which is down, has not copied."""
        self.demo.stack.kill_connect()
        self.wait_batches()
        self.clear("stop_source", downstream=True)
        self._wait_deferred("wait_replicated")
        self._mark_failed("wait_replicated")
        fence = read_fence(self.control)
        self._expect("the fence", fence and fence.state, FenceState.STOPPING)

    def start_source_again(self) -> None:
        """Lift the fence and start the job where it was, as an operator does; then the mirror."""
        forget_stop(self.control, self.request_id)
        begun = last_batch(self.source)
        folder = {"kafka_conn_id": "kafka_source", "folder": str(self.source)}
        self.demo.airflow.api.trigger(STREAM, folder)
        self.demo.stack.start_connect()
        self.demo.wait("MirrorMaker 2", self.demo.stack.mirror_running)
        self.demo.wait("the job's next batch", lambda: last_batch(self.source) > begun)

    def clear_failed(self, orders: int) -> None:
        """Clear the failed run's tasks; whatever is cleared, nothing may be started."""
        begun = last_batch(self.source)
        for tasks in (HARMLESS, HARMLESS[::-1], *self._orders(HARMLESS, orders)):
            for task in tasks:
                # All after check includes the stop, which may move the job.
                self.clear(task, downstream=task != "check" and self.chance.random() < 0.5)
                if self.chance.random() < 0.5:
                    self._expect("the failed run", self.settle(), "failed")
            self._expect("the failed run", self.settle(), "failed")
            self._expect("the runs of the job", len(self._stream_runs()), 2)
        self.demo.wait("the job to run on", lambda: last_batch(self.source) > begun)
        self._expect("a fence", read_fence(self.control), None)

    def finish(self) -> None:
        """Clear the whole failed run: it stops the job again, and moves it from there."""
        # A task translate that was cleared between two batches may have kept a plan; it is of other
        # positions, and whoever clears is told to delete it.
        for plan in (self.demo.job_folder("target") / "plans").glob("*.json"):
            plan.unlink()
        self.clear("check", downstream=True)
        self._wait_deferred("stop_source")
        self.clear("stop_source", downstream=True)  # in the middle of its wait
        self.failover.wait_for_task("submit_target")
        self.failover.move_producer()
        self.failover.wait_for_end()
        self._expect("the runs of the job", len(self._stream_runs()), 3)

    def clear_finished(self, orders: int) -> None:
        """Clear every task alone, every task with all after it, and in random orders."""
        moved = self._moved()
        for downstream in (False, True):
            for task in STEPS:
                self.clear(task, downstream=downstream)
                self._expect_unmoved(moved)
        for tasks in self._orders(STEPS, orders):
            for task in tasks:
                self.clear(task, downstream=False)
                if self.chance.random() < 0.3:  # else while others still run
                    self.settle()
            self._expect_unmoved(moved)

    def clear(self, task: str, *, downstream: bool) -> None:
        """Clear a task."""
        self.demo.progress(f"clear {task}{' with all after it' if downstream else ''}")
        self.demo.airflow.api.clear(FAILOVER, self.failover.run_id, task, downstream=downstream)
        self.clears["with all after it" if downstream else "alone"] += 1

    def settle(self) -> str:
        """Wait for the run's end, and return its state."""
        api, ended = self.demo.airflow.api, {"success", "failed"}
        seen: list[str] = []

        def has_ended() -> bool:
            seen.append(str(api.state(FAILOVER, self.failover.run_id)))
            return seen[-1] in ended

        self.demo.wait("the end of what was cleared", has_ended)
        return seen[-1]

    def wait_batches(self) -> None:
        """Wait until the source job has begun and committed another batch."""
        begun = last_batch(self.source, "offsets")
        self.demo.wait("another batch", lambda: last_batch(self.source) > begun)

    def _orders(self, tasks: Iterable[str], count: int) -> Iterator[list[str]]:
        for _ in range(count):
            self.orders += 1
            yield self.chance.sample(pool := list(tasks), len(pool))

    def _wait_deferred(self, task: str) -> None:
        api = self.demo.airflow.api

        def is_deferred() -> bool:
            state = api.tasks(FAILOVER, self.failover.run_id)[task].state
            if state in {"success", "failed"}:
                raise ClearingError(f"{task} did not wait: {state}")
            return state == "deferred"

        self.demo.wait(f"{task} to wait", is_deferred)

    def _mark_failed(self, task: str) -> None:
        self.demo.airflow.api.mark_failed(FAILOVER, self.failover.run_id, task)
        self._expect("the run", self.settle(), "failed")

    def _stream_runs(self) -> list[str]:
        return sorted(self.demo.airflow.api.runs(STREAM))

    def _moved(self) -> tuple[object, ...]:
        """Return what no clear of a finished run may change."""
        api, run_id = self.demo.airflow.api, self.failover.run_id
        return (
            self._stream_runs(),
            read_fence(self.control),
            last_batch(self.source, "offsets"),
            api.xcom(FAILOVER, run_id, "translate"),
            api.xcom(FAILOVER, run_id, "translate", "starting_offsets"),
        )

    def _expect_unmoved(self, moved: tuple[object, ...]) -> None:
        self._expect("the finished run", self.settle(), "success")
        self._expect("what was moved", self._moved(), moved)

    def _expect(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            raise ClearingError(f"{what}: {found!r}, and not {wanted!r}")
