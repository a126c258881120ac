"""Workers and Airflow's parts are killed between each two steps; ``make soak NAME=kills``.

In the planned mode and in a disaster. The end must be the same as without kills: one target job,
nothing lost beyond what was told, and never two jobs. The parts take turns: which of them dies
after a step is drawn, and differs between the two modes. The source job runs beside Airflow, as a
service does: the scheduler's death would end it too.
"""

import random
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

from demo.disaster import Disaster, make_demo
from demo.environment import Demo
from demo.failover import FAILOVER, STREAM, Failover
from tests.e2e.drivers import DriverWatch
from tests.e2e.kills import kill_after_each, kill_each_worker, service
from tests.soaks import LONGEST, add_figures

pytestmark = pytest.mark.timeout(LONGEST)

BEFORE_START = ("check", "stop_source", "wait_replicated", "translate", "approve")
"""The steps before the point of no return; a worker can be killed in each that runs."""
START = "start_target"
PARTS = ("scheduler", "triggerer", "dag-processor", "api-server")
FIRST = random.randrange(len(PARTS))  # noqa: S311 - whose turn it is


def _killer(failover: Failover, first: int | None) -> Callable[[tuple[str, ...]], None]:
    """Return what kills a worker in each of some steps, or a part of Airflow after each."""
    if first is None:
        return partial(kill_each_worker, failover)
    turns = cycle(PARTS[first:] + PARTS[:first])
    return partial(kill_after_each, failover, kill=lambda: failover.demo.airflow.kill(next(turns)))


def _expect_one_job(demo: Demo, failover: Failover, watch: DriverWatch) -> None:
    """The target job was triggered once, and no side ever had two drivers."""
    (run_id,) = demo.airflow.api.runs(STREAM)
    assert run_id.startswith(f"{FAILOVER}__{failover.run_id}__")
    assert (watch.most["source"], watch.most["target"]) == (1, 1), watch.most


@pytest.mark.parametrize("first", [None, FIRST], ids=["worker", "parts"])
def test_planned(first: int | None, tmp_path: Path) -> None:
    """Killed between each two steps: the job is moved once, nothing lost, nothing repeated."""
    with Demo(tmp_path, print) as demo, service(demo) as start, DriverWatch(demo) as watch:
        failover = Failover(demo)
        start(failover)
        failover.trigger(approve="never")
        kill = _killer(failover, first)
        kill((*BEFORE_START, START))
        failover.wait_for_task(START)
        failover.move_producer()
        kill(("wait_started",))
        failover.wait_for_end()
        failover.catch_up()
        failover.verify()
        report = failover.report()
        _expect_one_job(demo, failover, watch)

    add_figures(planned=1, lost=report.lost, read_again=report.duplicated)
    assert (report.lost, report.duplicated) == (0, 0)
    assert report.holds


@pytest.mark.parametrize("first", [None, (FIRST + 2) % len(PARTS)], ids=["worker", "parts"])
def test_disaster(first: int | None, tmp_path: Path) -> None:
    """Killed between each two steps: the job is started once, and the truth is as told."""
    with make_demo(tmp_path, print) as demo, service(demo) as start, DriverWatch(demo) as watch:
        disaster = Disaster(demo)
        disaster.prepare(start=lambda: start(disaster.failover))
        disaster.lose_source()
        disaster.trigger()
        kill = _killer(disaster.failover, first)
        kill((*BEFORE_START, START))
        disaster.finish()
        disaster.failover.catch_up()
        report = disaster.report()
        _expect_one_job(demo, disaster.failover, watch)

    add_figures(disasters=1, not_as_told=len(report.comparison.broken))
    assert report.comparison.broken == []
