"""The wait for the proof of a stop, look by look."""

import json
import time
from functools import partial
from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import (
    StopError,
)
from airflow_mm2_offsets.job.stop.control import JobMovedError
from airflow_mm2_offsets.spark.fence import new_fence
from airflow_mm2_offsets.spark.stopping import begin_stop, request_stop
from airflow_mm2_offsets.triggers.polling import Done, NotYet
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger, withdraw
from tests.unit.job.drivers import driver
from tests.unit.operators.spark_job import Job
from tests.unit.triggers.times import TIMES


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _stopped(
    job: Job, quiet_period: float, heartbeat_timeout: float | None = None
) -> SparkStoppedTrigger:
    return SparkStoppedTrigger(
        control=str(job.control),
        checkpoint=str(job.checkpoint),
        request_id="stop-1",
        quiet_period=quiet_period,
        heartbeat_timeout=heartbeat_timeout,
        **TIMES,
    )


def test_an_answer_to_another_request_does_not_count(job: Job) -> None:
    """Only the acknowledgement of this request counts."""
    request_stop(str(job.control), "stop-0")
    job.acknowledge()
    found = _stopped(job, 0.0).poll()
    assert isinstance(found, NotYet)
    assert found.reason.startswith(f"{job.control} holds no acknowledgement of stop-1 (driver h:7")


def test_a_stop_gives_signs_of_life_until_it_is_answered(job: Job) -> None:
    """Without them the job takes it for given up."""
    request_stop(str(job.control), "stop-1")
    trigger, heartbeat = _stopped(job, 0.0), job.control / "stop-heartbeat.json"
    signs = []
    for _ in range(2):
        trigger.poll()
        signs.append(json.loads(heartbeat.read_text()))
    assert [sign["request_id"] for sign in signs] == ["stop-1", "stop-1"]
    assert signs[0]["at"] < signs[1]["at"]
    assert signs[0]["interval"] == TIMES["poll_interval"]
    job.acknowledge()
    trigger.poll()
    assert json.loads(heartbeat.read_text()) == signs[1]


def test_a_driver_that_still_beats_has_not_stopped(job: Job) -> None:
    """Each heartbeat and each change of the checkpoint starts the quiet period again."""
    request_stop(str(job.control), "stop-1")
    job.acknowledge()
    quiet_period = 0.08
    trigger = _stopped(job, quiet_period)
    assert isinstance(trigger.poll(), NotYet)
    for change in (
        lambda: job.beat(2),
        lambda: (job.checkpoint / "offsets" / ".1.tmp").write_text("x"),
        lambda: (job.checkpoint / "commits" / ".1.tmp").write_text("x"),
    ):
        _pass(quiet_period)
        change()
        found = trigger.poll()
        assert isinstance(found, NotYet)
        assert "have stood still for 0 of 0 s" in found.reason
    _pass(quiet_period)
    assert isinstance(trigger.poll(), Done)


def test_a_silent_driver_counts_as_dead_only_after_heartbeat_timeout(job: Job) -> None:
    """Each heartbeat, and a late answer, start the count again."""
    request_stop(str(job.control), "stop-1")
    assert isinstance(_stopped(job, 0.0).poll(), NotYet)
    heartbeat_timeout = 0.08
    trigger = _stopped(job, heartbeat_timeout, heartbeat_timeout=heartbeat_timeout)
    assert isinstance(trigger.poll(), NotYet)
    for change in (partial(job.beat, 2), job.acknowledge):
        _pass(heartbeat_timeout)
        change()
        assert isinstance(trigger.poll(), NotYet)
    _pass(heartbeat_timeout)
    found = trigger.poll()
    assert isinstance(found, Done)
    assert found.result["proof"] == "acknowledged"


def test_a_job_that_has_ended_is_stopped_already(job: Job) -> None:
    """Its own word that no query runs is the proof, once its driver beats no more for its lease."""
    request_stop(str(job.control), "stop-1")
    lease = 0.2
    job.beat(1, ended=True, lease=lease)
    trigger = _stopped(job, 0.0)
    found = trigger.poll()
    assert isinstance(found, NotYet)
    assert found.reason.startswith("its queries have ended; heartbeat and checkpoint have stood")
    _pass(lease)
    job.beat(2, ended=True, lease=lease)
    assert isinstance(trigger.poll(), NotYet)
    _pass(lease)
    found = trigger.poll()
    assert isinstance(found, Done)
    assert (found.result["proof"], found.result["batch_id"]) == ("ended", None)


