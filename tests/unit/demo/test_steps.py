"""What the demo says while it runs."""

import io
from datetime import UTC, datetime

import pytest

from demo.screen import Screen
from demo.steps import Steps


class Terminal(io.StringIO):
    """What a terminal was sent."""

    def isatty(self) -> bool:
        return True


def say(out: io.StringIO, *lines: str) -> str:
    screen = Screen(out, clock=lambda: datetime(2026, 11, 26, 1, 2, 3, tzinfo=UTC))
    for line in lines:
        screen(line)
    return out.getvalue()


WAITS = ("== begin", "waiting for Airflow: 5 s", "waiting for Airflow: 10 s", "Airflow runs")


def test_a_file_gets_each_line_plain() -> None:
    """Each line stays, with its time, and there are no codes of terminals."""
    assert say(io.StringIO(), *WAITS) == "".join(f"01:02:03  {line}\n" for line in WAITS)


def test_a_terminal_shows_the_last_wait_alone() -> None:
    """The next line takes the place of one that says how long a wait is."""
    shown = say(Terminal(), *WAITS)
    left = [line.rpartition("\r\033[K")[2] for line in shown.split("\n")]
    assert left == ["01:02:03  == begin", "01:02:03  Airflow runs", ""]
    assert "waiting for Airflow: 5 s\r" in shown


def test_a_wait_fits_on_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folded line could not be replaced; a line that stays is whole."""
    monkeypatch.setenv("COLUMNS", "30")
    long = "x" * 40
    assert say(Terminal(), f"waiting for {long}") == f"01:02:03  waiting for {long}"[:29]
    assert say(Terminal(), long) == f"01:02:03  {long}\n"


def test_a_step_says_its_number_and_the_next_one() -> None:
    """And how long it took, which is noted."""
    lines: list[str] = []
    times = iter([10.0, 52.4, 60.0, 61.0])
    steps = Steps(("start everything", "failover"), lines.append, clock=lambda: next(times))
    with steps.step("start everything"):
        lines.append("...")
    with steps.step("failover"):
        pass
    assert lines == [
        "== 1 of 2: start everything; then: failover",
        "...",
        "   start everything: done in 42 s",
        "== 2 of 2: failover",
        "   failover: done in 1 s",
    ]
    assert steps.seconds == {"start everything": pytest.approx(42.4), "failover": 1.0}


def test_a_step_that_fails_is_not_done() -> None:
    """Its error ends the run, and no line says that it was done."""
    lines: list[str] = []
    steps = Steps((), lines.append)
    with pytest.raises(ValueError, match="no"), steps.step("failover"):
        raise ValueError("no")
    assert lines == ["== failover"]
    assert steps.seconds == {}
