"""Whether a job that stops is still wanted to, once its batches come to their commit."""

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from airflow_mm2_offsets.job.stop.control import JobMovedError, StopControl
from airflow_mm2_offsets.job.stop.decision import StopDecision
from airflow_mm2_offsets.job.stop.lease import Lease
from airflow_mm2_offsets.job.stop.streams import Streams
from airflow_mm2_offsets.spark import stopping
from airflow_mm2_offsets.spark.fence import new_fence, read_fence
from airflow_mm2_offsets.spark.stopping import Withdrawal, begin_stop, withdraw_request
from tests.unit.job.drivers import Query

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL_SECONDS = 0.02
LEASE_SECONDS = 4 * INTERVAL_SECONDS
FENCE = {"request_id": "first", "state": "stopping"}
STOP = new_fence("first", "the target")
DRIVER = {"application_id": "a", "query_id": "q", "run_id": "r", "host": "h", "pid": 7}


class _Files:
    """A control location in a folder; something may happen before one of the job's accesses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.accesses = 0
        self.names_read: list[str] = []
        self.before: dict[int, Callable[[], None]] = {}
        self._one_at_a_time = threading.Lock()

    def read(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        self._access()
        self.names_read.append(name)
        if name == "stop-heartbeat.json":  # of a stop step that waits
            return {"request_id": (self._read("fence.json") or {}).get("request_id"), "at": uuid4()}
        return self._read(name)

    def _read(self, name: str) -> Any:  # noqa: ANN401 - likewise
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def find_other(self) -> None:
        """Find no other driver."""

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


class _Stream(Query):
    """A query whose batch has come to its commit."""

    stops: bool

    def stop(self, _deadline: float, decision: StopDecision) -> bool:
        self.stops = decision.is_valid() and decision.carry_out()
        return self.stops


def _lease(files: _Files) -> Lease:
    """Return the lease of a job that looks for a stop for a while already."""
    given = cast("Any", files)
    lease = Lease(given, "the location", given, LEASE_SECONDS)
    before, files.before = files.before, {}
    for _ in range(2):
        lease._requests.look(None)  # noqa: SLF001 - without finding that the job was moved
    files.before, files.accesses = before, 0
    files.names_read.clear()
    return lease


def _control(files: _Files) -> StopControl:
    control = StopControl.__new__(StopControl)
    vars(control).update(_lease=_lease(files), _batch_timeout=60.0, _interval=INTERVAL_SECONDS)
    return control


def _stop(files: _Files, streams: list[_Stream]) -> bool:
    given = Streams(cast("Any", streams))
    return _control(files)._stop(given, "first")  # noqa: SLF001 - the job's side


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_look_reads_each_file_once(tmp_path: Path, *, is_asked: bool) -> None:
    """A job looks every two seconds for months; the answer is read again after the request."""
    files = _asked(tmp_path) if is_asked else _Files(tmp_path)
    assert _lease(files).renew(Streams([])) == ("first" if is_asked else None)
    rest = ["stop-heartbeat.json", "stop-request.json"]
    answer = ["stopped.json"] if is_asked else []
    assert files.names_read == ["fence.json", *answer, *rest, *answer]


@pytest.mark.parametrize(
    ("files", "goes_on"),
    [
        ({"stop-request.json": {"request_id": "first"}, "fence.json": FENCE}, False),
        ({"stop-request.json": {"request_id": None}}, True),
        # Another run has taken the fence over.
        (
            {
                "stop-request.json": {"request_id": "second"},
                "fence.json": {**FENCE, "request_id": "second"},
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


ANSWERED = {"request_id": "first", "proof": "silent"}


@pytest.mark.parametrize(
    "files",
    [
        # It was taken for gone, and answered for: the job may be running elsewhere.
        {"fence.json": FENCE, "stopped.json": ANSWERED},
        {"fence.json": {**FENCE, "state": "moved"}, "stopped.json": ANSWERED},
        {"fence.json": {**FENCE, "state": "moved"}},
        # Another run has taken the fence over since.
        {"fence.json": {**FENCE, "request_id": "second"}, "stopped.json": ANSWERED},
    ],
)
def test_a_job_that_counts_as_stopped_ends_no_batch(files: dict[str, Any], tmp_path: Path) -> None:
    """A batch that has come to its commit is held before it is let go, and then abandoned."""
    location, streams = _Files(tmp_path), [_Stream(), _Stream()]
    location.write("stop-request.json", {"request_id": "first"})
    for name, value in files.items():
        location.write(name, value)
    with pytest.raises(JobMovedError, match="fence lift the location"):
        _stop(location, streams)
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

    def move() -> None:
        files.write("fence.json", {**FENCE, "state": "moved"})

    files.before[10] = move  # some looks later
    with pytest.raises(JobMovedError):
        _stop(files, [stream])
    assert time.monotonic() - began < 30  # half of what the batch is given
    assert stream.did.count("renewed") > 1
    assert stream.did[-1] == "abandoned"


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


@pytest.mark.parametrize("moment", range(1, 16))
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
    decision = _lease(files).decide(Streams([]), "first")
    if withdrawn:
        withdraw_request(str(tmp_path), "first")
    assert decision.carry_out() is not withdrawn
    if withdrawn:
        begin_stop(str(tmp_path), STOP)
    else:
        assert withdraw_request(str(tmp_path), "first") is Withdrawal.STOPPED
    assert (decision.is_valid(), decision.carry_out()) == (not withdrawn, not withdrawn)
