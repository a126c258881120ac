"""Whether a stop still counts: the step that asked gives signs of life while it waits."""

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.job.stop import requests
from airflow_mm2_offsets.job.stop.requests import SIGN_SECONDS, StopRequests
from airflow_mm2_offsets.spark.fence import new_fence
from airflow_mm2_offsets.spark.stopping import begin_stop

REQUEST = "failover:manual__1"
INTERVAL = 2.0


class Control:
    """A control location, and the clock of the driver that looks at it; it stands in for time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(requests, "time", self)
        self.files: dict[str, dict[str, Any]] = {}
        self.requests = StopRequests(self)  # type: ignore[arg-type]

    def monotonic(self) -> float:
        return self.now

    def read(self, name: str) -> dict[str, Any] | None:
        return self.files.get(name)

    def ask(self) -> None:
        self.files["fence.json"] = {"request_id": REQUEST, "state": "stopping"}
        self.files["stop-request.json"] = {"request_id": REQUEST, "is_of_failover": True}

    def keep_asking(self, *, request_id: str = REQUEST, interval: float = INTERVAL) -> None:
        sign = {"request_id": request_id, "at": str(self.now), "interval": interval}
        self.files["stop-heartbeat.json"] = sign

    def look_for(self, seconds: float) -> set[str | None]:
        """Look every two seconds, and return what was found."""
        found = set()
        for _ in range(int(seconds / INTERVAL)):
            self.now += INTERVAL
            found.add(self.requests.look(self.read("fence.json")))
        return found


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
    """A cleared task asks for the same stop again; its last sign lies there from before."""
    control.keep_asking()
    control.look_for(300)
    control.ask()
    assert control.look_for(300) == {None}


def test_a_sign_that_a_driver_finds_first_does_not_count(control: Control) -> None:
    control.ask()
    control.keep_asking()
    assert control.look_for(10) == {None}


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


def test_a_request_of_no_failover_counts_at_once(control: Control) -> None:
    """Somebody asks the job to end, and moves it nowhere."""
    control.files["stop-request.json"] = {"request_id": REQUEST}
    assert control.look_for(300) == {REQUEST}


@pytest.mark.parametrize("lost", ["fence.json", "stop-request.json"])
def test_either_file_of_a_failover_waits_for_its_task(control: Control, lost: str) -> None:
    """A task that is ended while it asks may leave one of them."""
    control.ask()
    del control.files[lost]
    assert control.look_for(300) == {None}


def test_the_request_of_a_failover_says_so(tmp_path: Path) -> None:
    begin_stop(str(tmp_path), new_fence(REQUEST, "the target"))
    assert json.loads((tmp_path / "stop-request.json").read_text())["is_of_failover"] is True


def test_the_log_says_once_what_a_stop_lacks(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    control.ask()
    control.look_for(300)
    assert [REQUEST in record.message for record in caplog.records] == [True]
