"""The start of a drill's job beside the running one."""

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    DrillError,
    HandoverError,
    NotReadyError,
    PlanError,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.job.offsets_file import offsets_file_name
from airflow_mm2_offsets.operators import drill as drill_module
from airflow_mm2_offsets.spark.drill import mark_drill, read_mark, remove_drill
from tests.unit.dags.failovers import tells_of_dags
from tests.unit.operators.drills import CONF, DRILL, RUN, Drill
from tests.unit.operators.worker import Worker

TEXT = str(CONF["starting_offsets"])


@pytest.fixture
def drill(worker: Worker, tmp_path: Path) -> Drill:
    return Drill(worker, tmp_path)


def _tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_dag_is_triggered_with_the_drills_folder(drill: Drill) -> None:
    """Under an id that derives from this run's; the folder is marked before."""
    drill.start()
    conf = {**CONF, "folder": str(drill.folder), "drill": True}
    assert drill.worker.triggered == {RUN: conf}
    mark = read_mark(storage_path(str(drill.folder)))
    assert mark is not None
    assert (mark.request_id, mark.dag_id, mark.run_id) == (DRILL, *RUN)


def test_the_running_job_is_left_alone(drill: Drill) -> None:
    """No file of it, of its control location or beside them is written."""
    before = _tree(drill.source.folder)
    drill.start()
    assert _tree(drill.source.folder) == before
    assert not drill.target.exists()
    assert {path.name for path in drill.source.folder.parent.iterdir()} == {"source", "drills"}


def test_a_retry_starts_no_second_job(drill: Drill) -> None:
    """It finds the run, and is skipped, so that the next task goes on."""
    drill.start()
    drill.run_job()
    assert drill.start().state == "skipped"
    assert len(drill.worker.triggered) == 1
    assert (drill.folder / "output").exists()