def test_an_earlier_answer_counts_while_nothing_has_followed(job: Job) -> None:
    """Not where another driver has begun since, nor where the job says not which run stopped."""
    request_stop(str(job.control), "stop-0")
    job.acknowledge(queries=[job.query_answer(0)])
    found = _stopped(job, 0.0).poll()
    assert isinstance(found, Done)
    assert found.result["proof"] == "acknowledged"
    job.beat(1, run_id="another")
    assert isinstance(_stopped(job, 0.0).poll(), NotYet)


def test_no_wait_is_shorter_than_the_drivers_own_times(job: Job) -> None:
    """Three heartbeats of one that answered, its lease of one that did not."""
    request_stop(str(job.control), "stop-1")
    job.beat(1, interval=0.02, lease=0.08)
    silent = _stopped(job, 0.0, heartbeat_timeout=0.0)
    found = silent.poll()
    assert isinstance(found, NotYet)
    assert "have stood still for 0 of 0 s" in found.reason
    _pass(0.1)
    assert isinstance(silent.poll(), Done)
    job.acknowledge()
    answered = _stopped(job, 0.0)
    assert isinstance(answered.poll(), NotYet)
    _pass(0.06)
    assert isinstance(answered.poll(), Done)


def test_an_answer_that_differs_from_the_checkpoint_ends_the_wait(job: Job) -> None:
    """Acknowledged batch 7 at offset 99, checkpoint at batch 0: refused with both numbers."""
    request_stop(str(job.control), "stop-1")
    job.acknowledge(batch_id=7, offsets=[{"orders": {"0": 99}}])
    with pytest.raises(StopError, match=r"last committed batch is 0, and 7 in the answer"):
        _stopped(job, 0.0).poll()


def _pass(seconds: float) -> None:
    time.sleep(seconds)  # the claim is about time that passes


def test_a_job_that_failed_has_stopped_too(job: Job) -> None:
    """Its answer says why it had failed; what to do then is the caller's to say."""
    request_stop(str(job.control), "stop-1")
    job.acknowledge(error="boom")
    trigger = _stopped(job, 0.0)
    found = trigger.poll()
    assert isinstance(found, Done)
    assert found.result["error"] == "boom"
    assert found.result["batch_id"] == 0


def test_a_control_location_that_holds_something_else_ends_the_wait(job: Job) -> None:
    """Damaged files of the job end the wait at once."""
    (job.control / "driver.json").write_text("[]")
    with pytest.raises(StopError, match=r"driver\.json"):
        _stopped(job, 0.0).poll()


def test_a_stop_with_an_unreadable_answer_says_what_to_do(job: Job) -> None:
    """Whatever is wrong with the answer, the person who cancelled reads how the stop is undone."""
    positions = {"orders": {"0": "four"}}
    job.acknowledge(request_id="other", offsets=[positions])
    trigger = SparkStoppedTrigger(
        control=str(job.control),
        checkpoint=str(job.checkpoint),
        request_id="stop-1",
        quiet_period=1,
        deadline=0,
        poll_interval=1,
    )
    assert "airflow-mm2-offsets fence lift" in withdraw(trigger)


def test_only_an_answer_of_the_last_driver_counts(job: Job) -> None:
    """Two drivers had one control location: the one that wrote last has not stopped."""
    request_stop(str(job.control), "stop-1")
    job.acknowledge(queries=[job.query_answer(0)])
    assert isinstance(_stopped(job, 0.0).poll(), Done)
    for other in ({"run_id": "another"}, {"application_id": "app-2"}):
        job.beat(1, **other)
        assert isinstance(_stopped(job, 0.0).poll(), NotYet)
    job.acknowledge(queries=[job.query_answer(0)], proof="silent")  # of the stop step
    assert isinstance(_stopped(job, 0.0).poll(), Done)


def test_a_driver_that_is_refused_proves_no_end(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a cluster manager starts another, the paused one has not ended."""
    job.beat(30, lease=0.01)
    begin_stop(str(job.control), new_fence("stop-1", "the target"))
    with pytest.raises(JobMovedError):
        driver(monkeypatch, job.control, "app-2")._start()  # noqa: SLF001 - as constructed
    trigger = _stopped(job, 0.0)
    trigger.poll()
    _pass(0.02)
    assert isinstance(trigger.poll(), NotYet)
