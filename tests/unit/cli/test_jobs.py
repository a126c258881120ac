"""``jobs``: where each job runs, its history, and a person's word."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from upath import UPath

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.jobs_file import parse_jobs
from airflow_mm2_offsets.moves.journal import Event, FenceState
from airflow_mm2_offsets.moves.move import Mover

RUN = "mm2_failover:manual__1"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """A file of two jobs, of which one was moved."""
    file = tmp_path / "jobs.json"
    homes = {side: f"{tmp_path}/{side}/{{name}}" for side in ("east", "west")}
    defaults = {"homes": homes, "dag": "stream", "records": f"{tmp_path}/records"}
    file.write_text(
        json.dumps({"defaults": defaults, "jobs": [{"name": "orders"}, {"name": "clicks"}]})
    )
    orders, _ = parse_jobs(file.read_text(), str(file))
    for home in orders.homes:
        Path(home.checkpoint).mkdir(parents=True)
    mover = Mover(orders, RUN, PLANNED, UPath)
    mover.ask()
    mover.record(Event.PROVE)
    mover.record(Event.HAND_OVER, starting_offsets='{"orders":{"0":7}}')
    mover.record(Event.ARRIVE)
    return file


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["jobs", *map(str, arguments)])


def test_the_list_says_where_each_job_runs(jobs: Path) -> None:
    """By the journals; a job that never moved is at its first home."""
    shown = _run("list", "--jobs", jobs)
    assert shown.exit_code == 0, shown.output
    orders, clicks = shown.stdout.splitlines()
    assert orders.startswith(f"orders: at west ({jobs.parent}/west/orders) since 20")
    assert clicks == f"clicks: at east ({jobs.parent}/east/clicks)"
    (moved, _) = json.loads(_run("list", "--jobs", jobs, "--json").stdout)["jobs"]
    assert (moved["cluster"], moved["is_moving"]) == ("west", False)
    assert moved["moves"][0]["state"] == "moved"


def test_the_history_of_a_job(jobs: Path) -> None:
    """Each move with its state and the next step."""
    shown = _run("show", "orders", "--jobs", jobs)
    assert "(planned, east (" in shown.stdout
    assert "Next: orders runs at west (" in shown.stdout
    assert "did you mean orders" in _run("show", "oders", "--jobs", jobs).output


def test_a_person_says_where_a_job_runs(jobs: Path) -> None:
    """Its fences follow; a word about an older journal is refused."""
    stale = _run("settle", "orders", "--at", "east", "--seen", 2, "--jobs", jobs)
    assert stale.exit_code != 0
    assert "look at the job again" in stale.output
    settled = _run("settle", "orders", "--at", "east", "--jobs", jobs)
    assert settled.exit_code == 0, settled.output
    states = [
        read_fence(UPath(jobs.parent / side / "orders" / "control")) for side in ("east", "west")
    ]
    assert [each and each.state for each in states] == [FenceState.OPEN, FenceState.MOVED]
    assert "orders: at east" in _run("list", "--jobs", jobs).stdout


def test_a_fence_that_is_missing_is_written(jobs: Path) -> None:
    """A storage was lost, and has come back."""
    control = jobs.parent / "east" / "orders" / "control"
    for path in (control / "fence").iterdir():
        path.unlink()
    assert read_fence(UPath(control)) is None
    written = _run("fence", "orders", "--jobs", jobs)
    assert written.exit_code == 0, written.output
    fence = read_fence(UPath(control))
    assert fence is not None
    assert fence.state is FenceState.MOVED
    assert "has never moved" in _run("fence", "clicks", "--jobs", jobs).stdout
