"""StopSparkStreamingOperator kills drivers: real processes, and programs that end them."""

import os
import signal
import socket
import subprocess
import sys
import time
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
    task = stop_task(kill_after=0.1, spark_conn_id="spark_here")
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


def test_a_job_without_stop_control_is_killed(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed by the given id after kill_after; a still checkpoint is the proof."""
    yarn = job.folder / "yarn"
    yarn.write_text(f'#!/bin/sh\necho "$@" >> {job.folder}/called\n')
    yarn.chmod(0o755)
    monkeypatch.setenv("PATH", f"{job.folder}:{os.environ['PATH']}")
    monkeypatch.setattr("airflow_mm2_offsets.operators.stop.UNSEEN_END_SECONDS", 0.2)
    define(monkeypatch, "spark_default", conn_type="spark", host="yarn")
    worker.conf = {"folder": str(job.folder)}
    task = stop_task(control=None, kill_after=0.3, driver_id="application_1_2")
    began = time.monotonic()
    waiting = worker.run(task)
    (event,) = events(rebuild(waiting))
    assert time.monotonic() - began >= 0.3
    assert "has stood still for" in event["timeout"]
    assert not (job.folder / "called").exists()
    deferred = worker.run(task, after=waiting, event=event)
    called = (job.folder / "called").read_text().splitlines()
    assert called == [f"application -{verb} application_1_2" for verb in ("kill", "status")]
    began = time.monotonic()
    (event,) = events(rebuild(deferred))
    assert time.monotonic() - began >= 0.2
    worker.run(task, after=deferred, event=event)
    result = worker.xcoms["stop", "return_value"]
    assert (result["proof"], result["application_id"]) == ("killed", None)
    assert job.requested_stop() is None
