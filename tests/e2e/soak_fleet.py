"""Moves light jobs, one of them broken, while Airflow is killed; ``make soak NAME=fleet``.

It prints how long the fleet and each job took. ``--jobs`` says how many there are, in three waves;
``--undisturbed`` kills nothing and breaks nothing.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.e2e.fleet_stage import FLEET, FleetStage
from tests.soaks import add_figures

WAVES = 3


def main() -> None:
    """Move a fleet, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=9)
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument("--undisturbed", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    with FleetStage(folder, options.jobs, stop_timeout=180.0).running() as stage:
        stage.write_jobs({name: wave_of(stage, name) for name in stage.names})
        began = time.monotonic()
        if options.undisturbed:
            run_id = stage.trigger(at_once=options.at_once)
            assert stage.wait_end(run_id) == "success"
            runs = [run_id]
        else:
            runs = disturbed(stage, options.at_once)
        say(f"{options.jobs} jobs: {time.monotonic() - began:.0f} s in {len(runs)} runs")
        for run_id in runs:
            tell(stage, run_id)
        stage.check_all_once()
        say(f"{options.jobs} jobs: every record was written once, by one job at a time")
        add_figures(jobs=options.jobs, runs=len(runs), records_written_once=stage.written)


def say(text: str) -> None:
    """Tell the person who waits."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def wave_of(stage: FleetStage, name: str) -> int:
    """Spread the jobs over the waves."""
    return 1 + stage.names.index(name) * WAVES // len(stage.names)


def disturbed(stage: FleetStage, at_once: int) -> list[str]:
    """Break a job of the second wave, kill the scheduler and a worker, and run twice."""
    broken = len(stage.names) // 2
    stage.cluster.jobs[broken].is_deaf.set()
    first = stage.trigger(at_once=at_once)
    stage.wait("the first wave to be at work", lambda: ended(stage, first, "wave_1.move.check"))
    stage.airflow.kill("scheduler")
    stage.wait("the second wave", lambda: ended(stage, first, "wave_2.turn"), 3600)
    kill_a_worker(stage, first, "wave_2.")
    assert stage.wait_end(first) == "failed"
    outcomes = stage.outcomes(first)
    say(f"after the first run: {outcomes}")
    assert outcomes[stage.names[broken]] == "withdrawn"
    assert {outcomes[name] for name in stage.names if wave_of(stage, name) == 1} == {"moved"}
    assert {outcomes[name] for name in stage.names if wave_of(stage, name) == WAVES} == {
        "not begun"
    }
    stage.cluster.jobs[broken].is_deaf.clear()
    second = stage.trigger(at_once=at_once)
    assert stage.wait_end(second) == "success"
    outcomes = stage.outcomes(second)
    assert all(
        outcomes[name] == "there already" for name in stage.names if wave_of(stage, name) == 1
    )
    assert outcomes[stage.names[broken]] == "moved"
    return [first, second]


def ended(stage: FleetStage, run_id: str, task_id: str) -> int:
    """Return how many tasks of an id have succeeded."""
    tasks = stage.airflow.api.instances(FLEET, run_id)
    return sum(each.task_id == task_id and each.state == "success" for each in tasks)


def kill_a_worker(stage: FleetStage, run_id: str, prefix: str) -> None:
    """SIGKILL the process of a task that runs."""

    def killed() -> bool:
        for task in stage.airflow.api.instances(FLEET, run_id):
            if task.task_id.startswith(prefix) and task.state == "running" and task.pid:
                say(f"kills the worker of {task.task_id}[{task.map_index}]")
                os.kill(task.pid, signal.SIGKILL)
                return True
        return False

    stage.wait("a worker to kill", killed)


def tell(stage: FleetStage, run_id: str) -> None:
    """Print what a run took."""
    jobs = stage.report(run_id)["jobs"]
    seconds = sorted(job["down_seconds"] for job in jobs if job["down_seconds"] is not None)
    times = f"{seconds[0]:.0f} / {median(seconds):.0f} / {seconds[-1]:.0f} s" if seconds else "-"
    say(
        f"run {run_id}: {sum(job['outcome'] == 'moved' for job in jobs)} moved, "
        f"{sum(job['outcome'] == 'there already' for job in jobs)} were there already; "
        f"each was down for (least / median / most) {times}"
    )


if __name__ == "__main__":
    main()
