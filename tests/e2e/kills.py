"""Kills of a failover's tasks, as an out-of-memory killer would; Airflow.kill is for its parts."""

import os
import signal

from demo.failover import FAILOVER, Failover

SECONDS = 180


def kill_worker(failover: Failover, task_id: str) -> str:
    """SIGKILL the process that runs a task of the failover, as soon as there is one.

    Returns:
        The state that the task then has: failed, or up_for_retry where it has retries.
    """
    airflow = failover.demo.airflow

    def killed() -> bool:
        task = airflow.api.tasks(FAILOVER, failover.run_id)[task_id]
        assert task.state not in {"success", "skipped"}, f"{task_id} ended before it was killed"
        if task.state != "running" or task.pid is None:
            return False
        os.kill(task.pid, signal.SIGKILL)
        return True

    def ended() -> bool:
        seen.append(airflow.api.tasks(FAILOVER, failover.run_id)[task_id].state)
        return seen[-1] in {"failed", "up_for_retry"}

    seen: list[str | None] = []
    failover.demo.wait(f"a worker in {task_id}", killed, SECONDS)
    failover.demo.wait(f"{task_id} to have failed", ended, SECONDS)
    return str(seen[-1])
