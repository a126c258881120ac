"""How a reader is slowed down."""

import pytest

from airflow_mm2_offsets.kafka import throttle as module
from airflow_mm2_offsets.kafka.throttle import Throttle


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
    """Return the time that ``Throttle`` sees."""
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def test_a_sleep_is_as_long_as_the_work(clock: Clock) -> None:
    """Times the ratio; the sleep itself does not count as work."""
    throttle = Throttle(2)
    for _ in range(2):
        clock.now += 0.003
        throttle.pause()
    assert clock.slept == [0.006, 0.006]


def test_small_bits_of_work_add_up(clock: Clock) -> None:
    """No sleep is shorter than what a sleep costs."""
    throttle = Throttle(1)
    for _ in range(4):
        clock.now += 0.0004
        throttle.pause()
    assert clock.slept == [0.0012]


def test_waiting_for_a_broker_costs_no_long_sleep(clock: Clock) -> None:
    """The wait looks like work, so a sleep has a maximum."""
    throttle = Throttle(1)
    clock.now += 10
    throttle.pause()
    assert clock.slept == [0.02]


def test_a_ratio_of_0_never_sleeps(clock: Clock) -> None:
    """The command line and operators read at full speed."""
    throttle = Throttle(0)
    clock.now += 1
    throttle.pause()
    assert clock.slept == []
