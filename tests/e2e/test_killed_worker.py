"""A failover whose worker is killed in one task after the other."""

from pathlib import Path

import pytest

from demo.environment import Demo
from demo.failover import FAILOVER, STREAM, Failover
from tests.e2e.kills import kill_worker

pytestmark = pytest.mark.timeout(900)

KILLED = ("stop_source", "read_positions", "translate", "submit_target")


def test_killed_tasks_run_again_to_the_same_end(tmp_path: Path) -> None:
    """With stop, read, translate and submit killed and run again: one target job, nothing lost."""
    with Demo(tmp_path, print) as demo:
        failover = Failover(demo)
        failover.start_stream()
        failover.trigger()
        for task_id in KILLED:
            if kill_worker(failover, task_id) == "failed":
                demo.airflow.api.clear(FAILOVER, failover.run_id, task_id)

        failover.wait_for_task("submit_target")
        failover.move_producer()
        failover.wait_for_end()
        failover.catch_up()
        report = failover.report()

        assert demo.airflow.api.runs(STREAM).count(f"{FAILOVER}__{failover.run_id}") == 1
        assert len(demo.airflow.api.runs(STREAM)) == 2

    assert report.lost == 0
    assert report.holds
