"""A disaster, task by task: which part of the source's storage is lost, and when."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from fsspec.implementations.local import LocalFileSystem

from airflow_mm2_offsets.errors import CheckpointError, HandoverError, NotReadyError
from airflow_mm2_offsets.operators.save_positions import SaveSparkPositionsOperator
from airflow_mm2_offsets.spark.fence import FenceState
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

DISASTER = tuple(step for step in STEPS if step not in {"wait_replicated", "verify"})


class Disaster(Failover):
    """A failover from saved positions, which nobody has to approve."""

    def __init__(self, worker: Worker, dag: DAG, source: Job, saved: Path) -> None:
        super().__init__(worker, dag, source)
        with DAG("mm2_archive_syncs", schedule=None):
            save = SaveSparkPositionsOperator(
                task_id="save", checkpoint=str(source.checkpoint), save_to=str(saved)
            )
        worker.run(save)
        self.give(mode="disaster", saved_positions=str(saved), approve="never")

    def give(self, **params: object) -> None:
        """Set params of the run."""
        self.worker.conf = {**self.worker.conf, **params}

    def run_from(self, first: str, until: str) -> None:
        """Run the tasks from one to before another."""
        for each in DISASTER[DISASTER.index(first) : DISASTER.index(until)]:
            self.run(each)

    def started_at(self) -> str:
        """Hand the job over; return where it starts on the target."""
        self.run("submit_target")
        (conf,) = self.worker.triggered.values()
        return str(conf["starting_offsets"])

    def result(self, task_id: str) -> Any:  # noqa: ANN401 - plain JSON
        return self.worker.xcoms[task_id, "return_value"]


@pytest.fixture
def disaster(worker: Worker, failover: DAG, source: Job, tmp_path: Path) -> Disaster:
    return Disaster(worker, failover, source, tmp_path / "saved")


def _remove(folder: Path, _: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder)


def _empty(folder: Path, _: pytest.MonkeyPatch) -> None:
    """Leave what the mount of a lost storage leaves."""
    shutil.rmtree(folder)
    folder.mkdir()


def _cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each access fail, as that of a storage which does not answer."""

    def refuse(method: Callable[..., Any], files: Any, path: str, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - fsspec's
        if str(path).startswith(str(folder)):
            raise OSError(f"{folder} does not answer")
        return method(files, path, *args, **named)

    for name in ("ls", "info", "exists", "_open"):
        method = partial(refuse, getattr(LocalFileSystem, name))
        monkeypatch.setattr(
            LocalFileSystem,
            name,
            lambda files, *args, do=method, **named: do(files, *args, **named),
        )


LOSSES = pytest.mark.parametrize("lose", [_remove, _empty, _cut_off])
Lose = Callable[[Path, pytest.MonkeyPatch], None]


def test_a_job_whose_storage_answers_is_moved_from_its_checkpoint(disaster: Disaster) -> None:
    """Saved positions are older, and more would be read again."""
    disaster.run_from("check", "submit_target")
    assert disaster.result("read_positions")["origin"] == "checkpoint"
    assert disaster.started_at() == STARTING


@LOSSES
def test_the_users_word_counts_from_the_first_task_on(
    disaster: Disaster, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of the job's folders lost, word and saved positions bring the job to the target."""
    disaster.give(source_is_gone=True)
    lose(disaster.source.folder, monkeypatch)
    disaster.run_from("check", "submit_target")
    assert disaster.result("stop_source")["proof"] == "asserted"
    assert disaster.started_at() == STARTING


@LOSSES
def test_a_lost_folder_is_told_with_the_word_that_is_missing(
    disaster: Disaster, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check names both ways on: give the word, or another folder."""
    lose(disaster.source.folder, monkeypatch)
    with pytest.raises(NotReadyError, match="give source_is_gone; else give the folders"):
        disaster.run("check")


def test_a_lost_control_location_is_replaced_by_the_users_word(disaster: Disaster) -> None:
    """The checkpoint that is left counts, and not the saved positions."""
    disaster.give(source_is_gone=True)
    shutil.rmtree(disaster.source.control)
    disaster.run_from("check", "submit_target")
    assert disaster.result("read_positions")["origin"] == "checkpoint"
    assert disaster.started_at() == STARTING


@LOSSES
@pytest.mark.parametrize("lost_before", ["check", "read_positions", "translate", "submit_target"])
def test_a_checkpoint_that_is_lost_by_itself(
    disaster: Disaster, lose: Lose, lost_before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control location proves the stop, whenever the checkpoint is lost: no word is needed."""
    disaster.run_from("check", lost_before)
    lose(disaster.source.checkpoint, monkeypatch)
    disaster.run_from(lost_before, "submit_target")
    assert disaster.result("stop_source")["proof"] == "acknowledged"
    assert disaster.started_at() == STARTING
    assert disaster.fence_state() is FenceState.MOVED


@pytest.mark.parametrize("word", ["True", "False"])
def test_a_driver_is_compared_where_only_the_checkpoint_is_lost(
    disaster: Disaster, word: str
) -> None:
    """The user's word does not count against a control location that answers."""
    disaster.give(source_is_gone=word == "True")
    shutil.rmtree(disaster.source.checkpoint)
    disaster.run_from("check", "submit_target")
    disaster.source.beat(2)
    with pytest.raises(HandoverError, match="the job has run since"):
        disaster.run("submit_target")
    assert not disaster.worker.triggered


@pytest.mark.parametrize("lost_before", ["check", "read_positions", "translate", "submit_target"])
def test_a_checkpoint_is_needed_in_any_other_mode(disaster: Disaster, lost_before: str) -> None:
    """Of a planned failover nothing is started on the target."""
    disaster.give(mode="planned")
    with pytest.raises((NotReadyError, CheckpointError)):
        _lose_before(disaster, lost_before)
    assert not disaster.worker.triggered


def _lose_before(disaster: Disaster, lost_before: str) -> None:
    disaster.run_from("check", lost_before)
    shutil.rmtree(disaster.source.checkpoint)
    disaster.run_from(lost_before, "submit_target")
    disaster.run("submit_target")


@pytest.mark.parametrize("back_before", ["read_positions", "translate", "submit_target"])
def test_a_storage_that_comes_back_is_compared(disaster: Disaster, back_before: str) -> None:
    """No fence stands there, so a driver may have run: nothing is started on the target."""
    disaster.give(source_is_gone=True)
    folder, lost = disaster.source.folder, disaster.source.folder.parent / "lost"
    folder.rename(lost)
    disaster.run_from("check", back_before)
    lost.rename(folder)
    with pytest.raises(HandoverError):
        _go_on(disaster, back_before)
    assert not disaster.worker.triggered


def _go_on(disaster: Disaster, first: str) -> None:
    disaster.run_from(first, "submit_target")
    disaster.run("submit_target")


def test_records_after_given_positions_are_read_again(disaster: Disaster) -> None:
    """Nothing says that the job has not gone on since: all up to the target's end is told."""
    shutil.rmtree(disaster.source.checkpoint)
    given = '{"orders":{"0":2,"1":0,"2":0,"3":0}}'
    vars(disaster.task("read_positions")).update(positions=given, saved_positions="")
    disaster.run_from("check", "approve")
    (line,) = [each for each in disaster.result("forecast")["partitions"] if not each["partition"]]
    assert line["read_again"]["at_most"] == 15 - 7
    assert disaster.result("read_positions")["as_of"] is not None


def test_the_report_says_how_to_fence_a_job_that_was_moved_by_word(disaster: Disaster) -> None:
    """Else the old job begins when its storage is back, and two jobs run."""
    disaster.give(source_is_gone=True)
    shutil.rmtree(disaster.source.folder)
    disaster.run_from("check", "report")
    disaster.worker.states = dict.fromkeys(DISASTER[:-1], "success")
    disaster.run("report")
    report = disaster.result("report")
    assert report["outcome"] == "moved"
    command = f"airflow-mm2-offsets fence raise {disaster.source.control} --request-id"
    assert command in " ".join(report["next"])
    assert command in disaster.worker.xcoms["report", "summary"]


def test_no_login_of_a_folder_is_shown(disaster: Disaster, tmp_path: Path) -> None:
    """A dry run names the target's folder in its intents; the fence names it in a file."""
    folder = "memory://etl:hunter2@host/target"
    disaster.give(target_folder=folder, dry_run=True, reports_folder=str(tmp_path / "reports"))
    assert disaster.worker.run(disaster.task("submit_target")).state == "skipped"
    assert disaster.worker.xcoms["submit_target", "intent"].startswith("mark the job as moved")
    disaster.give(dry_run=False)
    disaster.run_from("stop_source", "read_positions")
    files = [path.read_text() for path in disaster.source.control.iterdir()]
    assert any("memory://etl:***@host/target" in text for text in files)
    assert "hunter2" not in str([disaster.worker.xcoms, files])


def test_saved_positions_are_looked_at_before_the_stop(disaster: Disaster, tmp_path: Path) -> None:
    """Their translation, too; without ones that can be used the failover does not begin."""
    shutil.rmtree(disaster.source.checkpoint)
    disaster.run("check")
    checks = disaster.result("check")["checks"]
    found = {each["name"]: each for each in checks}
    assert found["checkpoint_readable"]["status"] == "warning"
    assert "the saved positions of 20" in found["checkpoint_readable"]["value"]
    assert found["translation"]["status"] == "ok"
    disaster.give(saved_positions=str(tmp_path / "elsewhere"))
    with pytest.raises(NotReadyError, match="there are no saved positions of the checkpoint"):
        disaster.run("check")


def test_positions_of_another_query_are_found_before_the_stop(disaster: Disaster) -> None:
    """The job has had another checkpoint since they were saved."""
    shutil.rmtree(disaster.source.checkpoint)
    disaster.source.beat(2, query_id="another")
    with pytest.raises(NotReadyError, match="are of the query"):
        disaster.run("check")


def test_a_damaged_checkpoint_is_found_before_the_stop(disaster: Disaster) -> None:
    """It is there, so nothing stands in for it."""
    disaster.source.checkpoint.joinpath("metadata").write_text("{")
    with pytest.raises(NotReadyError, match="nothing stands in for it"):
        disaster.run("check")
