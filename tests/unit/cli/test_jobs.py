"""``jobs`` and ``stop``: where each job runs, its history, a person's word, a stop by hand."""

import getpass
import json
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from upath import UPath

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.jobs_file import parse_jobs
from airflow_mm2_offsets.moves.journal import Event, FenceState, Journal
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.moves.overview import overview_of
from tests.unit.operators.spark_job import Job

RUN = "mm2_failover:manual__1"


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@dataclass(frozen=True, kw_only=True)
class Files:
    """A file of two jobs, of which ``orders`` was moved from east to west."""

    folder: Path
    orders: SparkJob

    @property
    def jobs(self) -> Path:
        return self.folder / "jobs.json"

    def home(self, side: str) -> Path:
        return self.folder / side / "orders"

    def states(self) -> list[FenceState | None]:
        """Return what the fences at east and west say."""
        fences = [read_fence(UPath(self.home(side) / "control")) for side in ("east", "west")]
        return [None if each is None else each.state for each in fences]

    def run(self, *arguments: object) -> Result:
        """Run ``jobs`` with the file."""
        return _run("jobs", *arguments, "--jobs", self.jobs)

    def answer(self, *arguments: object) -> Any:  # noqa: ANN401 - JSON
        result = self.run(*arguments, "--json")
        assert result.exit_code == ExitCode.OK, result.output
        return json.loads(result.stdout)

    def lose_east(self) -> None:
        """Put a file in the place of the storage."""
        self.home("east").parent.rename(self.folder / "lost")
        self.home("east").parent.write_text("no folder")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    homes = {side: f"{tmp_path}/{side}/{{name}}" for side in ("east", "west")}
    defaults = {"homes": homes, "dag": "stream", "records": f"{tmp_path}/records"}
    text = json.dumps({"defaults": defaults, "jobs": [{"name": "orders"}, {"name": "clicks"}]})
    (tmp_path / "jobs.json").write_text(text)
    orders, _ = parse_jobs(text, "jobs.json")
    for home in orders.homes:
        Path(home.checkpoint).mkdir(parents=True)
    mover = Mover(orders, RUN, PLANNED, UPath)
    move = mover.ask()
    move = mover.record(move, Event.PROVE, proof="acknowledged")
    move = mover.record(move, Event.NOTE, numbers={"lost_at_most": 3, "refused": 0})
    move = mover.record(move, Event.HAND_OVER, starting_offsets='{"orders":{"0":7}}')
    mover.record(move, Event.ARRIVE)
    return Files(folder=tmp_path, orders=orders)


def test_the_list_says_where_each_job_runs(files: Files) -> None:
    """By the journals; a job that never moved is at its first home."""
    shown = files.run("list")
    assert shown.exit_code == 0, shown.output
    orders, clicks = shown.stdout.splitlines()
    assert orders.startswith(f"orders: at west ({files.home('west')}) since 20")
    assert clicks == f"clicks: at east ({files.folder}/east/clicks)"
    moved, never = files.answer("list")["jobs"]
    assert (moved["cluster"], moved["is_moving"], moved["last_entry"]) == ("west", False, 5)
    assert (never["since"], never["last_entry"], never["moves"]) == (None, 0, [])
    assert moved["moves"][0]["state"] == "moved"


def test_a_broken_journal_hides_no_other_job(files: Files) -> None:
    """Its line says why, and the exit code that something is missing."""
    (Path(files.orders.journal) / "000002.json").unlink()
    shown = files.run("list")
    assert shown.exit_code == ExitCode.UNUSABLE
    orders, clicks = shown.stdout.splitlines()
    assert orders.startswith("orders: not known: ")
    assert "000002.json" in orders
    assert clicks == f"clicks: at east ({files.folder}/east/clicks)"


def test_a_move_that_a_person_has_ended(files: Files) -> None:
    """Its status says so, and where the job runs; its downtime ends there."""
    mover = Mover(files.orders, "mm2_failover:manual__2", PLANNED, UPath)
    mover.record(mover.ask(), Event.PROVE, proof="acknowledged")
    assert files.run("settle", "orders", "--at", "west", "--seen", 7).exit_code == 0
    last = files.answer("show", "orders")["moves"][-1]
    assert (last["state"], last["run"]) == ("settled", "mm2_failover:manual__2")
    assert last["next"] == f"A person has said where orders runs: {files.home('west')}."
    overview = overview_of(files.orders, UPath)
    (settled,) = (each.at for each in overview.entries if each.event is Event.SETTLE)
    assert overview.moves[-1].downtime(settled + timedelta(days=1)) == (
        overview.moves[-1].downtime(settled)
    )


