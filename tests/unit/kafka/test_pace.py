"""How a reader rests."""

import pytest

from airflow_mm2_offsets.kafka import pace as module
from airflow_mm2_offsets.kafka.pace import Pace


class Clock:
    """Time that passes by work and by sleep alone."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the time that ``Pace`` sees."""
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def test_a_rest_is_as_long_as_the_work(clock: Clock) -> None:
    """Times the factor; the rest itself is no work."""
    pace = Pace(2)
    for _ in range(2):
        clock.now += 0.003
        pace.pause()
    assert clock.slept == [0.006, 0.006]


def test_small_bits_of_work_add_up(clock: Clock) -> None:
    """No sleep is shorter than what a sleep costs."""
    pace = Pace(1)
    for _ in range(4):
        clock.now += 0.0004
        pace.pause()
    assert clock.slept == [0.0012]


def test_waiting_for_a_broker_costs_no_long_rest(clock: Clock) -> None:
    """It looks like work, and is none."""
    pace = Pace(1)
    clock.now += 10
    pace.pause()
    assert clock.slept == [0.02]


def test_nobody_rests_who_need_not(clock: Clock) -> None:
    """The command line and operators read at full speed."""
    pace = Pace(0)
    clock.now += 1
    pace.pause()
    assert clock.slept == []
