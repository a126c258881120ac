"""Ctrl-C; what it does while a library keeps the main thread, a test of the process shows."""

import signal
from collections.abc import Iterator
from threading import Event

import pytest

from airflow_mm2_offsets.cli.interrupts import watch_interrupts
from stack.waiting import wait_until


@pytest.fixture(autouse=True)
def _restored_signals() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    descriptor = signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(descriptor)
    signal.signal(signal.SIGINT, handler)


def test_a_command_that_is_in_python_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the exception as ever, and it has all time for its end."""
    came_back: list[bool] = []

    class Recorded(Event):
        def wait(self, timeout: float | None = None) -> bool:
            came_back.append(super().wait(timeout))
            return came_back[-1]

    monkeypatch.setattr("airflow_mm2_offsets.cli.interrupts.Event", Recorded)
    ends: list[bool] = []
    watch_interrupts(lambda: ends.append(True))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    wait_until(lambda: len(came_back) == 2, "the watcher to see both")
    assert came_back == [True, True]
    assert not ends


def test_a_handler_that_is_there_stays() -> None:
    """A shell ignores Ctrl-C for what it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_interrupts(lambda: None)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.set_wakeup_fd(-1) == -1
