"""Where a drill does not begin, and what a cleared or lost start does."""

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from upath import UPath

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    DrillError,
    HandoverError,
    NotReadyError,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.drill import open_drill
from airflow_mm2_offsets.moves.journal import FenceState
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators import drill as drill_module
from airflow_mm2_offsets.spark.drill import mark_drill, read_mark, remove_drill
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.drills import RUN, Drill
from tests.unit.operators.worker import Worker


@pytest.fixture
def drill(worker: Worker, clusters: Clusters, tmp_path: Path) -> Drill:
    """A drill whose positions are translated."""
    drill = Drill.beside(worker, clusters, tmp_path)
    drill.run("translate")
    return drill


def _mark(drill: Drill) -> str | None:
    mark = read_mark(UPath(drill.folder))
    return mark.request_id if mark else None


def test_a_retry_starts_no_second_copy(drill: Drill) -> None:
    """It finds the mark, the fence and the DAG run of an earlier try."""
    started = drill.run("start_drill")
    drill.begin()
    files = {path: path.read_bytes() for path in drill.folder.rglob("*") if path.is_file()}
    assert drill.run("start_drill") == started
    assert list(drill.worker.triggered) == [RUN]
    assert {path: path.read_bytes() for path in drill.folder.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("followed", [True, False])
def test_a_drill_that_is_over_does_not_start_again(drill: Drill, *, followed: bool) -> None:
    """Its DAG run exists, so none would be triggered, and the next task would wait in vain.

    The folder may be the next drill's by now.
    """
    drill.run("start_drill")
    folder = storage_path(str(drill.folder))
    remove_drill(folder, "mm2_drill:manual__1")
    if followed:
        mark_drill(folder, "the next drill")
    with pytest.raises(HandoverError, match=r"has the run .* was torn down.* a new run") as caught:
        drill.run("start_drill")
    assert isinstance(caught.value, AirflowFailException)
    assert _mark(drill) == ("the next drill" if followed else None)


def test_a_second_drill_at_the_same_time_is_refused(drill: Drill) -> None:
    """It names the first one, and changes nothing of it."""
    drill.run("start_drill")
    drill.worker.run_id = "manual__2"
    before = drill.copy.fence()
    with pytest.raises(NotReadyError, match=r"earlier drill 'mm2_drill:manual__1', is running"):
        drill.run("start_drill")
    with pytest.raises(NotReadyError):
        drill.run("start_drill")
    assert (list(drill.worker.triggered), drill.copy.fence()) == ([RUN], before)
    drill.run("tear_down")
    assert _mark(drill) == "mm2_drill:manual__1"


@pytest.mark.parametrize("state", ["queued", "running", "success", "failed"])
def test_the_run_of_an_earlier_drill_must_have_ended(drill: Drill, state: str) -> None:
    """A queued one would start its job in this drill's folder, whenever it can."""
    mark_drill(UPath(drill.folder), "earlier", dag_id="orders_stream", run_id="old")
    drill.worker.triggered["orders_stream", "old"] = {}
    drill.worker.run_states["orders_stream", "old"] = state
    if state in {"queued", "running"}:
        with pytest.raises(NotReadyError, match=f"run 'old' of DAG orders_stream.* is {state}"):
            drill.run("start_drill")
        return
    drill.run("start_drill")
    assert _mark(drill) == "mm2_drill:manual__1"


def test_of_two_drills_at_the_same_moment_one_starts(
    drill: Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one marks the folder after this one has looked."""

    def second(folder: UPath, request_id: str, **facts: Any) -> object:
        mark_drill(folder, "mm2_drill:manual__2", **facts)
        return mark_drill(folder, request_id, **facts)

    def keep(folder: UPath, request_id: str) -> int:
        raise DrillError(f"{folder} is of {request_id}")

    monkeypatch.setattr(drill_module, "mark_drill", second)
    monkeypatch.setattr("airflow_mm2_offsets.spark.drill.remove_drill", keep)
    with pytest.raises(DrillError, match="is of mm2_drill:manual__2"):
        drill.run("start_drill")
    assert drill.worker.triggered == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dag": None}, "names no DAG"),
        ({"dag": "another"}, "has no DAG another"),
        ({"is_controlled": False}, "runs without StopControl"),
        ({"writes": ("orders_out",)}, "writes to orders_out.* by the job's honours_drill"),
        ({"archive": "{root}/drills"}, "or holds the archive"),
        ({"saved_positions": "{root}/drills/orders/p"}, "holds the folder of saved positions"),
        ({"records": "{root}/drills/orders"}, "or holds the folder of journals"),
    ],
)
def test_a_job_that_can_not_be_drilled(drill: Drill, change: dict[str, Any], message: str) -> None:
    """It fails at once, names the problem, and marks and triggers nothing."""
    drill.more = {
        name: value.format(root=drill.root) if isinstance(value, str) else value
        for name, value in change.items()
    }
    before = drill.files()
    with pytest.raises(NotReadyError, match=message) as caught:
        drill.run("start_drill")
    assert isinstance(caught.value, AirflowFailException)
    assert drill.worker.triggered == {}
    assert drill.files() == before
    assert not drill.folder.exists()


def test_a_job_that_honours_a_drill(drill: Drill) -> None:
    """Its DAG writes to no topic in a drill."""
    drill.more = {"writes": ("orders_out",), "honours_drill": True}
    drill.run("start_drill")
    assert drill.worker.triggered[RUN]["drill"] is True


def test_no_drill_begins_beside_a_move(drill: Drill) -> None:
    """The move's run is named."""
    drill.move()
    for name in ("check", "start_drill"):
        with pytest.raises(NotReadyError, match=r"'mm2_failover:manual__7' stops the job"):
            drill.run(name)
    assert not drill.folder.exists()


def test_a_job_that_never_ran_under_stop_control(drill: Drill) -> None:
    """The copy could not be ended."""
    drill.source.control.joinpath("driver.json").unlink()
    with pytest.raises(NotReadyError, match="no job has run at source"):
        drill.run("start_drill")


def test_what_the_driver_wrote_down_counts(drill: Drill) -> None:
    """A job whose checkpoint lies elsewhere is protected, whatever its homes say."""
    queries = [{"query_id": "q", "run_id": "r", "checkpoint": f"file:{drill.folder}/checkpoint"}]
    drill.source.beat(2, queries=queries)
    with pytest.raises(NotReadyError, match=f"job's own location file:{drill.folder}/checkpoint"):
        drill.run("start_drill")


@pytest.mark.parametrize("plan", ["null", "{", "{}", '{"partitions": 1}', "[]"])
def test_without_a_plan_nothing_starts(drill: Drill, plan: str) -> None:
    """The copy would read its whole topic."""
    drill.arguments = {"start_drill": {"plan": plan}}
    with pytest.raises(ConfigurationError, match="can't read plan"):
        drill.run("start_drill")
    assert not drill.folder.exists()


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("start_drill", {"folder": "None"}, "give the drill's folder"),
        ("tear_down", {"folder": ""}, "give the drill's folder"),
        ("start_drill", {"policy": "planned"}, "the policy is planned; give drill"),
        ("tear_down", {"policy": "disaster"}, "the policy is disaster; give drill"),
    ],
)
def test_a_wrong_argument(drill: Drill, task: str, change: dict[str, str], message: str) -> None:
    """A move that is none of a drill could stop the job, or remove its folder."""
    if policy := change.pop("policy", None):
        change = {"move": MoveRequest(job=drill.job, policy=policy)}  # type: ignore[dict-item]
    drill.arguments = {task: change}
    with pytest.raises(ConfigurationError, match=message):
        drill.run(task)


