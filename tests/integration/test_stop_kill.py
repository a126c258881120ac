"""StopSparkStreamingOperator kills drivers: real processes, and programs that end them."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_mm2_offsets.spark.control import StopProof, read_acknowledgement
from tests.unit.operators.clusters import define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.stops import REQUEST_ID, stop_task
from tests.unit.operators.worker import Worker, events, rebuild


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])


def _describe(job: Job, process: "subprocess.Popen[bytes]", heartbeat: int = 1) -> None:
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    started = int(stat.rpartition(")")[2].split()[19])
    processes = {str(process.pid): started}
    job.beat(
        heartbeat,
        host=socket.gethostname(),
        pid=process.pid,
        processes=processes,
        lease=0.1,
    )


def test_a_driver_that_does_not_stop_is_killed_if_allowed(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First a stop is requested, then the driver is killed; its silence after that is the proof."""
    define(monkeypatch, "spark_here", conn_type="spark", host="local[1]")
    worker.conf = {"folder": str(job.folder)}
    home = {"folder": str(job.folder), "spark_conn_id": "spark_here"}
    task = stop_task(job={"homes": {"east": home}, "kill_after": 0.1})
    with _sleeper() as process:
        _describe(job, process)
        asked = worker.run(task)
        (event,) = events(rebuild(asked))
        assert "timeout" in event
        assert process.poll() is None
        killed = worker.run(task, after=asked, event=event)
        assert process.wait(5) == -signal.SIGTERM
    (event,) = events(rebuild(killed))
    worker.run(task, after=killed, event=event)
    assert worker.xcoms["stop", "return_value"]["proof"] == "killed"
    answer = read_acknowledgement(str(job.control), REQUEST_ID)
    assert answer is not None
    assert answer.proof is StopProof.KILLED
