"""The way home, task by task: the job was moved by a first run, and runs on the target."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError, NotReadyError
from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import MOVING, Failover, tells_of_dags
from tests.unit.dags.ways_home import way_home
from tests.unit.operators.clusters import RECORDS, Clusters
from tests.unit.operators.worker import Worker

UNTIL_STARTED = STEPS[: STEPS.index("wait_started")]
HOME = '{"orders":{"0":10,"1":10,"2":10,"3":10}}'


@pytest.fixture
def away(run: Failover, clusters: Clusters) -> Failover:
    """The run that has moved the job away; the source has all that was copied."""
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for each in MOVING:
        run.run(each)
    run.worker.triggered.clear()
    return run


def _home_plan_starts(worker: Worker) -> list[str]:
    return [conf["starting_offsets"] for conf in worker.triggered.values()]


def test_a_job_comes_home_by_the_plan_that_the_fence_names(away: Failover) -> None:
    """With the sides exchanged, into the folder that it was moved away from."""
    back = way_home(away.worker, away, "manual__2")
    for each in UNTIL_STARTED:
        back.run(each)
    assert _home_plan_starts(back.worker) == [HOME]
    assert read_fence(str(away.source.control)) is None
    assert back.fence_state() is FenceState.MOVED
    start = away.source.checkpoint / "sources" / "0" / "0"
    assert start.read_text().endswith(HOME)


def test_the_output_of_the_first_life_is_not_overwritten(away: Failover) -> None:
    """The check refuses the old folder, unless the job is said to write elsewhere."""
    (away.source.folder / "output" / "batch_id=0").mkdir(parents=True)
    back = way_home(away.worker, away, "manual__2")
    with pytest.raises(NotReadyError, match=r"batch_id=0.*it would overwrite them one by one"):
        back.run("check")
    back.worker.conf = {**back.worker.conf, "sink": str(away.source.folder / "later")}
    back.run("check")


@tells_of_dags
def test_a_restart_of_a_way_home_has_its_long_offsets_where_the_job_runs(
    away: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the sides exchanged, the restart writes no offsets into the folder to come home to."""
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES", "10")
    back = way_home(away.worker, away, "manual__2", on_failure="restart")
    for each in UNTIL_STARTED[:-1]:
        back.run(each)
    before = {*back.target.rglob("*.offsets-*")}
    back.run("roll_back")
    (offsets,) = _home_plan_starts(back.worker)
    assert Path(offsets[1:]).parent == back.source.folder
    assert {*back.target.rglob("*.offsets-*")} == before


@tells_of_dags
def test_after_a_way_home_that_was_rolled_back_the_next_one_arrives(away: Failover) -> None:
    """The first one had set the old checkpoint aside; the second one needs it."""
    worker = away.worker
    back = way_home(worker, away, "manual__2")
    for each in UNTIL_STARTED[:-1]:
        back.run(each)
    worker.paused["orders_stream"] = True
    with pytest.raises(NotReadyError, match="is paused"):
        back.run("submit_target")
    back.run("roll_back")
    assert back.fence_state() is None
    worker.paused["orders_stream"] = False
    again = way_home(worker, away, "manual__3")
    for each in UNTIL_STARTED:
        again.run(each)
    assert _home_plan_starts(worker) == [HOME]
    assert read_fence(str(away.source.control)) is None


def test_a_first_plan_that_is_not_there_is_named(away: Failover) -> None:
    """Before the stop: a misspelt name would otherwise mean that there is none."""
    back = way_home(away.worker, away, "manual__2", first_plan="/nowhere/plan.json")
    with pytest.raises(ConfigurationError, match=r"/nowhere/plan.json.*first_plan names it"):
        back.run("check")
