"""Two drivers with one control location, and a driver that is refused when it starts."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_mm2_offsets.job import liveness
from airflow_mm2_offsets.job.stop.control import (
    AnotherDriverError,
    JobMovedError,
    StopControl,
)
from airflow_mm2_offsets.job.stop.streams import Streams
from tests.support.stop_step import RUN, StopStep
from tests.unit.job.drivers import INTERVAL, Query, driver
from tests.unit.operators.spark_job import Job

STOP = f"{RUN}#1"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job", 4, 6)


class _Clock:
    """Time that passes only where somebody sleeps; something may happen meanwhile."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.meanwhile: Any = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    passing = _Clock()
    monkeypatch.setattr(liveness, "time", passing)
    return passing


def _start(control: StopControl) -> None:
    control._start()  # noqa: SLF001 - what constructing it does


def _written(job: Job) -> bytes:
    return (job.control / "driver.json").read_bytes()


def _said(job: Job) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(_written(job)))


def test_a_driver_that_a_fence_refuses_writes_nothing(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is of a driver that may live, be paused or cut off; it carries out a stop."""
    job.beat(30, stopping=STOP)
    StopStep(job.control).ask(STOP)
    before = _written(job)
    with pytest.raises(JobMovedError):
        _start(driver(monkeypatch, job.control, "app-2"))
    assert _written(job) == before


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("ended", [False, True])
def test_a_driver_that_is_fenced_as_it_starts_puts_back_what_was_there(
    job: Job, monkeypatch: pytest.MonkeyPatch, *, ended: bool
) -> None:
    """It has run nothing, so it is not the last driver that ran."""
    job.beat(30, ended=ended)
    before, control = _said(job), driver(monkeypatch, job.control, "app-2")
    begin = control._heartbeat.begin  # noqa: SLF001 - the moment in question

    def begin_late() -> None:
        begin()
        assert _said(job)["application_id"] == "app-2"
        StopStep(job.control).ask(STOP)

    monkeypatch.setattr(control._heartbeat, "begin", begin_late)  # noqa: SLF001
    with pytest.raises(JobMovedError):
        _start(control)
    assert _said(job) == before


@pytest.mark.parametrize("stopping", [None, STOP])
def test_a_second_driver_is_refused_while_the_first_one_beats(
    job: Job, monkeypatch: pytest.MonkeyPatch, clock: _Clock, stopping: str | None
) -> None:
    """The error names the first; one that carries out a stop lives too."""
    first: dict[str, Any] = {"interval": INTERVAL, "stopping": stopping}
    job.beat(30, **first)

    def beat() -> None:
        if clock.now >= 1000 + 2.5 * INTERVAL:
            job.beat(31, **first)

    clock.meanwhile = beat
    with pytest.raises(AnotherDriverError) as refused:
        _start(driver(monkeypatch, job.control, "app-2"))
    assert "The driver app-1 on h (process 7) runs with the control location" in str(refused.value)
    assert _said(job)["application_id"] == "app-1"


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ({"interval": 1.5}, 4.5),
        ({"interval": 60}, 30.0),
        ({}, 3 * INTERVAL),
        ({"interval": 1.5, "ended": True}, 0.0),
    ],
)
def test_a_driver_that_died_without_a_word_costs_three_intervals(
    job: Job, monkeypatch: pytest.MonkeyPatch, clock: _Clock, said: dict[str, Any], waits: float
) -> None:
    """At most 30 s, once; one that has ended costs nothing."""
    job.beat(30, **said)
    _start(driver(monkeypatch, job.control, "app-2"))
    assert clock.now - 1000 == pytest.approx(waits, abs=0.5)
    assert (_said(job)["application_id"], _said(job)["ended"]) == ("app-2", False)
    clock.now = 1000
    _start(driver(monkeypatch, job.control, "app-2"))  # its own word is no other's
    assert clock.now == 1000


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "second", [{"application_id": "app-2"}, {"application_id": "app-1", "pid": 10}]
)
def test_a_driver_that_wakes_beside_the_next_one_ends(
    job: Job, monkeypatch: pytest.MonkeyPatch, second: dict[str, Any]
) -> None:
    """It begins no batch, and leaves the word to the next: attempts of one application, too."""
    first = driver(monkeypatch, job.control, "app-1")
    _start(first)
    name = second.pop("application_id")
    _start(driver(monkeypatch, job.control, name, **second))
    before, query = _written(job), Query()
    first._heartbeat._beat()  # noqa: SLF001 - what its thread does
    with pytest.raises(AnotherDriverError, match=f"The driver {name} on there"):
        first._lease.renew(Streams([cast("Any", query)]))  # noqa: SLF001
    first._finish(Streams([cast("Any", query)]), "a stop", None)  # noqa: SLF001
    assert query.did == ["held", "abandoned"]
    assert _written(job) == before
    assert not (job.control / "stopped.json").exists()


def test_a_damaged_word_is_written_anew(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was cut off keeps no job from starting."""
    (job.control / "driver.json").write_text("{")
    _start(driver(monkeypatch, job.control, "app-2"))
    assert _said(job)["application_id"] == "app-2"
