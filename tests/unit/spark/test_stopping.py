"""Asking a job to stop behind a fence, and taking that back."""

import json
from collections.abc import Mapping

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.spark import control_files, stopping
from airflow_mm2_offsets.spark import fence as fences
from airflow_mm2_offsets.spark.closing import close_request
from airflow_mm2_offsets.spark.control import (
    StopProof,
    read_acknowledgement,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.fence import lift_fence, mark_moved, new_fence, read_fence
from airflow_mm2_offsets.spark.stopping import (
    Withdrawal,
    begin_stop,
    forget_stop,
    is_withdrawn,
    withdraw_request,
)

FIRST, SECOND = (new_fence(f"failover:manual__{number}", "the target") for number in (1, 2))


def _job(control: UPath, *, run_id: str = "r1", application_id: str = "app-1") -> None:
    """Let a job start."""
    driver = {"application_id": application_id, "query_id": "q", "run_id": run_id, "host": "h"}
    queries = [{"query_id": "q", "run_id": run_id}]
    text = json.dumps({**driver, "pid": 7, "heartbeat": 1, "queries": queries})
    (control / "driver.json").write_text(text)


def _answer(control: UPath, request_id: str) -> None:
    """Let the job that runs stop, and say so."""
    driver = read_driver(control)
    assert driver is not None
    said = {"batch_id": 7, "offsets": None, "clean": True, "error": None}
    queries = [{"query_id": "q", "run_id": driver.run_id, **said}]
    answer = {"request_id": request_id, "application_id": driver.application_id, **said}
    (control / "stopped.json").write_text(json.dumps({**answer, "queries": queries}))


def _asked(control: UPath) -> str | None:
    path = control / "stop-request.json"
    return json.loads(path.read_text())["request_id"] if path.exists() else None


def test_a_stop_begins_once(control: UPath) -> None:
    """Tried again, before and after the answer, it changes nothing."""
    _job(control)
    for _ in range(2):
        assert begin_stop(control, FIRST) == FIRST
    _answer(control, FIRST.request_id)
    assert begin_stop(control, FIRST) == FIRST
    assert (_asked(control), read_fence(control)) == (FIRST.request_id, FIRST)
    assert read_acknowledgement(control, FIRST.request_id) is not None


def test_a_stop_that_is_refused_leaves_no_fence(control: UPath) -> None:
    """Neither beside another's open request, nor where the request can't be written."""
    _job(control)
    stopping.request_stop(control, "by hand")
    with pytest.raises(StopError, match="the stop 'by hand' is open"):
        begin_stop(control, FIRST)
    assert read_fence(control) is None


def test_a_request_that_can_not_be_written_leaves_no_fence(
    control: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was asked, so the job must run on."""
    _job(control)

    def fail(path: UPath, _values: object) -> None:
        raise StopError(f"{path} is out of reach")

    monkeypatch.setattr(stopping, "write_object", fail)
    with pytest.raises(StopError, match="out of reach"):
        begin_stop(control, FIRST)
    assert read_fence(control) is None


def test_a_withdrawn_stop_can_be_asked_again(control: UPath) -> None:
    """Request and fence go together; the same run may ask anew, and so may another."""
    _job(control)
    for fence in (FIRST, FIRST, SECOND):
        begin_stop(control, fence)
        assert not is_withdrawn(control)
        assert withdraw_request(control, fence.request_id) is Withdrawal.WITHDRAWN
        assert (is_withdrawn(control), read_fence(control)) == (True, None)


def test_a_stop_that_was_answered_is_not_withdrawn(control: UPath) -> None:
    """The job has stopped: the fence stays, and so does the request."""
    _job(control)
    begin_stop(control, FIRST)
    _answer(control, FIRST.request_id)
    assert withdraw_request(control, FIRST.request_id) is Withdrawal.STOPPED
    assert (_asked(control), read_fence(control)) == (FIRST.request_id, FIRST)
    mark_moved(control, FIRST.request_id, "the target")
    assert withdraw_request(control, FIRST.request_id) is Withdrawal.STOPPED


def test_an_answer_in_the_moment_of_the_withdrawal(
    control: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is found stopped, and its fence is raised again."""
    _job(control)
    begin_stop(control, FIRST)

    def lift_late(root: UPath, request_id: str) -> None:
        lift_fence(root, request_id)
        _answer(control, request_id)

    monkeypatch.setattr(stopping, "lift_fence", lift_late)
    assert withdraw_request(control, FIRST.request_id) is Withdrawal.STOPPED
    assert read_fence(control) == FIRST


def test_a_withdrawal_touches_nothing_of_another_run(control: UPath) -> None:
    """Nor anything where nothing was asked."""
    _job(control)
    assert withdraw_request(control, FIRST.request_id) is Withdrawal.WITHDRAWN
    begin_stop(control, SECOND)
    assert withdraw_request(control, FIRST.request_id) is Withdrawal.WITHDRAWN
    assert (_asked(control), read_fence(control)) == (SECOND.request_id, SECOND)


def test_a_job_that_an_earlier_run_has_stopped_stays_fenced(control: UPath) -> None:
    """A second run takes the fence over; cancelled, it can't give back a job that does not run."""
    _job(control)
    begin_stop(control, FIRST)
    _answer(control, FIRST.request_id)
    assert begin_stop(control, SECOND) == SECOND
    assert withdraw_request(control, SECOND.request_id) is Withdrawal.STOPPED
    assert read_fence(control) == SECOND


def test_a_run_that_still_stops_the_job_keeps_its_fence(control: UPath) -> None:
    """Its request has no answer yet, so nothing can be taken over."""
    _job(control)
    begin_stop(control, FIRST)
    with pytest.raises(StopError, match=f"the stop '{FIRST.request_id}' is open"):
        begin_stop(control, SECOND)
    assert read_fence(control) == FIRST


@pytest.mark.parametrize("change", [{"run_id": "r2"}, {"application_id": "app-2"}])
def test_a_run_that_asks_again_wants_a_new_answer(control: UPath, change: dict[str, str]) -> None:
    """Where its stop was forgotten and a job has run since, the old answer proves nothing."""
    _job(control)
    begin_stop(control, FIRST)
    _answer(control, FIRST.request_id)
    assert forget_stop(control, FIRST.request_id) == FIRST
    assert (is_withdrawn(control), read_fence(control)) == (True, None)
    _job(control, **change)
    begin_stop(control, FIRST)
    assert read_acknowledgement(control, FIRST.request_id) is None
    assert _asked(control) == FIRST.request_id


def test_an_answer_in_the_place_of_the_job(control: UPath) -> None:
    """It says what proves the end, and counts for every later stop while nothing runs."""
    _job(control)
    begin_stop(control, FIRST)
    close_request(control, FIRST.request_id, StopProof.SILENT)
    begin_stop(control, SECOND)
    last = read_last_acknowledgement(control)
    assert last is not None
    assert (last.proof, last.clean, last.batch_id) == (StopProof.SILENT, False, None)
    assert last.answers("a later stop", read_driver(control))
    _job(control, application_id="app-2")
    assert not last.answers("a later stop", read_driver(control))


def test_what_a_job_has_said_is_kept(control: UPath) -> None:
    """Answered for a second run, the answer still holds the job's own words."""
    _job(control)
    begin_stop(control, FIRST)
    _answer(control, FIRST.request_id)
    begin_stop(control, SECOND)
    close_request(control, SECOND.request_id, StopProof.ACKNOWLEDGED)
    answer = read_acknowledgement(control, SECOND.request_id)
    assert answer is not None
    assert (answer.batch_id, answer.clean, answer.proof) == (7, True, StopProof.ACKNOWLEDGED)


def _beat(control: UPath, heartbeat: int) -> None:
    """Let the driver that runs live on."""
    path = control / "driver.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "heartbeat": heartbeat}))


def test_what_was_put_in_a_jobs_place_counts_until_it_lives(control: UPath) -> None:
    """A driver that was silent and goes on once the fence is lifted has not stopped."""
    _job(control)
    begin_stop(control, FIRST)
    close_request(control, FIRST.request_id, StopProof.SILENT)
    forget_stop(control, FIRST.request_id)
    _beat(control, 2)
    begin_stop(control, SECOND)
    last = read_last_acknowledgement(control)
    assert last is not None
    assert not last.answers("a later stop", read_driver(control))
    assert withdraw_request(control, SECOND.request_id) is Withdrawal.WITHDRAWN
    assert (_asked(control), read_fence(control)) == (None, None)


def test_a_stop_that_is_forgotten_by_half_can_be_forgotten(
    control: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request without its fence would stop the next job, and no command would find it."""
    _job(control)
    begin_stop(control, FIRST)

    def fail(path: UPath, _values: object) -> None:
        raise StopError(f"{path} is out of reach")

    with monkeypatch.context() as storage:
        storage.setattr(stopping, "write_object", fail)
        with pytest.raises(StopError, match="out of reach"):
            forget_stop(control, FIRST.request_id)
    assert forget_stop(control, FIRST.request_id) == FIRST
    assert (_asked(control), read_fence(control)) == (None, None)


def test_another_runs_stop_is_not_forgotten(control: UPath) -> None:
    """Its fence and its request stay."""
    _job(control)
    begin_stop(control, FIRST)
    with pytest.raises(StopError, match="the fence is not of"):
        forget_stop(control, SECOND.request_id)
    assert (_asked(control), read_fence(control)) == (FIRST.request_id, FIRST)


@pytest.mark.parametrize("written", ["fence.json", "stop-request.json"])
def test_a_stop_that_fails_once_written_is_taken_back(
    control: UPath, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """The storage took the file and broke off: the job was asked, and must run on."""
    _job(control)
    reached: list[UPath] = []

    def write(path: UPath, values: Mapping[str, object]) -> None:
        control_files.write_object(path, values)
        if path.name == written and not reached:
            reached.append(path)
            raise StopError(f"{path} is out of reach")

    monkeypatch.setattr(stopping, "write_object", write)
    monkeypatch.setattr(fences, "write_object", write)
    with pytest.raises(StopError, match="out of reach"):
        begin_stop(control, FIRST)
    assert reached
    assert (_asked(control), read_fence(control)) == (None, None)


def test_an_answer_to_another_run_is_left_to_it(control: UPath) -> None:
    """A run that wakes up late would leave the later run's request open, to stop the next job."""
    _job(control)
    begin_stop(control, FIRST)
    forget_stop(control, FIRST.request_id)
    begin_stop(control, SECOND)
    _answer(control, SECOND.request_id)
    with pytest.raises(StopError, match="manual__2' was requested since"):
        close_request(control, FIRST.request_id, StopProof.ACKNOWLEDGED)
    assert read_acknowledgement(control, SECOND.request_id) is not None
