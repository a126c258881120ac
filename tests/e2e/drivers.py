"""The streaming job's drivers: which of them live, all the time, and what they have run."""

import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.spark.control import read_driver
from demo.environment import BUILD, ROOT, TOPIC, Demo
from stack import jars, spark
from stack.process import Program

LOOK_SECONDS = 0.4
"""Far less than a driver takes to start."""
SIDES = ("source", "target")


class DriverWatch:
    """Looks several times a second for the job's drivers, from its begin to its end.

    A driver is a JVM of spark-submit that was given the home of the job on one side.
    """

    def __init__(self, demo: Demo, *folders: Path) -> None:
        """Look for nothing yet; further folders of the job count by their names."""
        self._homes = {str(demo.location(side)): side for side in SIDES}
        self._homes |= {str(folder): folder.name for folder in folders}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.looks = 0
        self.most: Counter[str] = Counter()
        """The most drivers alive at once: of each side, and of both together."""

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()

    def alive(self) -> Counter[str]:
        """Return how many drivers live on each side."""
        return Counter(self._drivers().values())

    def _drivers(self) -> dict[psutil.Process, str]:
        found = {process: self._side(process) for process in psutil.process_iter()}
        drivers = {process: side for process, side in found.items() if side}
        not_counted = {None, *(process.pid for process in drivers)}
        return {
            process: side
            for process, side in drivers.items()
            if _parent(process) not in not_counted
        }

    def _run(self) -> None:
        before: dict[psutil.Process, str] = {}
        while not self._stopping.wait(LOOK_SECONDS):
            drivers = self._drivers()
            # What a driver has just forked bears its command until it runs another program. On a
            # busy machine that takes long: what two looks see lives.
            lives = Counter(side for process, side in drivers.items() if process in before)
            self.most |= lives | Counter({"together": lives.total()})
            before = drivers
            self.looks += 1

    def _side(self, process: psutil.Process) -> str | None:
        try:
            command = process.cmdline()
        except psutil.Error:  # it has ended
            return None
        # Another JVM, which names spark-submit's class too, only makes the command.
        if "org.apache.spark.deploy.SparkSubmit" not in command or not _is_java(command):
            return None
        return next((self._homes[each] for each in command if each in self._homes), None)


def _parent(process: psutil.Process) -> int | None:
    """Return the id of its parent; None where the process has ended meanwhile."""
    try:
        return int(process.ppid())
    except psutil.Error:
        return None


def _is_java(command: list[str]) -> bool:
    return command[0].endswith("java") and "org.apache.spark.launcher.Main" not in command


def last_batch(folder: Path, log: str = "commits") -> int:
    """Return the last batch that a job has committed, or begun (``offsets``); -1 if none."""
    names = [path.name for path in (folder / "checkpoint" / log).glob("*")]
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def files(folder: Path) -> frozenset[tuple[str, int]]:
    """Return every file of a job's checkpoint and output, with the time it was written."""
    folders = (folder / "checkpoint", folder / "output")
    files = [path for subfolder in folders for path in subfolder.rglob("*") if path.is_file()]
    return frozenset((str(path), path.stat().st_mtime_ns) for path in files)


def source_job(demo: Demo) -> Program:
    """Return the source job as a service manager starts it, beside Airflow."""
    return Program(
        "the source job",
        [
            *(Path(sys.executable).with_name("spark-submit"), "--master", "local[1]"),
            *("--py-files", py_files(), ROOT / "dags" / "jobs" / "orders_stream.py"),
            *("--bootstrap-servers", demo.stack.source, "--topic", TOPIC),
            *("--home", demo.job_folder("source")),
        ],
        log=demo.folder / "source-job.log",
        env=spark.configure(
            demo.folder / "again",
            jars.fetch(BUILD, progress=demo.progress).spark,
            Path(sys.executable),
        ),
    )


def send(folder: Path, number: signal.Signals) -> None:
    """Send a signal to a job's driver: its Python and its JVM."""
    driver = read_driver(str(folder / "control"))
    assert driver is not None
    for process in driver.processes:
        os.kill(process, number)
