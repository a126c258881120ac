"""A failover's run that fails, is finished, and is cleared in many ways; see soak_clearing.py."""

import random
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.moves.fences import Fence, read_fence
from airflow_mm2_offsets.moves.journal import FenceState, Journal
from airflow_mm2_offsets.moves.settle import settle
from airflow_mm2_offsets.task_groups import STEPS
from demo.environment import Demo
from demo.failover import FAILOVER, STREAM, Failover
from tests.e2e.drivers import last_batch, send


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
    def fence(self) -> Fence | None:
        """What the job's drivers there obey."""
        return read_fence(UPath(self.source / "control"))

    @property
    def is_open(self) -> bool:
        """Whether the job may run there."""
        return self.fence is None or self.fence.state is FenceState.OPEN

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
        heartbeat = self.source / "control" / "stop-heartbeat.json"
        with self._paused():
            heartbeat.unlink(missing_ok=True)
            self.clear("stop_source", downstream=True)
            self.demo.wait("the stop's trigger", heartbeat.exists)
            self._mark_failed("stop_source")
            self.demo.wait("a stop that is withdrawn", lambda: self.is_open)
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
        self._expect("the fence", self.fence and self.fence.state, FenceState.STOPPING)

    def start_source_again(self) -> None:
        """Say that the job runs where it was, and start it, as a person does; then the mirror."""
        job = self.demo.job
        seen = len(Journal(UPath(job.journal)).entries())
        settle(job, job.homes[0].folder, UPath, by="operator", seen=seen)
        begun = last_batch(self.source)
        folder = {"kafka_conn_id": "kafka_source", "folder": str(self.source)}
        self.demo.airflow.api.trigger(STREAM, folder)
        self.demo.stack.start_connect()
        self.demo.wait("MirrorMaker 2", self.demo.stack.mirror_running)
        self.demo.wait("the job's next batch", lambda: last_batch(self.source) > begun)

    def clear_failed(self, orders: int) -> None:
        """Clear the failed run's tasks; whatever is cleared, nothing may be started."""
        begun = last_batch(self.source)
        steps = tuple(STEPS)
        for tasks in (steps, steps[::-1], *self._orders(steps, orders)):
            for task in tasks:
                self.clear(task, downstream=self.chance.random() < 0.5)
                if self.chance.random() < 0.5:
                    self._expect("the failed run", self.settle(), "failed")
            self._expect("the failed run", self.settle(), "failed")
            self._expect("the runs of the job", len(self._stream_runs()), 2)
        self.demo.wait("the job to run on", lambda: last_batch(self.source) > begun)
        self._expect("fences that keep the job away", int(not self.is_open), 0)

    def finish(self) -> None:
        """Move the job by a new run: a person's word has ended the moves of the first."""
        self.failover.trigger(on_failure="keep", approve="never")
        self._wait_deferred("stop_source")
        self.clear("stop_source", downstream=True)  # in the middle of its wait
        self.failover.wait_for_task("translate")
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
            self.fence,
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
