"""``SparkStoppedSensor``: what the silence of a checkpoint proves after a platform's cancel."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowSensorTimeout
from airflow.providers.standard.operators.empty import EmptyOperator
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.sensors.stopped import SparkStoppedSensor
from airflow_mm2_offsets.spark.cadence import read_cadence
from airflow_mm2_offsets.spark.stop_proof import find_missing_proof
from airflow_mm2_offsets.triggers.cancelled import CancelledJobTrigger
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

MODES = [
    pytest.param({"deferrable": False}, id="poke"),
    pytest.param({"deferrable": True}, id="defer"),
]


def _sensor(checkpoint: Path, *, has_cancel: bool = True, **settings: Any) -> SparkStoppedSensor:
    defaults: dict[str, Any] = {"quiet_period": 0.05, "timeout": 5, "poke_interval": 0.01}
    with DAG("failover", schedule=None):
        sensor = SparkStoppedSensor(
            task_id="wait", checkpoint=str(checkpoint), **{**defaults, **settings}
        )
        if has_cancel:
            EmptyOperator(task_id="cancel") >> sensor
    return sensor


def _run(worker: Worker, task: SparkStoppedSensor) -> dict[str, Any]:
    message = worker.run(task)
    if message.type == "DeferTask":
        (event,) = events(rebuild(message))
        worker.run(task, after=message, event=event)
    result: dict[str, Any] = worker.xcoms["wait", "return_value"]
    return result


def _batches(root: Path, *seconds: float) -> Path:
    """Write batches that began at these times."""
    files = {}
    for number, at in enumerate(seconds):
        metadata = json.dumps({"batchTimestampMs": int(1_800_000_000_000 + at * 1000)})
        files[f"offsets/{number}"] = checkpoints.batch(checkpoints.orders(1), metadata=metadata)
        files[f"commits/{number}"] = checkpoints.commit()
    return checkpoints.write(root, files)


@pytest.mark.parametrize("mode", MODES)
def test_silence_after_a_cancel_is_the_proof(
    worker: Worker, tmp_path: Path, mode: dict[str, Any]
) -> None:
    """The result says what it rests on, and the hand-over takes it while nothing has changed."""
    checkpoint = checkpoints.simple(tmp_path / "checkpoint")
    result = _run(worker, _sensor(checkpoint, **mode))
    assert result["proof"] == "silent"
    assert result["basis"] == "quiet checkpoint after cancel by EmptyOperator (cancel)"
    assert result["quiet_seconds"] >= 0.05 or result["quiet_seconds"] == pytest.approx(0.1, abs=0.1)
    stop = "failover:manual__1"
    assert find_missing_proof(result, stop, UPath(checkpoint), is_lost=False) is None
    (checkpoint / "offsets" / "2").write_text("v1")
    problem = find_missing_proof(result, stop, UPath(checkpoint), is_lost=False)
    assert problem
    assert "was written to since its stop was proved" in problem


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_lives_on_is_named_by_its_file(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: dict[str, Any]
) -> None:
    """The cancel has succeeded, and the checkpoint moves: the wait ends by its timeout."""
    job = Job(tmp_path / "job", 4, 0, 0, 0)
    poll, looks = CancelledJobTrigger.poll, [0]

    def commit_and_poll(self: CancelledJobTrigger) -> object:
        looks[0] += 1
        job.commit(looks[0], 4 + looks[0], 0, 0, 0)
        return poll(self)

    monkeypatch.setattr(CancelledJobTrigger, "poll", commit_and_poll)
    sensor = _sensor(job.checkpoint, timeout=0.3, quiet_period=0.2, **mode)
    with pytest.raises(StopError, match=r"commits/\d+, offsets/\d+ changed last") as caught:
        _run(worker, sensor)
    assert isinstance(caught.value, AirflowSensorTimeout)


def test_silence_must_outlast_the_jobs_own_gaps(worker: Worker, tmp_path: Path) -> None:
    """A job with a trigger of ten minutes is silent for ten minutes while it runs."""
    checkpoint = _batches(tmp_path / "checkpoint", 0, 600, 1200, 1500)
    sensor = _sensor(checkpoint, quiet_period=60, timeout=900)
    expected = (
        "quiet_period is 60 s, and the longest of the last 3 gaps between batches was 600 s; "
        "silence counts after 1800 s, and this wait ends in"
    )
    with pytest.raises(ConfigurationError, match=re.escape(expected)):
        _run(worker, sensor)


@pytest.mark.parametrize(
    ("interval", "required"), [(None, 3 * 7200), (30, 90), (1, 3 * 10)], ids=["gap", "word", "less"]
)
def test_a_users_word_takes_the_place_of_an_idle_topics_gap(
    tmp_path: Path, interval: float | None, required: float
) -> None:
    """But no gap is shorter than the shortest that was seen, whatever the user says."""
    checkpoint = _batches(tmp_path / "checkpoint", 0, 10, 7210, 7222)
    trigger = CancelledJobTrigger(
        checkpoint=str(checkpoint),
        quiet_period=5,
        request_id="r",
        cancelled_by="c",
        trigger_interval=interval,
        deadline=1e12,
        poll_interval=1,
    )
    assert f"0 of {required} s" in trigger.poll().reason  # type: ignore[union-attr]


def test_only_recent_whole_batches_tell_the_cadence(tmp_path: Path) -> None:
    """Batches long ago, without a time, half-written or from a clock set back are no gap."""
    checkpoint = _batches(tmp_path / "checkpoint", -9e6, *range(0, 80, 10), 60)
    (checkpoint / "offsets" / "10").write_text("v1\n{")
    (checkpoint / "offsets" / "11").write_text("v1\n\n1")
    assert read_cadence(UPath(checkpoint)).gaps == (*(10,) * 6, 0.0)


@pytest.mark.parametrize("quiet_period", [0, -1, float("nan"), float("inf"), "", "soon", None])
def test_a_quiet_period_is_a_time(worker: Worker, tmp_path: Path, quiet_period: object) -> None:
    """Nothing else proves anything."""
    checkpoint = checkpoints.simple(tmp_path / "checkpoint")
    with pytest.raises(ConfigurationError, match=r"quiet_period is .*; give seconds"):
        _run(worker, _sensor(checkpoint, quiet_period=quiet_period))


def test_each_look_must_remember_the_one_before(worker: Worker, tmp_path: Path) -> None:
    """As with quiet_after of Mm2ReplicatedSensor."""
    checkpoint = checkpoints.simple(tmp_path / "checkpoint")
    with pytest.raises(ConfigurationError, match="mode='reschedule' ends the process"):
        _run(worker, _sensor(checkpoint, deferrable=False, mode="reschedule"))


@pytest.mark.parametrize("files", [None, {"sources/0/0": "x"}])
def test_a_checkpoint_without_a_batch_proves_nothing(
    worker: Worker, tmp_path: Path, files: dict[str, str] | None
) -> None:
    """A wrong path is silent for ever."""
    if files:
        checkpoints.write(tmp_path / "checkpoint", files)
    with pytest.raises(ConfigurationError, match="holds no batch: its silence proves nothing"):
        _run(worker, _sensor(tmp_path / "checkpoint"))


def test_without_a_cancel_silence_proves_nothing(worker: Worker, tmp_path: Path) -> None:
    """An idle job is as silent as a stopped one."""
    checkpoint = checkpoints.simple(tmp_path / "checkpoint")
    with pytest.raises(ConfigurationError, match="no task before this one cancels the job"):
        _run(worker, _sensor(checkpoint, has_cancel=False))
    with pytest.raises(StopError, match="marked as success by hand"):
        _run(worker, _sensor(checkpoint, cancel={"by": "None"}))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("late", [0.0, 1.0])
def test_a_batch_after_the_cancel_is_of_another_driver(
    worker: Worker, tmp_path: Path, late: float, mode: dict[str, Any]
) -> None:
    """A driver that was started since is idle now: the old cancel has not ended it."""
    checkpoint = _batches(tmp_path / "checkpoint", 10 + late)
    sensor = _sensor(checkpoint, cancel={"by": "c", "at": "1800000010.0"}, **mode)
    if not late:
        assert _run(worker, sensor)["proof"] == "silent"
        return
    with pytest.raises(
        Exception, match=r"a batch was begun since the cancel, at .*:11\+00:00.*:10"
    ):
        _run(worker, sensor)


@pytest.mark.parametrize(
    ("cancel", "said"),
    [
        ({"by": "c", "when": 1}, r"cancel is {'by': 'c', 'when': 1}; give a mapping of by and at"),
        ("c", r"cancel is 'c'; give a mapping of by and at"),
        ({"by": "c", "at": "noon"}, r"cancel: at is 'noon'; give seconds"),
    ],
)
def test_a_cancel_is_what_and_when(
    worker: Worker, tmp_path: Path, cancel: object, said: str
) -> None:
    """A misspelt key is no cancel at an unknown time."""
    checkpoint = checkpoints.simple(tmp_path / "checkpoint")
    with pytest.raises(ConfigurationError, match=f"^task wait: {said}"):
        _run(worker, _sensor(checkpoint, cancel=cancel))