def test_a_start_that_was_paused_while_its_drill_was_torn_down(
    drill: Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on after the removal: the fence that it leaves lets no copy begin."""

    def pause(*arguments: Any, **named: Any) -> None:
        drill.run("tear_down")
        assert not drill.folder.exists()
        open_drill(*arguments, **named)

    monkeypatch.setattr(drill_module, "open_drill", pause)
    with pytest.raises(DrillError, match=r"was torn down while this task ran.* delete it"):
        drill.run("start_drill")
    fence = drill.copy.fence()
    assert fence is not None
    assert (fence.number, fence.state) == (2, FenceState.STOPPING)


@pytest.mark.parametrize("at", ["mark_drill", "open_drill", "start_job", "_close_if_torn_down"])
def test_a_try_that_was_killed_is_repeated(
    drill: Drill, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Before each access: the retry does what is left, and starts one copy."""
    with monkeypatch.context() as patch:
        holder = drill_module.StartDrillOperator if at.startswith("_") else drill_module
        patch.setattr(holder, at, _die)
        with pytest.raises(MemoryError):
            drill.run("start_drill")
    drill.run("start_drill")
    assert list(drill.worker.triggered) == [RUN]
    drill.begin()
    assert drill.run("tear_down")["stopped"] == "acknowledged"
    assert not drill.folder.exists()


@pytest.mark.parametrize("at", ["mark_drill", "open_drill", "start_job", "_close_if_torn_down"])
def test_a_try_that_was_killed_is_torn_down(
    drill: Drill, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Without a retry: nothing is left of it."""
    before = drill.files()
    with monkeypatch.context() as patch:
        holder = drill_module.StartDrillOperator if at.startswith("_") else drill_module
        patch.setattr(holder, at, _die)
        with pytest.raises(MemoryError):
            drill.run("start_drill")
    drill.run("tear_down")
    assert not drill.folder.exists()
    assert drill.files() == before


def _die(*_: object, **__: object) -> None:
    raise MemoryError
