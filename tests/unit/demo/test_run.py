"""How a run of the demo goes, with programs that are only played."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from airflow_mm2_offsets.core import FailoverPlan, Strategy
from demo import __main__ as command
from demo.failover import PROVING, Failover
from demo.report import Report
from demo.timeline import SPARK, Timeline
from stack.airflow_api import TaskRun
from tests.unit.demo.test_picture import write

BEGIN = datetime(2026, 11, 26, tzinfo=UTC)
PLAN = FailoverPlan(
    created_at="2026-11-26T00:00:00+00:00",
    strategy=Strategy.SAFE,
    syncs_read=1,
    syncs_skipped=0,
    partitions=(),
)


def report(produced: int) -> Report:
    """Return the report of a run whose sink has the numbers 0 to 2."""
    return Report(
        plan=PLAN,
        straight_line=PLAN,
        produced=produced,
        delivered=Counter(range(3)),
        seconds={"failover": 2.0},
        timeline=Timeline(steps={"first record": {SPARK: 1.0}}),
    )


class PlayedDemo:
    """Servers that run between enter and exit."""

    def __init__(self, folder: Path, progress: Callable[[str], None]) -> None:
        self.folder, self.progress = folder, progress

    def __enter__(self) -> Self:
        self.progress("all is up")
        return self

    def __exit__(self, *_error: object) -> None:
        self.progress("stopping")


@dataclass(frozen=True)
class PlayedSwitch:
    verdict: str
    is_complete: bool


class PlayedFailover:
    """A failover after which one number more was produced than the sink has, or none more."""

    produced = 3
    writes_on_both_sides = True

    def __init__(self, demo: PlayedDemo, **_steps: object) -> None:
        self.demo = demo

    def run(self) -> Report:
        return report(self.produced)

    def switch(self, made: Report) -> PlayedSwitch:
        return PlayedSwitch(verdict=made.verdict, is_complete=self.writes_on_both_sides)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a run of the demo says, whose programs are played."""
    said: list[str] = []
    monkeypatch.setattr(command, "say", said.append)
    monkeypatch.setattr(command, "BUILD", tmp_path)
    monkeypatch.setattr(command, "REPORT", tmp_path / "report.json")
    monkeypatch.setattr(command, "PICTURE", tmp_path / "switch.svg")
    monkeypatch.setattr(command, "Demo", PlayedDemo)
    monkeypatch.setattr(command, "Failover", PlayedFailover)

    def draw(switch: PlayedSwitch, file: Path) -> None:
        said.append("drawn")
        file.write_text(switch.verdict)

    monkeypatch.setattr(command, "write_picture", draw)
    return said


def test_a_run_ends_with_proof_report_and_picture(
    lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The picture is drawn while Airflow still answers."""
    assert command.run() == 0
    assert lines[0] == "== 1 of 5: start everything; then: stream from the source"
    assert lines[-2:] == ["drawn", "stopping"]
    picture = tmp_path / "switch.svg"
    shown = capsys.readouterr().out
    assert "PROVEN" in shown
    assert f"The picture of the switch is {picture}" in shown
    assert picture.read_text().endswith("PROVEN")
    assert '"in all"' in (tmp_path / "report.json").read_text()


def test_a_target_without_output_has_its_report(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to draw, and the run says so at its end."""
    monkeypatch.setattr(PlayedFailover, "writes_on_both_sides", False)
    command.run()
    assert "drawn" not in lines
    assert capsys.readouterr().out.endswith("not drawn: the job wrote nothing on one side\n")


@pytest.mark.usefixtures("lines")
def test_a_lost_number_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code says so, too."""
    monkeypatch.setattr(PlayedFailover, "produced", 4)
    assert command.run() == 1
    assert "FAILED" in capsys.readouterr().out


def task(task_id: str, state: str | None) -> TaskRun:
    return TaskRun(task_id=task_id, state=state, seconds=None, pid=None)


def failover(tmp_path: Path, **api: object) -> tuple[Failover, list[str]]:
    """Return a failover of a demo whose Airflow answers as given."""
    lines: list[str] = []
    demo: Any = SimpleNamespace(
        progress=lines.append,
        output=lambda side: tmp_path / side / "output",
        job_folder=lambda side: tmp_path / side,
        airflow=SimpleNamespace(api=SimpleNamespace(**api)),
    )
    return Failover(demo), lines


def test_a_wait_says_which_tasks_are_at_work(tmp_path: Path) -> None:
    """Those that run or wait; before the first one starts there is nothing to say."""
    tasks = {"a": task("a", "success"), "b": task("b", "deferred"), "c": task("c", "running")}
    asked: list[object] = []

    def wait(*_arguments: object, now: Callable[[], str]) -> None:
        asked.append(now())

    moved, _ = failover(tmp_path, tasks=lambda _dag, _run: tasks)
    vars(moved.demo)["wait"] = wait
    moved.wait_for_end()
    tasks.clear()
    moved.wait_for_task("b")
    assert asked == [", at b and c", ""]


def test_a_failover_of_its_own_numbers_its_steps(tmp_path: Path) -> None:
    """From the first that it carries out itself."""
    moved, lines = failover(tmp_path)
    with moved.steps.step(PROVING):
        pass
    assert lines[0] == "== 4 of 4: gather the proof"


def test_the_picture_is_of_the_first_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its positions are the plan's, and its batches those of both outputs."""
    write(tmp_path / "source" / "output", 0, 0, 1, (0, 6), (1, 90))
    write(tmp_path / "target" / "output", 0, 0, 4, (0, 2))
    positions = {"orders": {0: 7, 1: 91}}
    monkeypatch.setattr(FailoverPlan, "source_positions", lambda _plan: positions)
    monkeypatch.setattr(FailoverPlan, "target_positions", lambda _plan: {"orders": {0: 2, 1: 80}})
    asked = BEGIN + timedelta(seconds=2)
    moved, _ = failover(tmp_path, triggered_at=lambda _dag, _run: asked)
    switch = moved.switch(report(3))
    assert (switch.partition, switch.stopped_at, switch.started_at) == ("orders[0]", 7, 2)
    assert [each.position for each in (*switch.source, *switch.target)] == [7, 3]
    assert (switch.gap, switch.seconds(switch.source[0].at)) == (3.0, -1.0)
