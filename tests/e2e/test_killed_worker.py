"""A failover whose worker is killed in one task after the other."""

import os
import signal
from pathlib import Path

import pytest

from demo.failover import FAILOVER, STREAM, Failover
from demo.world import World
from stack.waiting import wait_until

pytestmark = pytest.mark.timeout(900)

KILLED = ("stop_source", "read_positions", "translate", "submit_target")
CLEARED = KILLED[:3]
"""Somebody does not wait for Airflow to try them again; the last one it does by itself."""
LOST = {"failed", "up_for_retry"}


def kill_worker(failover: Failover, task_id: str) -> None:
    """SIGKILL the process that runs a task, as soon as there is one, and see the task fail."""
    airflow = failover.world.airflow

    def killed() -> bool:
        task = airflow.api.tasks(FAILOVER, failover.run_id)[task_id]
        assert task.state not in {"success", "skipped"}, f"{task_id} ended before it was killed"
        if task.state != "running" or task.pid is None:
            return False
        os.kill(task.pid, signal.SIGKILL)
        return True

    wait_until(killed, f"a worker in {task_id}", seconds=180)
    wait_until(
        lambda: airflow.api.tasks(FAILOVER, failover.run_id)[task_id].state in LOST,
        f"{task_id} to have failed",
        seconds=180,
    )


def test_killed_tasks_run_again_to_the_same_end(tmp_path: Path) -> None:
    """With stop, read, translate and submit killed and run again: one target job, nothing lost."""
    with World(tmp_path, print) as world:
        failover = Failover(world)
        failover.start_stream()
        failover.trigger()
        for task_id in KILLED:
            kill_worker(failover, task_id)
            if task_id in CLEARED:
                world.airflow.api.clear(FAILOVER, failover.run_id, task_id)

        failover.wait_for_task("submit_target")
        failover.move_producer()
        failover.wait_for_end()
        failover.catch_up()
        report = failover.report()

        assert world.airflow.api.runs(STREAM).count(f"{FAILOVER}__{failover.run_id}") == 1
        assert len(world.airflow.api.runs(STREAM)) == 2

    assert report.lost == 0
    assert report.holds
