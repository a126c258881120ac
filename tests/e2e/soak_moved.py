"""A source job that wakes up, or is started again, beside the job on the target.

``make soak NAME=moved`` runs it; it takes too long for each CI run.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.environment import Demo
from demo.failover import FAILOVER, STREAM, Failover
from stack.process import ProgramError
from tests.e2e.drivers import DriverWatch, files, last_batch, send, source_job
from tests.soaks import LONGEST, add_figures

pytestmark = pytest.mark.timeout(LONGEST)

START_SECONDS = 600
"""What a driver is given to end by itself: many JVMs may share the machine."""
HEARTBEAT_TIMEOUT = 12
"""Seconds; the job's lease and a heartbeat are 10."""


MOVED = "JobMovedError: This job was moved to"


def _between_batches(folder: Path) -> bool:
    return last_batch(folder, "offsets") == last_batch(folder)


def _within_a_batch(folder: Path) -> bool:
    """Tell whether a batch writes to the sink: one that only commits may do so when it wakes."""
    begun = last_batch(folder, "offsets")
    is_written = (folder / "output" / f"batch_id={begun}" / "_SUCCESS").exists()
    return begun > last_batch(folder) and not is_written


def _pause(demo: Demo, folder: Path, moment: Callable[[Path], bool]) -> None:
    """Stop the source driver's processes at a moment; try again where it was over by then."""
    while True:
        demo.wait("the moment", lambda: moment(folder))
        send(folder, signal.SIGSTOP)
        if moment(folder):
            return
        send(folder, signal.SIGCONT)


def _log(demo: Demo, run_id: str) -> str:
    """Return all that a driver which Airflow has started said."""
    logs = demo.airflow.home.glob(f"logs/dag_id={STREAM}/run_id={run_id}/task_id=stream/*.log")
    return "".join(path.read_text(errors="replace") for path in logs)


def _start_again(demo: Demo, times: int) -> None:
    """Start the source job again and again; each driver ends by itself, and says why."""
    program = source_job(demo)
    for number in range(1, times + 1):
        program.start()
        with pytest.raises(ProgramError):
            program.wait_end(seconds=START_SECONDS)
        assert program.log.read_text().count(MOVED) == number


@pytest.mark.parametrize(("moment", "starts"), [(_between_batches, 3), (_within_a_batch, 1)])
def test_a_driver_that_was_paused_or_is_started_again_runs_no_batch(
    tmp_path: Path, moment: Callable[[Path], bool], starts: int
) -> None:
    """Taken for gone and moved, it ends by itself when it wakes; so does each driver after it.

    The target job runs meanwhile. Nothing is lost, and no more repeated than the batch which the
    pause has cut in two, and which the plan announces. A driver that wakes commits no batch; it may
    begin one before it sees that it was moved.
    """
    demo = Demo(tmp_path, print, heartbeat_timeout=HEARTBEAT_TIMEOUT)
    with demo, DriverWatch(demo) as watch:
        failover, source = Failover(demo), demo.job_folder("source")
        stream = failover.start_stream()
        _pause(demo, source, moment)
        begun, committed = last_batch(source, "offsets"), last_batch(source)
        try:
            # A batch that is read again is above the thresholds.
            failover.trigger(approve="never")
            failover.wait_for_task("start_target")
            failover.move_producer()
            failover.wait_for_end()
        finally:
            send(source, signal.SIGCONT)
        demo.wait("the driver's end", lambda: not watch.alive()["source"])
        # Airflow tries the job's task again, and each try starts a driver.
        demo.wait("its run's end", lambda: demo.airflow.api.state(STREAM, stream) == "failed")
        assert MOVED in _log(demo, stream)
        assert last_batch(source) == committed
        assert last_batch(source, "offsets") - begun in {0, 1}
        stopped = demo.airflow.api.xcom(FAILOVER, failover.run_id, "stop_source")
        assert stopped["proof"] == "silent"

        left = files(source)
        _start_again(demo, starts)
        assert files(source) == left
        assert watch.alive()["target"] == 1
        failover.catch_up()
        report = failover.report()

    add_figures(
        failovers=1,
        drivers_started_again=starts,
        lost=report.lost,
        read_again=report.duplicated,
        announced=report.plan.max_reread or 0,
    )
    assert (watch.most["source"], watch.most["target"]) == (1, 1)
    assert report.lost == 0
    assert report.holds
    assert begun > committed or report.duplicated == report.plan.max_reread == 0
