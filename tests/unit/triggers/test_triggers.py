"""The three waits, each looked at poll by poll."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import pytest
from airflow.providers.common.compat.module_loading import import_string

from airflow_mm2_offsets.core import check_positions
from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    ConfigurationError,
    StopError,
    TargetJobError,
)
from airflow_mm2_offsets.job.stop.control import JobMovedError
from airflow_mm2_offsets.spark.fence import new_fence
from airflow_mm2_offsets.spark.stopping import begin_stop, request_stop
from airflow_mm2_offsets.triggers.checkpoint import SparkStartedTrigger
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger, withdraw
from tests.support.pairs import STOPPED
from tests.unit.job.drivers import driver
from tests.unit.operators.clusters import Clusters, define, impatient
from tests.unit.operators.jobs import Job
from tests.unit.spark import checkpoints


class _Times(TypedDict):
    deadline: float
    poll_interval: float


TIMES: _Times = {"deadline": 1795254056.2735019, "poll_interval": 0.25}


@pytest.mark.parametrize(
    "trigger",
    [
        ReplicatedTrigger(mm2_conn_id="mm2", positions={"orders": {0: 2**53 + 1}}, **TIMES),
        SparkStartedTrigger(checkpoint="s3://a@b/c", starting_offsets=None, after_batch=7, **TIMES),
        SparkStartedTrigger(checkpoint="/c", starting_offsets='{"orders":{"0":1}}', **TIMES),
        SparkStoppedTrigger(
            control="/a", checkpoint="/b", request_id="c", quiet_period=6.0, **TIMES
        ),
    ],
)
def test_a_trigger_survives_serialization(trigger: PollingTrigger) -> None:
    """Class and arguments, through JSON and an import by name, make an equal trigger."""
    path, arguments = trigger.serialize()
    again = import_string(path)(**json.loads(json.dumps(arguments)))
    assert type(again) is type(trigger)
    assert _comparable(again) == _comparable(trigger)
    assert again.deadline == TIMES["deadline"]


def _comparable(trigger: PollingTrigger) -> dict[str, Any]:
    arguments = trigger.serialize()[1]
    if "positions" in arguments:  # JSON makes text of a partition's number
        arguments["positions"] = check_positions(arguments["positions"])
    return arguments


# ReplicatedTrigger


def _behind(positions: dict[str, Any]) -> Done | NotYet:
    return ReplicatedTrigger(mm2_conn_id="mm2_default", positions=positions, **TIMES).poll()


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("positions", [{"orders": {"0": 4}}, {"orders": {0: "7"}}])
def test_what_a_sync_has_passed_is_replicated(positions: dict[str, Any]) -> None:
    """A sync at or after the position ends the wait; keys and numbers may be text."""
    assert _behind(positions) == Done()


def test_each_partition_that_is_behind_is_named(clusters: Clusters) -> None:
    """The reason names partition and position, and only those that are behind."""
    waiting = _behind({"orders": {"0": 4, "1": 3}})
    assert isinstance(waiting, NotYet)
    assert waiting.reason.startswith("orders[1] at 3 no offset sync is known")
    clusters.copy_the_rest()
    clusters.sync(9, 9, partition=1)
    assert _behind({"orders": {"0": 4, "1": 3}}) == Done()


def test_a_cluster_that_is_down_is_left_to_the_wait(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll raises what every wait takes for not there yet."""
    assert clusters
    impatient(monkeypatch)
    down = {"bootstrap.servers": STOPPED.bootstrap_servers}
    define(monkeypatch, "kafka_target", conn_type="kafka", extra=down)
    with pytest.raises(ClusterUnreachableError, match=r"target cluster \(kafka_target\)"):
        _behind({"orders": {"0": 4}})


def test_a_connection_that_is_gone_ends_the_wait() -> None:
    """No waiting mends a connection: the poll raises its error."""
    with pytest.raises(ConfigurationError, match="connection mm2_default does not exist"):
        _behind({"orders": {"0": 4}})


# SparkStartedTrigger


def _started(root: Path | str, starting_offsets: str | None = None) -> Done | NotYet:
    trigger = SparkStartedTrigger(checkpoint=str(root), starting_offsets=starting_offsets, **TIMES)
    return trigger.poll()


def test_a_job_that_has_hardly_begun_is_waited_for(tmp_path: Path) -> None:
    """No checkpoint, half of one, and one without a committed batch are not there yet."""
    for files, missing in [
        (None, "metadata: is missing"),
        ({}, "offsets/ holds no batch"),
        (
            {
                "sources/0/0": checkpoints.start(checkpoints.orders(1, 2)),
                "offsets/0": checkpoints.batch(checkpoints.orders(2, 3)),
            },
            "has no committed batch",
        ),
    ]:
        if files is not None:
            checkpoints.write(tmp_path / "checkpoint", files)
        found = _started(tmp_path / "checkpoint", checkpoints.orders(1, 2))
        assert isinstance(found, NotYet)
        assert missing in found.reason