def test_a_job_with_its_last_move(files: Files) -> None:
    """State, numbers and the next step; a misspelt name is corrected."""
    shown = files.run("show", "orders").stdout
    assert "(planned, east (" in shown
    assert "lost at most: 3" in shown
    assert "Next: orders runs at west (" in shown
    assert "did you mean orders" in files.run("show", "oders").output


def test_a_job_whose_move_is_under_way(files: Files) -> None:
    """The list has the move's state on the job's line; ``show`` says each thing once."""
    mover = Mover(files.orders, "mm2_failover:manual__2", PLANNED, UPath)
    move = mover.record(mover.ask(), Event.PROVE, proof="acknowledged")
    stopped = files.run("list").stdout.splitlines()[0]
    assert stopped.startswith(f"orders: at west ({files.home('west')}) since 20")
    there = f"{files.home('east')}/2"
    assert f"; planned move to east ({there}): stopped since 20" in stopped
    shown = files.run("show", "orders").stdout.splitlines()
    assert [line.count("stopped") for line in shown[:2]] == [0, 1]
    move = mover.record(move, Event.HAND_OVER, starting_offsets='{"orders":{"0":7}}')
    handed = move.entry(Event.HAND_OVER)
    assert handed is not None
    since = handed.at.isoformat(timespec="seconds")
    assert files.run("list").stdout.splitlines()[0] == (
        f"orders: at east ({there}) since {since}; planned move to east ({there}): handed over "
        f"since {since}"
    )


def test_the_history_is_the_journal(files: Files) -> None:
    """Each entry with who, where and what was decided; also without a file of jobs."""
    shown = files.run("history", "orders").stdout
    entries = [line for line in shown.splitlines() if not line.startswith(" ")]
    assert [line.split()[2] for line in entries] == ["ask", "prove", "note", "hand", "arrive"]
    assert RUN in shown
    assert "proof: acknowledged" in shown
    assert "lost at most: 3, refused: 0" in shown or "refused: 0, lost at most: 3" in shown
    by_journal = _run("jobs", "history", "--journal", files.orders.journal, "--json")
    assert json.loads(by_journal.stdout) == files.answer("history", "orders")
    assert "has never moved" in files.run("history", "clicks").stdout


def test_a_person_says_where_a_job_runs(files: Files) -> None:
    """Who has not seen the journal is shown it; the fences follow."""
    blind = files.run("settle", "orders", "--at", "east")
    assert blind.exit_code == ExitCode.USAGE
    assert f"the job is at {files.home('west')}, since" in blind.output
    assert blind.output.endswith("then give --seen 5\n")
    stale = files.run("settle", "orders", "--at", "east", "--seen", 2)
    assert stale.exit_code == ExitCode.UNUSABLE
    assert "look at the job again" in stale.output
    settled = files.answer("settle", "orders", "--at", "east", "--seen", 5)
    assert (settled["home"], settled["problems"]) == (str(files.home("east")), [])
    assert files.states() == [FenceState.OPEN, FenceState.MOVED]
    assert "orders: at east" in files.run("list").stdout


def test_a_person_without_a_file_of_jobs_says_it_by_the_journal(files: Files) -> None:
    """As the error of a driver says, in Spark's spelling; a folder that is no home is refused."""
    journal = files.orders.journal
    other = _run("jobs", "settle", "--journal", journal, "--at", files.folder, "--seen", 5)
    assert other.exit_code == ExitCode.UNUSABLE
    assert f"is no home of the job: give {files.home('west')} or {files.home('east')}" in (
        other.output
    )
    at = f"file:{files.home('east')}"
    settled = _run("jobs", "settle", "--journal", journal, "--at", at, "--seen", 5)
    assert settled.exit_code == 0, settled.output
    assert files.states() == [FenceState.OPEN, FenceState.MOVED]
    assert "orders: at east" in files.run("list").stdout


def test_an_old_journal_takes_no_home_over(files: Files) -> None:
    """It does not know where the job has been since; the file of jobs does."""
    east = files.home("east")
    entries = Journal(UPath(files.orders.journal)).entries()
    old = files.folder / "old" / "orders"
    old.mkdir(parents=True)
    for entry in entries[:1]:
        (old / f"{entry.number:06d}.json").write_bytes(entry.to_bytes())
    result = _run("jobs", "settle", "--journal", old, "--at", east, "--seen", 1)
    assert result.exit_code == ExitCode.UNUSABLE
    assert "jobs settle orders --jobs FILE" in result.output
    assert files.states() == [FenceState.MOVED, FenceState.OPEN]


