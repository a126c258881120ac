"""Carries out a failover and proves it.

``run`` moves the job between two clusters that are up, ``disaster`` after the source was killed;
``up`` and ``down`` start and stop everything to look around in.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from demo import disaster, failover
from demo.background import READY, AlreadyUpError, Background
from demo.disaster import Disaster, DisasterReport, make_demo
from demo.environment import BUILD, Demo
from demo.failover import FailedRunError, Failover
from demo.picture import write_picture
from demo.report import Report
from demo.screen import Screen
from demo.steps import Steps
from stack.local import Ports
from stack.process import ProgramError
from stack.waiting import WaitTimeoutError

REPORT = BUILD / "demo-report.json"
DISASTER_REPORT = BUILD / "demo-disaster-report.json"
PICTURE = BUILD / "demo" / "switch.svg"
KEPT_RUNS = 3
FIXED_PORTS = Ports(
    source=19092, source_controller=19093, target=29092, target_controller=29093, connect=18083
)
AIRFLOW_PORT = 18080
STARTING = "start everything"
say = Screen(sys.stdout)


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    kinds = ["run", "disaster", "up", "down", "serve"]
    parser.add_argument("what", choices=kinds, nargs="?", default="run")
    # On SIGTERM it stops its servers first, as on Ctrl-C.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    background = Background(BUILD / "up", say)
    try:
        match parser.parse_args().what:
            case "up":
                return 0 if background.up() else 1
            case "down":
                background.down()
                return 0
            case "serve":
                with background.locked():
                    serve()
            case "disaster":
                return run_disaster()
            case _:
                return run()
    except (ProgramError, WaitTimeoutError, FailedRunError, AlreadyUpError) as error:
        say(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; everything is stopped")
        return 128 + signal.SIGINT


def run() -> int:
    """Carry out the failover and print the proof; return 0 if it holds."""
    began = time.monotonic()
    steps = Steps((STARTING, *failover.STEPS), say)
    with _started(Demo(_new_folder("demo"), say), steps) as demo:
        moved = Failover(demo, steps=steps)
        report = moved.run()
        switch = moved.switch(report)
        if switch.is_complete:
            write_picture(switch, PICTURE)
    code = _show(report, REPORT, began)
    picture = PICTURE if switch.is_complete else "not drawn: the job wrote nothing on one side"
    print(f"The picture of the switch is {picture}", flush=True)
    return code


def run_disaster() -> int:
    """Lose the source, fail over, print forecast and truth; return 0 if the forecast holds."""
    began = time.monotonic()
    steps = Steps((STARTING, *disaster.STEPS), say)
    with _started(make_demo(_new_folder("disaster"), say), steps) as demo:
        report = Disaster(demo, steps=steps).run()
    return _show(report, DISASTER_REPORT, began)


@contextmanager
def _started(demo: Demo, steps: Steps) -> Iterator[Demo]:
    """Start a demo as the first step, and stop it at the end."""
    with ExitStack() as running:
        with steps.step(STARTING):
            running.enter_context(demo)
        yield demo


def _show(made: Report | DisasterReport, file: Path, began: float) -> int:
    report = replace(made, seconds={**made.seconds, "in all": time.monotonic() - began})
    report.write(file)
    print(f"\n{report}\n\nThe report is in {file}", flush=True)
    return 0 if report.holds else 1


def serve() -> NoReturn:
    """Keep everything running, with the job on the source, until told to stop."""
    prepared = Demo(_new_folder("up"), say, ports=FIXED_PORTS, airflow_port=AIRFLOW_PORT)
    steps = Steps((STARTING, failover.STREAMING), say)
    with _started(prepared, steps) as demo:
        with steps.step(failover.STREAMING):
            Failover(demo).start_stream()
        user, password = demo.airflow.login
        say(f"Airflow   {demo.airflow.url}  user {user}, password {password}")
        say(f"Clusters  source {demo.stack.source}, target {demo.stack.target}")
        say(f"Connect   {demo.stack.connect_url}")
        say(
            "The job orders_stream runs on the source. Trigger mm2_failover as its form stands: it "
            f"moves the job from {demo.job_folder('source')} to {demo.job_folder('target')}"
        )
        say("`make down` stops everything")
        say(READY)
        while True:
            demo.airflow.check()
            time.sleep(1)


def _new_folder(kind: str) -> Path:
    """Return a folder for one run, and remove the oldest ones."""
    runs = BUILD / kind
    runs.mkdir(parents=True, exist_ok=True)
    for old in sorted(path for path in runs.iterdir() if path.is_dir())[: -KEPT_RUNS + 1]:
        shutil.rmtree(old, ignore_errors=True)
    folder = runs / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir()
    return folder


if __name__ == "__main__":
    sys.exit(main())
