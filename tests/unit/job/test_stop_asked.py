"""Whether a stop still counts: the step that asked gives signs of life while it waits."""

from typing import Any

import pytest

from airflow_mm2_offsets.job.stop import requests
from airflow_mm2_offsets.job.stop.fences import OPEN, STOPPING, Fence
from airflow_mm2_offsets.job.stop.requests import SIGN_SECONDS, StopRequests

REQUEST = "failover:manual__1#1"
INTERVAL = 2.0


class Control:
    """A control location, and the clock of the driver that looks at it; it stands in for time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(requests, "time", self)
        self.fence = Fence()
        self.sign: dict[str, Any] | None = None
        self.reads = 0
        self.pause_in_read = 0.0
        self.requests = StopRequests(self)  # type: ignore[arg-type]

    def monotonic(self) -> float:
        return self.now

    def read(self, name: str) -> dict[str, Any] | None:
        assert name == "stop-heartbeat.json"
        self.reads += 1
        self.now += self.pause_in_read
        return self.sign

    def ask(self, request_id: str = REQUEST) -> None:
        self.fence = Fence(self.fence.number + 1, STOPPING, request_id)

    def withdraw(self) -> None:
        self.fence = Fence(self.fence.number + 1, OPEN, self.fence.request_id)

    def keep_asking(self, *, request_id: str = REQUEST, interval: float = INTERVAL) -> None:
        self.sign = {"request_id": request_id, "at": str(self.now), "interval": interval}

    def look(self) -> str | None:
        return self.requests.look(self.fence, self.now)

    def look_for(self, seconds: float) -> set[str | None]:
        """Look every two seconds, and return the stops that count."""
        stops = set()
        for _ in range(int(seconds / INTERVAL)):
            self.now += INTERVAL
            stops.add(self.look())
        return stops


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    return Control(monkeypatch)


def test_a_stop_counts_once_its_step_waits(control: Control) -> None:
    """Cancelled before its trigger has started, killed or deleted: the job runs on."""
    assert control.look_for(300) == {None}
    control.ask()
    assert control.look_for(300) == {None}
    control.keep_asking()
    assert control.look_for(INTERVAL) == {REQUEST}


def test_a_stop_counts_while_its_step_waits_for_the_end_of_a_long_batch(control: Control) -> None:
    control.look_for(INTERVAL)
    control.ask()
    for _ in range(20):
        control.keep_asking()
        assert control.look_for(SIGN_SECONDS / 2) == {REQUEST}


def test_a_stop_whose_step_is_gone_counts_no_more(control: Control) -> None:
    control.look_for(INTERVAL)
    control.ask()
    control.keep_asking()
    control.look_for(SIGN_SECONDS + INTERVAL)
    assert control.look_for(300) == {None}


def test_a_sign_of_an_earlier_try_does_not_count(control: Control) -> None:
    """A cleared task waits for the same stop again; its last sign lies there from before."""
    control.ask()
    control.keep_asking()
    control.look_for(SIGN_SECONDS + INTERVAL)
    assert control.look_for(300) == {None}
    control.keep_asking()
    assert control.look_for(INTERVAL) == {REQUEST}


def test_without_a_stop_no_sign_is_read(control: Control) -> None:
    """A job looks every two seconds for months; a stop's first sign is no older than its fence."""
    control.keep_asking(request_id="an earlier stop")
    control.look_for(300)
    assert control.reads == 0
    control.ask()
    assert control.look_for(INTERVAL) == {None}
    control.keep_asking()
    assert control.look_for(INTERVAL) == {REQUEST}


def test_a_stop_that_was_withdrawn_counts_no_more(control: Control) -> None:
    """Its last sign is still young; the next stop waits for signs of its own."""
    control.ask()
    control.keep_asking()
    assert control.look_for(INTERVAL) == {REQUEST}
    control.withdraw()
    assert control.look_for(INTERVAL) == {None}
    control.ask("failover:manual__1#3")
    assert control.look_for(INTERVAL) == {None}


def test_a_driver_that_is_paused_in_a_look_takes_no_old_sign(control: Control) -> None:
    """The stop may have been given up before it wakes and reads the sign."""
    control.look_for(INTERVAL)
    control.ask()
    control.keep_asking()
    control.pause_in_read = 600.0
    assert control.look() is None


def test_a_driver_that_wakes_waits_for_another_sign(control: Control) -> None:
    """What it finds may have been asked, and given up, while it was paused."""
    control.look_for(INTERVAL)
    control.ask()
    control.keep_asking()
    control.now += 600
    assert control.look_for(10) == {None}
    control.keep_asking()
    assert control.look_for(INTERVAL) == {REQUEST}


def test_signs_of_another_stop_do_not_count(control: Control) -> None:
    control.look_for(INTERVAL)
    control.ask()
    control.keep_asking(request_id="another")
    assert control.look_for(10) == {None}


def test_a_step_that_looks_seldom_is_waited_for(control: Control) -> None:
    control.look_for(INTERVAL)
    control.ask()
    control.keep_asking(interval=60.0)
    assert control.look_for(200) == {REQUEST}


def test_the_log_says_once_what_a_stop_lacks(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    control.ask()
    control.look_for(300)
    assert [REQUEST in record.message for record in caplog.records] == [True]