def test_a_fence_that_could_not_be_written_is_owed(files: Files) -> None:
    """The command says so by its exit code, and names the one that writes it later."""
    files.lose_east()
    settled = files.run("settle", "orders", "--at", "west", "--seen", 5)
    assert settled.exit_code == ExitCode.UNUSABLE
    assert settled.stdout.startswith(f"Settled: the job is at {files.home('west')}")
    assert f"no fence was written in {files.home('east')}" in settled.stdout
    command = f"jobs fence --journal {files.orders.journal}"
    assert f"`airflow-mm2-offsets {command}`" in settled.stdout
    assert _run(*command.split()).exit_code == ExitCode.UNUSABLE
    files.home("east").parent.unlink()
    (files.folder / "lost").rename(files.home("east").parent)
    assert _run(*command.split()).exit_code == ExitCode.OK
    assert files.states() == [FenceState.MOVED, FenceState.OPEN]


def test_a_fence_that_is_missing_is_written(files: Files) -> None:
    """A storage was lost, and has come back."""
    for path in (files.home("east") / "control" / "fence").iterdir():
        path.unlink()
    assert files.states() == [None, FenceState.OPEN]
    written = files.answer("fence", "orders")
    assert sorted(written["fences"].values()) == ["moved", "open"]
    assert files.states() == [FenceState.MOVED, FenceState.OPEN]
    assert "has never moved" in files.run("fence", "clicks").stdout


@pytest.mark.parametrize("command", ["settle --at east", "fence", "history"])
def test_a_job_is_named_once(files: Files, command: str) -> None:
    """By the file of jobs, or by its journal."""
    for named in ([], ["orders"], ["orders", "--jobs", files.jobs, "--journal", files.folder]):
        result = _run("jobs", *command.split(), *named)
        assert result.exit_code == ExitCode.USAGE
        assert "give --journal, or JOB with --jobs FILE" in result.output


class TestStop:
    """``stop``."""

    def test_a_job_is_stopped_with_proof(
        self, files: Files, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where its journal says; it is not moved, so that any run may take it over."""
        job = Job(files.folder / "east" / "clicks", 1)
        job.beat(2, ended=True)
        clock = [1000.0]  # time passes by sleeping alone
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(time, "sleep", lambda s: clock.__setitem__(0, clock[0] + s))
        result = _run("stop", "clicks", "--jobs", files.jobs)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("Stopped (ended)")
        assert (
            f"jobs settle --journal {files.folder}/records/clicks --at {job.folder}`"
            in result.stdout
        )
        assert "its queries have ended; heartbeat and checkpoint" in result.stderr
        fence = job.fence()
        assert fence is not None
        assert fence.state is FenceState.STOPPING
        assert "; stopped since 20" in files.run("list").stdout.splitlines()[1]
        shown = files.run("show", "clicks").stdout
        assert "A failover moves it from here. To let it run here again: `" in shown
        assert "task" not in shown
        last = Journal(UPath(f"{files.folder}/records/clicks")).entries()[-1]
        assert (last.event, last.target) == (Event.PROVE, None)
        assert last.run.startswith(f"{getpass.getuser()} on ")

    def test_a_job_that_has_moved_is_stopped_by_its_folder(
        self, files: Files, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its journal names homes that the folder does not tell of."""
        job = Job(files.home("west"), 1)
        job.beat(2, ended=True)
        clock = [1000.0]  # time passes by sleeping alone
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(time, "sleep", lambda s: clock.__setitem__(0, clock[0] + s))
        result = _run("stop", "--home", job.folder)
        assert result.exit_code == 0, result.output
        assert files.run("list").stdout.startswith(f"orders: at west ({files.home('west')}) since")
        assert files.states() == [FenceState.MOVED, FenceState.STOPPING]

    def test_a_stop_without_a_proof_is_withdrawn(self, tmp_path: Path) -> None:
        """The job runs on; a second stop is another one."""
        job = Job(tmp_path / "orders", 1)
        for _ in range(2):
            result = _run("stop", "--home", job.folder, "--timeout", 0)
            assert result.exit_code == ExitCode.UNUSABLE
            assert "waited 0 s for the proof of the stop" in result.output
        assert [each.event for each in job.entries()] == [Event.ASK, Event.WITHDRAW] * 2
        assert len({each.run for each in job.entries()}) == 2
        fence = job.fence()
        assert fence is not None
        assert fence.state is FenceState.OPEN

    def test_one_place_is_named(self, files: Files) -> None:
        """A home, or a job of the file."""
        for named in ([], ["orders"], ["orders", "--jobs", files.jobs, "--home", files.folder]):
            result = _run("stop", *named)
            assert result.exit_code == ExitCode.USAGE
            assert "give --home, or JOB with --jobs FILE" in result.output
