"""The note beside a checkpoint: with which control location its job runs."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_mm2_offsets.job.stop.control import JobMovedError
from airflow_mm2_offsets.job.stop.note import CheckpointNote, note_control
from airflow_mm2_offsets.job.stop.streams import Streams
from tests.support.stop_step import RUN, StopStep
from tests.unit.job.drivers import Files, Query, driver
from tests.unit.operators.spark_job import Job


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def files(_spark: object, location: str) -> Files:
        return Files(Path(location.removeprefix("file:")))

    monkeypatch.setattr(f"{note_control.__module__}.HadoopFiles", files)
    for name in ("old", "new"):
        (tmp_path / name / "control").mkdir(parents=True)
    return tmp_path


def _run(folder: Path, home: str, *names: str) -> None:
    """Note that a job of some queries runs with the control location of a home."""
    checkpoints = [f"file:{folder}/{name}" for name in names or ("checkpoint",)]
    note_control(cast("Any", None), checkpoints, f"file:{folder}/{home}/control", "app")


def _noted(folder: Path, name: str = "checkpoint") -> str:
    said = json.loads((folder / f"{name}.control.json").read_text())
    assert (said["schema_version"], said["application_id"]) == (2, "app")
    return Path(said["control"]).parent.name


def _step(folder: Path) -> StopStep:
    return StopStep(folder / "old" / "control")


def test_each_checkpoint_says_with_which_control_location_its_job_runs(folder: Path) -> None:
    """The latest counts: without a fence the location is the user's to change."""
    for home in ("old", "new"):
        _run(folder, home, "a", "b")
        assert (_noted(folder, "a"), _noted(folder, "b")) == (home, home)


@pytest.mark.parametrize("state", ["stopping", "moved"])
def test_a_job_that_was_moved_by_its_earlier_control_location(folder: Path, state: str) -> None:
    """It does not run with another one either, until a newer fence is open; the note stays."""
    _run(folder, "old")
    _step(folder).fence(state, f"{RUN}#1")
    with pytest.raises(JobMovedError, match=f"jobs settle .* --at file:{folder}/old$"):
        _run(folder, "new")
    assert _noted(folder) == "old"
    _step(folder).let_run()
    _run(folder, "new")
    assert _noted(folder) == "new"


def test_one_that_is_fenced_there_as_it_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop reads the note after it raised the fence, so one of the two sees the other."""
    _run(folder, "old")
    write = CheckpointNote.write

    def write_late(*arguments: Any) -> None:
        write(*arguments)
        _step(folder).ask()

    monkeypatch.setattr(CheckpointNote, "write", write_late)
    with pytest.raises(JobMovedError):
        _run(folder, "new")
    assert _noted(folder) == "old"


def test_an_earlier_control_location_that_can_not_be_read(folder: Path) -> None:
    """The job may have been moved away; the error says what to delete if it was not."""
    _run(folder, "old")
    (folder / "old" / "control" / "fence" / "000001.json").mkdir(parents=True)
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
    _step(folder).move()
    control, query = driver(monkeypatch, job.control, "app-1"), Query()
    control._heartbeat.begin()  # noqa: SLF001 - the job's side
    vars(control)["_spark"] = None
    monkeypatch.setattr(Streams, "checkpoints", lambda _: [f"file:{folder}/checkpoint"])
    with pytest.raises(JobMovedError):
        control._run_to_end(Streams([cast("Any", query)]))  # noqa: SLF001
    assert query.did == ["held", "abandoned"]
