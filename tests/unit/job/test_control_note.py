"""The note beside a checkpoint: with which control location its job runs."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_mm2_offsets.job.stop.control import JobMovedError
from airflow_mm2_offsets.job.stop.note import CheckpointNote, note_control
from airflow_mm2_offsets.job.stop.streams import Streams
from airflow_mm2_offsets.spark.fence import FenceState, lift_fence, new_fence, raise_fence
from tests.unit.job.drivers import Files, Query, driver
from tests.unit.operators.spark_job import Job

STOP = new_fence("failover:manual__1", "the target")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def files(_spark: object, location: str) -> Files:
        return Files(Path(location.removeprefix("file:")))

    monkeypatch.setattr(f"{note_control.__module__}.HadoopFiles", files)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    return tmp_path


def _run(folder: Path, control: str, *names: str) -> None:
    """Note that a job of some queries runs with a control location."""
    checkpoints = [f"file:{folder}/{name}" for name in names or ("checkpoint",)]
    note_control(cast("Any", None), checkpoints, f"file:{folder}/{control}", "app")


def _noted(folder: Path, name: str = "checkpoint") -> str:
    said = json.loads((folder / f"{name}.control.json").read_text())
    assert (said["schema_version"], said["application_id"]) == (1, "app")
    return Path(said["control"]).name


def test_each_checkpoint_says_with_which_control_location_its_job_runs(folder: Path) -> None:
    """The latest counts: without a fence the location is the user's to change."""
    for control in ("old", "new"):
        _run(folder, control, "a", "b")
        assert (_noted(folder, "a"), _noted(folder, "b")) == (control, control)


@pytest.mark.parametrize("state", list(FenceState))
def test_a_job_that_was_moved_by_its_earlier_control_location(
    folder: Path, state: FenceState
) -> None:
    """It does not run with another one either, until the fence is lifted; the note stays."""
    _run(folder, "old")
    raise_fence(str(folder / "old"), STOP)
    fence = json.loads((folder / "old" / "fence.json").read_text())
    (folder / "old" / "fence.json").write_text(json.dumps({**fence, "state": state}))
    with pytest.raises(JobMovedError, match=f"fence lift file:{folder}/old --request-id"):
        _run(folder, "new")
    assert _noted(folder) == "old"
    lift_fence(str(folder / "old"), STOP.request_id)
    _run(folder, "new")
    assert _noted(folder) == "new"


def test_one_that_is_fenced_there_as_it_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop reads the note after it raised the fence, so one of the two sees the other."""
    _run(folder, "old")
    write = CheckpointNote.write

    def write_late(*given: Any) -> None:
        write(*given)
        raise_fence(str(folder / "old"), STOP)

    monkeypatch.setattr(CheckpointNote, "write", write_late)
    with pytest.raises(JobMovedError):
        _run(folder, "new")
    assert _noted(folder) == "old"


def test_an_earlier_control_location_that_can_not_be_read(folder: Path) -> None:
    """A fence may stand there; the error says what to delete where none does."""
    _run(folder, "old")
    (folder / "old" / "fence.json").mkdir()
    with pytest.raises(OSError, match=f"delete file:{folder}/checkpoint.control.json"):
        _run(folder, "new")


@pytest.mark.parametrize("note", ["[", None])
def test_a_note_that_can_not_be_read_or_written(
    folder: Path, caplog: pytest.LogCaptureFixture, note: str | None
) -> None:
    """The job runs: a folder that it may not write to keeps no job from starting."""
    path = folder / "checkpoint.control.json"
    path.write_text(note) if note else path.mkdir()
    _run(folder, "new")
    assert "Can't read file:" in caplog.text
    assert ("Can't write file:" in caplog.text) is (note is None)


def test_a_driver_that_was_moved_runs_no_batch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its queries are abandoned before a batch may begin, and it says that they have ended."""
    job = Job(folder / "job", 4, 6)
    _run(folder, "old")
    raise_fence(str(folder / "old"), STOP)
    control, query = driver(monkeypatch, job.control, "app-1"), Query()
    control._heartbeat.begin()  # noqa: SLF001 - the job's side
    vars(control)["_spark"] = None
    monkeypatch.setattr(Streams, "checkpoints", lambda _: [f"file:{folder}/checkpoint"])
    with pytest.raises(JobMovedError):
        control._run_to_end(Streams([cast("Any", query)]))  # noqa: SLF001
    assert query.did == ["held", "abandoned"]
