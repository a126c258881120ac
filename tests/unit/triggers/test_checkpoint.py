"""The wait for the first batch of a Spark job, look by look."""

from functools import partial
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    PlanError,
    TargetJobError,
)
from airflow_mm2_offsets.spark.offsets_file import write_offsets
from airflow_mm2_offsets.triggers.checkpoint import SparkStartedTrigger
from airflow_mm2_offsets.triggers.polling import Done, NotYet
from tests.unit.spark import checkpoints
from tests.unit.triggers.times import TIMES


def _started(root: Path | str, starting_offsets: str | None = None) -> Done | NotYet:
    trigger = SparkStartedTrigger(checkpoint=str(root), starting_offsets=starting_offsets, **TIMES)
    return trigger.poll()


def test_a_job_without_a_committed_batch_is_waited_for(tmp_path: Path) -> None:
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


def test_a_drill_waits_until_there_is_something_to_compare(tmp_path: Path) -> None:
    """Records since the start of the job count, of all partitions together: 3 and 4 here."""
    root = str(checkpoints.simple(tmp_path))
    trigger = partial(SparkStartedTrigger, checkpoint=root, starting_offsets=None, **TIMES)
    assert trigger(min_records=8).poll() == NotYet(
        reason=f"{root}: the job has read 7 of 8 records since its start"
    )
    assert isinstance(trigger(min_records=7).poll(), Done)


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
        ({"offsets/1": checkpoints.batch(checkpoints.orders(1, 6))}, "or the topic was recreated"),
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


def test_an_incomplete_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_unknown_storage_ends_the_wait() -> None:
    """No library reads it, however long the trigger waits."""
    with pytest.raises(ConfigurationError, match=r"^nosuch:/+bucket/checkpoint is out of reach"):
        _started("nosuch://bucket/checkpoint")


@pytest.fixture
def of_a_file(tmp_path: Path) -> SparkStartedTrigger:
    checkpoints.simple(tmp_path / "checkpoint")
    offsets = write_offsets(checkpoints.orders(1, 2), f"{tmp_path}/run.json", UPath)
    return SparkStartedTrigger(
        checkpoint=f"{tmp_path}/checkpoint", starting_offsets=offsets, **TIMES
    )


def test_a_storage_that_refuses_the_offsets_is_waited_for(of_a_file: SparkStartedTrigger) -> None:
    """As it is where it refuses the checkpoint: the wait goes on, and ends when it answers."""
    file = Path(str(of_a_file.starting_offsets)[1:])
    content = file.read_text()
    file.unlink()
    file.mkdir()  # stands for a storage that refuses
    waiting = of_a_file.look()
    assert isinstance(waiting, NotYet)
    assert f"{file} is out of reach" in waiting.reason
    file.rmdir()
    file.write_text(content)
    assert isinstance(of_a_file.poll(), Done)


def test_the_offsets_are_read_once(of_a_file: SparkStartedTrigger) -> None:
    """They are the same at each look, and of 10,000 partitions 200 kB."""
    assert isinstance(of_a_file.poll(), Done)
    Path(str(of_a_file.starting_offsets)[1:]).unlink()
    assert isinstance(of_a_file.poll(), Done)


def test_offsets_that_are_gone_end_the_wait(of_a_file: SparkStartedTrigger) -> None:
    """No later look finds them; the next step names the job's own DAG run, too."""
    Path(str(of_a_file.starting_offsets)[1:]).unlink()
    with pytest.raises(PlanError, match=r"is gone: clear .* if the job's own DAG run exists"):
        of_a_file.poll()
