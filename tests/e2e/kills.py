"""Kills of a failover's tasks, as an out-of-memory killer would; Airflow.kill is for its parts."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from demo.environment import Demo
from demo.failover import FAILOVER, Failover
from tests.e2e.drivers import source_job
from tests.soaks import add_figures


def kill_worker(failover: Failover, task_id: str) -> str:
    """SIGKILL the process that runs a task of the failover, as soon as there is one.

    Returns:
        The state that the task then has: failed, or up_for_retry where it has retries; skipped
        where it never ran.
    """
    airflow = failover.demo.airflow

    def killed() -> bool:
        task = airflow.api.tasks(FAILOVER, failover.run_id)[task_id]
        if task.state == "skipped":
            return True
        assert task.state != "success", f"{task_id} ended before it was killed"
        if task.state != "running" or task.pid is None:
            return False
        os.kill(task.pid, signal.SIGKILL)
        add_figures(kills=1)
        return True

    def ended() -> bool:
        seen.append(airflow.api.tasks(FAILOVER, failover.run_id)[task_id].state)
        return seen[-1] in {"failed", "up_for_retry", "skipped"}

    seen: list[str | None] = []
    failover.demo.wait(f"a worker in {task_id}", killed)
    failover.demo.wait(f"{task_id} to have failed", ended)
    return str(seen[-1])


def kill_each_worker(failover: Failover, tasks: Iterable[str]) -> None:
    """SIGKILL the worker of one task after the other; what has no retry left is cleared."""
    for task_id in tasks:
        if kill_worker(failover, task_id) == "failed":
            failover.demo.airflow.api.clear(FAILOVER, failover.run_id, task_id)


def kill_after_each(failover: Failover, tasks: Iterable[str], kill: Callable[[], None]) -> None:
    """Kill something after each task, before the next one has ended."""
    for task_id in tasks:
        failover.wait_for_task(task_id)
        kill()
        add_figures(kills=1)


@contextmanager
def service(demo: Demo) -> Iterator[Callable[[Failover], None]]:
    """Yield what starts the source job beside Airflow: no kill of Airflow's parts reaches it."""
    program = source_job(demo)

    def start(failover: Failover) -> None:
        program.start()
        failover.wait_delivered(has_ended=lambda: not program.running)

    try:
        yield start
    finally:
        program.kill()
