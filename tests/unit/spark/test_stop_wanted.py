"""Whether a job that stops is still wanted to, once its batches come to their commit."""

import json
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest

from airflow_mm2_offsets.spark import stopping
from airflow_mm2_offsets.spark.fence import new_fence, read_fence
from airflow_mm2_offsets.spark.job.mm2_stop_control import StopControl
from airflow_mm2_offsets.spark.job.mm2_stop_decision import StopDecision
from airflow_mm2_offsets.spark.stopping import Withdrawal, begin_stop, withdraw_request

if TYPE_CHECKING:
    from collections.abc import Callable

FENCE = {"request_id": "first", "state": "stopping"}
STOP = new_fence("first", "the target")
DRIVER = {"application_id": "a", "query_id": "q", "run_id": "r", "host": "h", "pid": 7}


class _Files:
    """A control location in a folder; something may happen before one of the job's accesses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.accesses = 0
        self.before: dict[int, Callable[[], None]] = {}
        self._one_at_a_time = Lock()

    def read(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        self._access()
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def announce_stop(self, request_id: str | None) -> None:
        """Do what the heartbeat does."""
        self._access()
        self.write("driver.json", {**DRIVER, "heartbeat": 1, "stopping": request_id})

    def write(self, name: str, value: dict[str, Any]) -> None:
        (self.folder / name).write_text(json.dumps(value))

    def _access(self) -> None:
        with self._one_at_a_time:
            self.accesses += 1
            self.before.pop(self.accesses, lambda: None)()


class _Stream:
    """A query whose batch has come to its commit."""

    stops: bool

    def stop(self, _deadline: float, decision: StopDecision) -> bool:
        self.stops = decision.is_wanted() and decision.carry_out()
        return self.stops


def _control(files: _Files) -> StopControl:
    control = StopControl.__new__(StopControl)
    vars(control).update(_files=files, _heartbeat=files, _batch_timeout=1.0)
    return control


def _stop(files: _Files, streams: list[_Stream]) -> bool:
    given: Any = streams
    return _control(files)._stop(given, "first")  # noqa: SLF001 - the job's side


@pytest.mark.parametrize(
    ("files", "goes_on"),
    [
        ({"stop-request.json": {"request_id": "first"}, "fence.json": FENCE}, False),
        ({"stop-request.json": {"request_id": None}}, True),
        # It was taken for gone, and answered for: the job may be running elsewhere.
        (
            {
                "stop-request.json": {"request_id": "first"},
                "fence.json": FENCE,
                "stopped.json": {"request_id": "first", "proof": "silent"},
            },
            False,
        ),
        (
            {
                "stop-request.json": {"request_id": "first"},
                "fence.json": {**FENCE, "state": "moved"},
                "stopped.json": {"request_id": "first", "proof": "silent"},
            },
            False,
        ),
        # Another run has taken the fence over.
        (
            {
                "stop-request.json": {"request_id": "second"},
                "fence.json": {**FENCE, "request_id": "second"},
                "stopped.json": {"request_id": "first", "proof": "silent"},
            },
            False,
        ),
    ],
)
def test_a_job_goes_on_where_its_stop_was_withdrawn_alone(
    files: dict[str, Any], tmp_path: Path, *, goes_on: bool
) -> None:
    """One that goes on begins its next batch: the records would be read on both clusters."""
    location = _Files(tmp_path)
    for name, value in files.items():
        location.write(name, value)
    assert _stop(location, [_Stream()]) is not goes_on


def _asked(folder: Path) -> _Files:
    """Return the control location of a job of three queries that was asked to stop."""
    files = _Files(folder)
    files.write("driver.json", {**DRIVER, "heartbeat": 1})
    begin_stop(str(folder), STOP)
    return files


def _check_agreed(folder: Path, streams: list[_Stream], withdrawal: Withdrawal) -> None:
    (stops,) = {stream.stops for stream in streams}
    is_fenced = read_fence(str(folder)) == STOP
    assert is_fenced is (withdrawal is Withdrawal.STOPPED)
    assert is_fenced or not stops  # a job that runs on and finds the fence stops after all


@pytest.mark.parametrize("moment", range(1, 10))
def test_a_stop_that_is_withdrawn_while_queries_stop(tmp_path: Path, moment: int) -> None:
    """All queries stop behind a fence, or all run on, whatever the moment of the withdrawal."""
    files, streams = _asked(tmp_path), [_Stream() for _ in range(3)]
    withdrawals: list[Withdrawal] = []

    def withdraw() -> None:
        withdrawals.append(withdraw_request(str(tmp_path), "first"))

    files.before[moment] = withdraw
    _stop(files, streams)
    if not withdrawals:  # later than anything that the job did
        withdraw()
        assert files.accesses < moment
    _check_agreed(tmp_path, streams, *withdrawals)


@pytest.mark.parametrize("function", ["_clear_request", "lift_fence", "_has_stopped"])
@pytest.mark.parametrize("call", [1, 2])
def test_queries_that_stop_while_their_stop_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int
) -> None:
    """The same, whichever step of the withdrawal the job comes before."""
    files, streams = _asked(tmp_path), [_Stream() for _ in range(3)]
    original, calls = getattr(stopping, function), []

    def step(*given: Any) -> Any:  # noqa: ANN401 - as the step has it
        calls.append(function)
        if len(calls) == call:
            _stop(files, streams)
        return original(*given)

    monkeypatch.setattr(stopping, function, step)
    withdrawal = withdraw_request(str(tmp_path), "first")
    if len(calls) < call:
        assert function != "_has_stopped"
        _stop(files, streams)
    _check_agreed(tmp_path, streams, withdrawal)


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_decision_is_not_taken_back(tmp_path: Path, *, withdrawn: bool) -> None:
    """A query that comes to its commit later does what the first one did, whatever was asked."""
    files = _asked(tmp_path)
    decision = _control(files)._decision("first")  # noqa: SLF001 - the job's side
    if withdrawn:
        withdraw_request(str(tmp_path), "first")
    assert decision.carry_out() is not withdrawn
    if withdrawn:
        begin_stop(str(tmp_path), STOP)
    else:
        assert withdraw_request(str(tmp_path), "first") is Withdrawal.STOPPED
    assert (decision.is_wanted(), decision.carry_out()) == (not withdrawn, not withdrawn)