def test_a_try_that_was_lost_before_the_trigger_is_repeated(
    drill: Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is there, and the run is not: the retry triggers it."""
    with monkeypatch.context() as patch:
        patch.setattr(TriggerDagRunOperator, "execute", _lose)
        with pytest.raises(MemoryError):
            drill.start()
    assert read_mark(storage_path(str(drill.folder))) is not None
    drill.start()
    assert set(drill.worker.triggered) == {RUN}


def _lose(*_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("followed", [True, False])
def test_a_drill_that_is_over_does_not_start_again(drill: Drill, *, followed: bool) -> None:
    """Its DAG run exists, so none would be triggered, and the next task would wait in vain.

    The folder may be the next drill's by now.
    """
    drill.start()
    folder = storage_path(str(drill.folder))
    remove_drill(folder, DRILL)
    if followed:
        mark_drill(folder, "the next drill")
    with pytest.raises(HandoverError, match=r"has the run .* was torn down.* a new run") as caught:
        drill.start()
    assert isinstance(caught.value, AirflowFailException)
    mark = read_mark(folder)
    assert (mark and mark.request_id) == ("the next drill" if followed else None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"folder": "{{ dag_run.conf.folder }}/source/drill"}, "holds the source folder"),
        ({"folder": "{{ dag_run.conf.folder }}/target"}, "holds the target folder"),
        (
            {"other_folders": {"archive": "{{ dag_run.conf.folder }}/drills"}},
            "or holds the archive",
        ),
        ({"sinks": "orders_out"}, "the job writes to orders_out, outside its folder"),
        ({"sinks": "None"}, "it is not known where the job writes"),
        (
            {
                "control": "{{ dag_run.conf.folder }}/none",
                "folder": "{{ dag_run.conf.folder }}/d",
            },
            "no job has run with the control",
        ),
    ],
)
def test_a_drill_in_the_wrong_place_does_not_start(
    drill: Drill, settings: dict[str, Any], message: str
) -> None:
    """It fails at once, names the problem, and marks and triggers nothing."""
    before = _tree(drill.source.folder.parent)
    with pytest.raises(NotReadyError, match=message) as caught:
        drill.start(**settings)
    assert isinstance(caught.value, AirflowFailException)
    assert drill.worker.triggered == {}
    assert _tree(drill.source.folder.parent) == before


def test_what_the_driver_wrote_down_counts(drill: Drill) -> None:
    """A job whose checkpoint lies elsewhere is protected, whatever folders the user names."""
    queries = [{"query_id": "q", "run_id": "r", "checkpoint": f"file:{drill.folder}/checkpoint"}]
    drill.source.beat(2, queries=queries)
    with pytest.raises(NotReadyError, match=f"job's own location file:{drill.folder}/checkpoint"):
        drill.start()


def test_absent_folders_are_no_folders(drill: Drill) -> None:
    """A param that is null reaches the operator as the text None."""
    drill.start(
        other_folders={"archive": "None", "reports": "", "plans": None},
        sinks=" a , b/c ",
        honours_drill="True",
    )
    assert set(drill.worker.triggered) == {RUN}


@tells_of_dags
def test_a_paused_dag_is_named(drill: Drill) -> None:
    """Its run would start a drill's job some day."""
    drill.worker.paused["orders_stream"] = True
    with pytest.raises(NotReadyError, match="DAG orders_stream is paused"):
        drill.start()


@pytest.mark.parametrize("text", [None, "None", "", "{}x", '{"orders":{"0":-5}}'])
def test_without_translated_offsets_nothing_starts(drill: Drill, text: str | None) -> None:
    """The job would read its whole topic."""
    with pytest.raises(ConfigurationError, match="conf says starting_offsets"):
        drill.start(conf={**CONF, "starting_offsets": text})
    assert not drill.folder.exists()


def test_a_storage_that_refuses_the_offsets_is_tried_again(drill: Drill, tmp_path: Path) -> None:
    """The error of a file that is out of reach stays retryable; one that is gone is final."""
    file = tmp_path / offsets_file_name("run", TEXT)
    file.mkdir()  # stands for a storage that refuses
    conf = {**CONF, "starting_offsets": f"@{file}"}
    with pytest.raises(PlanError, match="is out of reach") as caught:
        drill.start(conf=conf)
    assert caught.value.retryable
    assert not isinstance(caught.value, AirflowFailException)
    file.rmdir()
    with pytest.raises(AirflowFailException, match="starting offsets is gone"):
        drill.start(conf=conf)
    file.write_text(TEXT)
    drill.start(conf=conf)
    assert set(drill.worker.triggered) == {RUN}


def test_an_error_shows_the_beginning_of_long_offsets(drill: Drill) -> None:
    """An argument may have 100,000 bytes."""
    with pytest.raises(ConfigurationError, match=r"\(100000 characters\)'; give") as caught:
        drill.start(conf={**CONF, "starting_offsets": "7" * 100_000})
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("state", ["queued", "running", "success", "failed"])
def test_the_run_of_an_earlier_drill_must_have_ended(drill: Drill, state: str) -> None:
    """A queued one would start its job in this drill's folder, whenever it can."""
    mark_drill(storage_path(str(drill.folder)), "earlier", dag_id="orders_stream", run_id="old")
    drill.worker.triggered["orders_stream", "old"] = {}
    drill.worker.run_states["orders_stream", "old"] = state
    if state in {"queued", "running"}:
        with pytest.raises(NotReadyError, match=f"run 'old' of DAG orders_stream.* is {state}"):
            drill.start()
        return
    drill.start()
    mark = read_mark(storage_path(str(drill.folder)))
    assert mark is not None
    assert mark.request_id == DRILL


def test_a_folder_that_can_not_be_marked_is_tried_again(
    drill: Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage that is out of reach for a moment is no reason to end the drill."""

    def refuse(*_: object, **__: object) -> None:
        raise DrillError("the storage is gone")

    monkeypatch.setattr(drill_module, "mark_drill", refuse)
    with pytest.raises(DrillError) as caught:
        drill.start()
    assert not isinstance(caught.value, AirflowFailException)
    assert drill.worker.triggered == {}
