"""Whether a job that stops is still wanted to, once its batches come to their commit."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from airflow_mm2_offsets.job.stop import decision as decisions
from airflow_mm2_offsets.job.stop.control import JobMovedError, StopControl
from airflow_mm2_offsets.job.stop.decision import StopDecision
from airflow_mm2_offsets.job.stop.fences import Fences
from airflow_mm2_offsets.job.stop.lease import Lease
from airflow_mm2_offsets.job.stop.streams import Streams
from tests.support.stop_step import RUN, StopStep
from tests.unit.job.drivers import Files, Query

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL_SECONDS = 0.02
LEASE_SECONDS = 4 * INTERVAL_SECONDS
FIRST, SECOND = f"{RUN}#1", "failover:manual__2#4"


class _Files(Files):
    """A control location in a folder; something may happen before one of the job's accesses."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.step = StopStep(folder)
        self.accesses = 0
        self.names: list[str] = []
        self.before: dict[int, Callable[[], object]] = {}
        self.is_writable = True
        self._one_at_a_time = threading.Lock()

    def names_in(self, folder: str) -> list[str]:
        self._access(f"{folder}/")
        return super().names_in(folder)

    def read(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        self._access(name)
        if name == "stop-heartbeat.json":  # of a stop step that waits
            newest = super().read(f"fence/{self.step.number:06d}.json")
            return {"request_id": newest["request_id"], "at": uuid4()}
        return super().read(name)

    def find_other(self) -> None:
        """Find no other driver."""

    def announce_stop(self, request_id: str | None) -> bool:
        """Do what the heartbeat does."""
        self._access("driver.json")
        if self.is_writable:
            self.write("driver.json", {"application_id": "app-1", "stopping": request_id})
        return self.is_writable

    def _access(self, name: str) -> None:
        with self._one_at_a_time:
            self.accesses += 1
            self.names.append(name)
            self.before.pop(self.accesses, lambda: None)()


class _Stream(Query):
    """A query whose batch has come to its commit."""

    stops: bool

    def stop(self, _deadline: float, decision: StopDecision) -> bool:
        self.stops = decision.is_valid() and decision.carry_out()
        return self.stops


def _lease(files: _Files) -> Lease:
    """Return the lease of a job that runs."""
    location = cast("Any", files)
    return Lease(location, Fences(location, "the home"), location, LEASE_SECONDS)


def _control(files: _Files) -> StopControl:
    control = StopControl.__new__(StopControl)
    vars(control).update(_lease=_lease(files), _batch_timeout=60.0, _interval=INTERVAL_SECONDS)
    return control


def _stop(files: _Files, streams: list[_Stream]) -> bool:
    return _control(files)._stop(Streams(cast("Any", streams)), FIRST)  # noqa: SLF001 - the job's side


def _asked(folder: Path) -> _Files:
    """Return the control location of a job of three queries that was asked to stop."""
    files = _Files(folder)
    files.write("driver.json", {"application_id": "app-1", "stopping": None})
    files.step.ask(FIRST)
    return files


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_look_reads_each_file_once(tmp_path: Path, *, is_asked: bool) -> None:
    """A job looks every two seconds for months: without a stop, one listing is all."""
    files = _asked(tmp_path) if is_asked else _Files(tmp_path)
    lease = _lease(files)
    stop = ["stopped.json", "stop-heartbeat.json"] if is_asked else []
    for new in (["fence/000001.json"] if is_asked else [], []):
        files.names.clear()
        assert lease.renew(Streams([])) == (FIRST if is_asked else None)
        assert files.names == ["fence/", *new, *stop]


@pytest.mark.parametrize(
    ("later", "goes_on"),
    [
        ([], False),
        ([("open", FIRST)], True),
        # Another run has taken the job over, and asks by a stop of its own: the next look sees it.
        ([("stopping", SECOND)], True),
        ([("open", FIRST), ("stopping", SECOND)], True),
    ],
)
def test_a_job_carries_out_the_stop_that_it_announces(
    later: list[tuple[str, str]], tmp_path: Path, *, goes_on: bool
) -> None:
    """A withdrawal looks for its own stop: a job that announced another would stop unseen."""
    files = _asked(tmp_path)
    for state, request_id in later:
        files.step.fence(state, request_id)
    assert _stop(files, [_Stream()]) is not goes_on
    assert files.step.driver()["stopping"] == (None if goes_on else FIRST)


@pytest.mark.parametrize(
    ("later", "is_answered"),
    [
        # It was taken for gone, and answered for: the job may be running elsewhere.
        ([], True),
        ([("moved", FIRST)], True),
        ([("moved", FIRST)], False),
        # Another run has taken the job over since.
        ([("stopping", SECOND)], True),
        # The job has come back since, for another driver.
        ([("moved", FIRST), ("open", SECOND)], False),
    ],
)
def test_a_job_that_counts_as_stopped_ends_no_batch(
    later: list[tuple[str, str]], tmp_path: Path, *, is_answered: bool
) -> None:
    """A batch that has come to its commit is held before it is let go, and then abandoned."""
    files, streams = _asked(tmp_path), [_Stream(), _Stream()]
    if is_answered:
        files.step.answer_in_its_place(FIRST)
    for state, request_id in later:
        files.step.fence(state, request_id)
    with pytest.raises(JobMovedError, match="at the home"):
        _stop(files, streams)
    for stream in streams:
        assert (stream.did[0], stream.did[-1], stream.stops) == ("held", "abandoned", False)


class _Slow(_Stream):
    """A query whose batch does not end."""

    def stop(self, deadline: float, decision: StopDecision) -> bool:
        while decision.is_valid():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return False


def test_a_job_that_waits_for_its_batch_looks_on(tmp_path: Path) -> None:
    """The lease is renewed look by look; a job that finds itself moved ends at once."""
    files, stream = _asked(tmp_path), _Slow()
    began = time.monotonic()
    files.before[10] = lambda: files.step.move(FIRST)  # some looks later
    with pytest.raises(JobMovedError):
        _stop(files, [stream])
    assert time.monotonic() - began < 30  # half of what the batch is given
    assert stream.did.count("renewed") > 1
    assert stream.did[-1] == "abandoned"


def _check_agreed(files: _Files, streams: list[_Stream], *, runs_on: bool) -> None:
    (stops,) = {stream.stops for stream in streams}
    newest = files.step.read(f"fence/{files.step.number:06d}.json")
    assert newest is not None
    assert newest["state"] == ("open" if runs_on else "stopping")
    assert not (runs_on and stops)  # a job that runs on and finds the fence stops after all


@pytest.mark.parametrize("moment", range(1, 16))
def test_a_stop_that_is_withdrawn_while_queries_stop(tmp_path: Path, moment: int) -> None:
    """All queries stop behind a fence, or all run on, whatever the moment of the withdrawal."""
    files, streams = _asked(tmp_path), [_Stream() for _ in range(3)]
    withdrawals: list[bool] = []

    def withdraw() -> None:
        withdrawals.append(files.step.withdraw(FIRST))

    files.before[moment] = withdraw
    _stop(files, streams)
    if not withdrawals:  # later than anything that the job did
        withdraw()
        assert files.accesses < moment
    _check_agreed(files, streams, runs_on=withdrawals[0])


@pytest.mark.parametrize("name", ["has_stopped", "let_run", "ask"])
@pytest.mark.parametrize("call", [1, 2])
def test_queries_that_stop_while_their_stop_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    """The same, whichever step of the withdrawal the job comes before."""
    files, streams = _asked(tmp_path), [_Stream() for _ in range(3)]
    original, calls = getattr(files.step, name), []

    def step(*arguments: Any) -> Any:  # noqa: ANN401 - as the step has it
        calls.append(name)
        if len(calls) == call:
            _stop(files, streams)
        return original(*arguments)

    monkeypatch.setattr(files.step, name, step)
    runs_on = files.step.withdraw(FIRST)
    if len(calls) < call:
        _stop(files, streams)
    _check_agreed(files, streams, runs_on=runs_on)


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_a_decision_is_not_taken_back(tmp_path: Path, *, is_withdrawn: bool) -> None:
    """A query that comes to its commit later does what the first one did, whatever was asked."""
    files = _asked(tmp_path)
    decision = _lease(files).decide(Streams([]), FIRST)
    if is_withdrawn:
        assert files.step.withdraw(FIRST)
    assert decision.carry_out() is not is_withdrawn
    if is_withdrawn:
        files.step.ask(SECOND)
    else:
        assert not files.step.withdraw(FIRST)
    assert (decision.is_valid(), decision.carry_out()) == (not is_withdrawn, not is_withdrawn)


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_a_stop_that_can_not_be_announced_is_not_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_withdrawn: bool
) -> None:
    """It may be withdrawn while the storage fails: the job waits, and then sees it."""
    files, streams = _asked(tmp_path), [_Stream() for _ in range(3)]
    monkeypatch.setattr(decisions, "LOOK_SECONDS", 0.01)
    files.is_writable = False

    def come_back() -> None:
        assert not any("stops" in vars(stream) for stream in streams)
        if is_withdrawn:
            assert files.step.withdraw(FIRST)
        files.is_writable = True

    files.before[40] = come_back
    assert _stop(files, streams) is not is_withdrawn
    _check_agreed(files, streams, runs_on=is_withdrawn)


def test_a_job_that_can_announce_nothing_ends_where_it_was_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeat can't be written either, so it is taken for gone."""
    files, stream = _asked(tmp_path), _Stream()
    monkeypatch.setattr(decisions, "LOOK_SECONDS", 0.01)
    files.is_writable = False
    files.before[40] = lambda: files.step.move(FIRST)
    with pytest.raises(JobMovedError):
        _stop(files, [stream])
    assert stream.did[-1] == "abandoned"
