"""Ending the processes of a driver on this machine."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.spark.control import Driver
from airflow_mm2_offsets.spark.processes import end_driver

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""
PATIENT = "import signal; print('ready', flush=True); signal.pause()"

Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a Python that runs until it is killed."""
    started = []

    def run(code: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield run
    for process in started:
        with process:
            process.kill()


def _start_of(process: "subprocess.Popen[str]") -> int:
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[19])


def _driver(*processes: "subprocess.Popen[str]", **changes: object) -> Driver:
    described = {
        "application_id": "app-1",
        "query_id": "q",
        "run_id": "r",
        "host": socket.gethostname(),
        "pid": 1,
        "heartbeat": 1,
        "processes": {each.pid: _start_of(each) for each in processes},
    }
    return Driver(**(described | changes))  # type: ignore[arg-type]


def test_all_of_a_driver_is_ended(start: Start) -> None:
    """TERM ends a process that obeys it, KILL one that does not."""
    patient, stubborn = start(PATIENT), start(STUBBORN)
    end_driver(_driver(patient, stubborn), grace=0.3)
    assert (patient.wait(5), stubborn.wait(5)) == (-signal.SIGTERM, -signal.SIGKILL)


def test_a_process_that_has_the_id_of_another_is_spared(start: Start) -> None:
    """A process with the same id and another start time is not killed."""
    other = start(PATIENT)
    end_driver(_driver(processes={other.pid: _start_of(other) - 1}))
    assert other.poll() is None


def test_a_driver_that_is_gone_is_no_error(start: Start) -> None:
    """A retry that finds no process to kill succeeds."""
    process = start(PATIENT)
    driver = _driver(process)
    end_driver(driver)
    process.wait(5)
    end_driver(driver)


def test_a_driver_elsewhere_can_not_be_ended(start: Start) -> None:
    """The error names the driver's host; a process with its id on this machine is spared."""
    process = start(PATIENT)
    with pytest.raises(StopError, match=r"on far-away \(process 1\).*run this task on far-away"):
        end_driver(_driver(process, host="far-away"))
    assert process.poll() is None


def test_a_driver_that_did_not_describe_its_processes(start: Start) -> None:
    """An older release gives only the process id, which may be reused: nothing is killed."""
    process = start(PATIENT)
    with pytest.raises(StopError, match="can't be told from another process"):
        end_driver(_driver(pid=process.pid))
    assert process.poll() is None
