"""Clears the tasks of a failover's run in one order after the other; ``make soak-clearing``.

Two runs are cleared: one that failed while MirrorMaker 2 was down, and whose job the operator has
started again on the source meanwhile; and the same run once it has come to its end.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.spark.stopping import forget_stop
from demo.failover import FAILOVER, STREAM, Failover
from demo.report import Report
from demo.world import World
from tests.e2e.drivers import DriverWatch, last_batch, send

TASKS = (
    "check",
    "stop_source",
    "read_positions",
    "wait_replicated",
    "translate",
    "submit_target",
    "wait_started",
    "report",
    "verify",
)
"""The tasks of mm2_failover, in order."""
HARMLESS = tuple(task for task in TASKS if task != "stop_source")
"""Those that never move a job which runs again: the stop has to be asked for that."""


class ClearingError(AssertionError):
    """A clear started what it must not, or ended in another way than it must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was done, and what came of it."""

    report: Report
    clears: Counter[str]
    """How many tasks were cleared, by the way they were."""
    orders: int
    """In how many random orders."""
    most: Counter[str]
    """The most drivers alive at once: of each side, and of both together."""
    looks: int
    """How often was looked for drivers."""

    @property
    def holds(self) -> bool:
        """Never two jobs, nothing lost, and no more repeated than announced."""
        return self.report.holds and self.most == Counter(source=1, target=1, together=1)

    def __str__(self) -> str:
        """Say it in a few lines."""
        rows = self.report
        clears = ", ".join(f"{count} {way}" for way, count in self.clears.items())
        most = ", ".join(f"{name} {count}" for name, count in sorted(self.most.items()))
        return (
            f"{self.clears.total()} clears ({clears}; {self.orders} random orders)\n"
            f"most drivers at once, of {self.looks} looks: {most}\n"
            f"{rows.produced} records produced, {rows.delivered.total()} rows in the sinks: "
            f"{rows.lost} lost, {rows.duplicated} duplicated ({rows.plan.max_reread} announced)\n"
            f"{'PROVEN' if self.holds else 'FAILED'}"
        )


@dataclass(kw_only=True)
class Clearing:
    """A failover's run whose tasks are cleared, by somebody who knows its job's folders."""

    world: World
    failover: Failover
    chance: random.Random
    clears: Counter[str] = field(default_factory=Counter)
    orders: int = 0

    @property
    def source(self) -> Path:
        """The job's folder on the source."""
        return self.world.job_folder("source")

    @property
    def control(self) -> str:
        """Its control location there."""
        return str(self.source / "control")

    @property
    def request_id(self) -> str:
        """What the run's stop is called."""
        return f"{FAILOVER}:{self.failover.run_id}"

    def fail_while_stopping(self) -> None:
        """Mark the run's stop as failed while the job, paused, can't answer: it is withdrawn."""
        self.failover.start_stream()
        send(self.source, signal.SIGSTOP)
        try:
            self.failover.trigger()
            self._wait_deferred("stop_source")
            self._mark_failed("stop_source")
            self.world.wait(
                "a stop that is withdrawn", lambda: read_fence(self.control) is None, 60
            )
        finally:
            send(self.source, signal.SIGCONT)
        self.wait_batches()

    def fail_without_mirror(self) -> None:
        """Stop the job at positions that MirrorMaker 2, which is down, has not copied."""
        self.world.stack.kill_connect()
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
        self.world.airflow.api.trigger(STREAM, folder)
        self.world.stack.start_connect()
        self.world.wait("MirrorMaker 2", self.world.stack.mirror_running)
        self.world.wait("the job's next batch", lambda: last_batch(self.source) > begun)

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
        self.world.wait("the job to run on", lambda: last_batch(self.source) > begun)
        self._expect("a fence", read_fence(self.control), None)

    def finish(self) -> None:
        """Clear the failed run as a whole: the job is stopped anew, and moved from there."""
        # A task translate that was cleared between two batches may have kept a plan; it is of other
        # positions, and whoever clears is told to delete it.
        for plan in (self.world.job_folder("target") / "plans").glob("*.json"):
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
            for task in TASKS:
                self.clear(task, downstream=downstream)
                self._expect_unmoved(moved)
        for tasks in self._orders(TASKS, orders):
            for task in tasks:
                self.clear(task, downstream=False)
                if self.chance.random() < 0.3:  # else while others still run
                    self.settle()
            self._expect_unmoved(moved)

    def clear(self, task: str, *, downstream: bool) -> None:
        """Clear a task."""
        self.world.progress(f"clear {task}{' with all after it' if downstream else ''}")
        self.world.airflow.api.clear(FAILOVER, self.failover.run_id, task, downstream=downstream)
        self.clears["with all after it" if downstream else "alone"] += 1

    def settle(self) -> str:
        """Wait for the run's end, and return its state."""
        api, ended = self.world.airflow.api, {"success", "failed"}
        seen: list[str] = []

        def has_ended() -> bool:
            seen.append(str(api.state(FAILOVER, self.failover.run_id)))
            return seen[-1] in ended

        self.world.wait("the end of what was cleared", has_ended)
        return seen[-1]

    def wait_batches(self) -> None:
        """Wait until the source job has begun and committed another batch."""
        begun = last_batch(self.source, "offsets")
        self.world.wait("another batch", lambda: last_batch(self.source) > begun)

    def _orders(self, tasks: Iterable[str], count: int) -> Iterator[list[str]]:
        for _ in range(count):
            self.orders += 1
            yield self.chance.sample(pool := list(tasks), len(pool))

    def _wait_deferred(self, task: str) -> None:
        api = self.world.airflow.api

        def is_deferred() -> bool:
            state = api.tasks(FAILOVER, self.failover.run_id)[task].state
            if state in {"success", "failed"}:
                raise ClearingError(f"{task} did not wait: {state}")
            return state == "deferred"

        self.world.wait(f"{task} to wait", is_deferred)

    def _mark_failed(self, task: str) -> None:
        self.world.airflow.api.mark_failed(FAILOVER, self.failover.run_id, task)
        self._expect("the run", self.settle(), "failed")

    def _stream_runs(self) -> list[str]:
        return sorted(self.world.airflow.api.runs(STREAM))

    def _moved(self) -> tuple[object, ...]:
        """Return what no clear of a finished run may change."""
        api, run_id = self.world.airflow.api, self.failover.run_id
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