def test_a_job_that_began_where_it_should_is_there(tmp_path: Path) -> None:
    """The result says up to where the last committed batch came."""
    expected = {
        "batch_id": 1,
        "query_id": checkpoints.QUERY_ID,
        "positions": checkpoints.orders(4, 6),
    }
    checkpoints.simple(tmp_path)
    assert _started(tmp_path, checkpoints.orders(1, 2)) == Done(result=expected)
    assert _started(tmp_path) == Done(result=expected)


def test_a_migrated_checkpoint_has_batches_before_the_job(tmp_path: Path) -> None:
    """Only a batch after those that came with it shows that the job runs."""
    root = str(checkpoints.simple(tmp_path))
    trigger = partial(SparkStartedTrigger, checkpoint=root, starting_offsets=None, **TIMES)
    waiting = trigger(after_batch=1).poll()
    assert waiting == NotYet(reason=f"{root} has no committed batch after 1")
    assert isinstance(trigger(after_batch=0).poll(), Done)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"offsets/1": checkpoints.batch(checkpoints.orders(1, 6))}, "or the topic was made again"),
        ({"offsets/1": checkpoints.batch(checkpoints.orders(9))}, "or with another subscription"),
        ({"commits/7": checkpoints.commit()}, "two queries wrote here"),
        ({"offsets/1": "v1\n{}\n{"}, "half-written or damaged"),
    ],
)
def test_a_checkpoint_that_stays_damaged_ends_the_wait(
    tmp_path: Path, files: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two reads that find the same damage end the wait; the error names each possible cause."""
    start = checkpoints.orders(1, 2)
    whole = {
        "sources/0/0": checkpoints.start(start),
        "offsets/0": checkpoints.batch(checkpoints.orders(2, 3)),
        "commits/0": checkpoints.commit(),
    }
    checkpoints.write(tmp_path, {**whole, **files})
    monkeypatch.setattr("airflow_mm2_offsets.triggers.checkpoint.time.sleep", lambda _: None)
    with pytest.raises(TargetJobError) as caught:
        _started(tmp_path, start)
    text = str(caught.value)
    assert named in text
    assert "started against another cluster, or" in text or "poisoned" not in text


def test_a_file_in_the_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the second read finds another state, whole or not, the job is at work."""
    checkpoints.write(tmp_path, {"offsets/0": ""})
    waits: list[float] = []

    def write(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            (tmp_path / "offsets" / "0").write_text("v1\n")
        else:
            checkpoints.simple(tmp_path)

    monkeypatch.setattr("airflow_mm2_offsets.triggers.checkpoint.time.sleep", write)
    assert isinstance(_started(tmp_path), NotYet)
    assert isinstance(_started(tmp_path), Done)
    assert waits == [TIMES["poll_interval"]] * 2


def test_a_job_that_starts_late_is_waited_for(tmp_path: Path) -> None:
    """A checkpoint that is missing is not a damaged one: the wait goes on."""
    late = _started(tmp_path)
    assert isinstance(late, NotYet)
    assert "delete that run before the failover is given up" in late.reason


def test_a_job_that_began_elsewhere_ends_the_wait(tmp_path: Path) -> None:
    """The error names both places, before a batch is committed even."""
    root = checkpoints.simple(tmp_path)
    for number in (0, 1):
        (root / "commits" / str(number)).unlink()
    (root / "offsets" / "1").unlink()
    with pytest.raises(TargetJobError) as caught:
        _started(root, checkpoints.orders(1, 3))
    assert f"began at {checkpoints.orders(1, 2)} and not at {checkpoints.orders(1, 3)}" in str(
        caught.value
    )


def test_a_job_that_does_not_say_where_it_began_ends_the_wait(tmp_path: Path) -> None:
    """Without its sources the checkpoint proves nothing, and the error says that."""
    root = checkpoints.simple(tmp_path)
    (root / "sources" / "0" / "0").unlink()
    with pytest.raises(TargetJobError, match="began at a position that it no longer names and"):
        _started(root, checkpoints.orders(1, 2))
    assert isinstance(_started(root), Done)


@pytest.mark.parametrize("poll", [_started])
def test_an_unknown_storage_ends_the_wait(poll: Any) -> None:  # noqa: ANN401 - a function
    """A location of an unknown kind will not become one of a known kind."""
    with pytest.raises(ConfigurationError, match=r"^nosuch:/+bucket/checkpoint is out of reach"):
        poll("nosuch://bucket/checkpoint")


# SparkStoppedTrigger


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


def test_a_driver_without_an_answer_is_gone_only_where_that_was_said(job: Job) -> None:
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


def test_no_time_counts_for_less_than_what_the_driver_says(job: Job) -> None:
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


def test_a_word_that_differs_from_the_checkpoint_ends_the_wait(job: Job) -> None:
    """Acknowledged batch 7 at offset 99, checkpoint at batch 0: refused with both numbers."""
    request_stop(str(job.control), "stop-1")
    job.acknowledge(batch_id=7, offsets=[{"orders": {"0": 99}}])
    with pytest.raises(StopError, match=r"last committed batch is 0, and the job .* says 7"):
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


def test_a_stop_beside_an_answer_that_can_not_be_read_says_what_to_do(job: Job) -> None:
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


def test_an_answer_of_another_driver_than_the_last_is_none(job: Job) -> None:
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
