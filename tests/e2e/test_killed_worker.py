"""A failover whose worker is killed in one task after the other."""

from pathlib import Path

import pytest

from demo.failover import FAILOVER, STREAM, Failover
from demo.world import World
from tests.e2e.kills import kill_worker

pytestmark = pytest.mark.timeout(900)

KILLED = ("stop_source", "read_positions", "translate", "submit_target")


def test_killed_tasks_run_again_to_the_same_end(tmp_path: Path) -> None:
    """With stop, read, translate and submit killed and run again: one target job, nothing lost."""
    with World(tmp_path, print) as world:
        failover = Failover(world)
        failover.start_stream()
        failover.trigger()
        for task_id in KILLED:
            if kill_worker(failover, task_id) == "failed":
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