def run(folder: Path, *, orders: int, seed: int) -> Found:
    """Fail a failover, clear it in many ways, finish it, and clear it in many ways again.

    Raises:
        ClearingError: A clear did what it must not.
        FailedRunError: A run failed that must not.
    """
    with World(folder, say) as world, DriverWatch(world) as watch:
        clearing = Clearing(
            world=world,
            failover=Failover(world),
            chance=random.Random(seed),  # noqa: S311 - orders
        )
        clearing.fail_while_stopping()
        clearing.fail_without_mirror()
        clearing.start_source_again()
        clearing.clear_failed(orders)
        clearing.finish()
        clearing.clear_finished(orders)
        clearing.failover.catch_up()
        report = clearing.failover.report()
    return Found(
        report=report,
        clears=clearing.clears,
        orders=clearing.orders,
        most=watch.most,
        looks=watch.looks,
    )


def say(line: str) -> None:
    """Print a line, with the time."""
    print(f"{datetime.now(UTC):%H:%M:%S}  {line}", flush=True)  # noqa: T201 - it speaks to whoever has started it


def main() -> int:
    """Run it as often as is asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=6, help="random orders of each run")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clearing-"))
    say(f"seed {args.seed}; whatever fails leaves its logs in {folder}")
    found = run(folder, orders=args.orders, seed=args.seed)
    say(str(found))
    if found.holds:
        shutil.rmtree(folder)
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
