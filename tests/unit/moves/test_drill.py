"""Where a drill may not run, and the fences of its home."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from airflow_mm2_offsets.core.policy import DRILL
from airflow_mm2_offsets.errors import ConfigurationError, DrillError
from airflow_mm2_offsets.locations import is_within, overlap
from airflow_mm2_offsets.moves.drill import (
    close_drill,
    drill_home,
    find_drill_problems,
    open_drill,
)
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.journal import FenceState
from airflow_mm2_offsets.spark.drill import DrillMark, mark_drill
from tests.unit.moves.stage import OFFSETS, ONE, TWO, Stage
from tests.unit.operators.spark_job import Job


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A job that has run at its first home under StopControl, with an archive."""
    Job(Path(stage.job.homes[0].folder), 4)
    stage.job = replace(stage.job, archive=str(stage.folder / "syncs"))
    return stage


def _problems(stage: Stage, drill: Path | str) -> list[str]:
    return find_drill_problems(stage.mover(policy=DRILL).find(), str(drill), UPath)


def test_a_folder_apart_is_taken(stage: Stage) -> None:
    """A new one, an empty one, and one that its own earlier try has marked."""
    drill = stage.folder / "west" / "orders-drill"
    assert _problems(stage, drill) == []
    drill.mkdir(parents=True)
    assert _problems(stage, drill) == []
    mark_drill(UPath(drill), ONE)
    assert _problems(stage, drill) == []


@pytest.mark.parametrize(
    ("drill", "name"),
    [
        ("east/orders", "job's folder at east"),
        ("east/orders/", "job's folder at east"),
        ("east//orders/checkpoint", "job's folder at east"),
        ("west/orders/drill", "job's folder at west"),
        ("west", "job's folder at west"),
        ("", "archive"),
        ("syncs/mm2_default", "archive"),
        ("records/orders", "folder of journals"),
    ],
)
def test_nothing_of_the_job_is_in_reach_of_the_removal(stage: Stage, drill: str, name: str) -> None:
    """The drill's folder is none of the others, lies in none, and holds none."""
    problems = _problems(stage, f"{stage.folder}/{drill}")
    assert any(f"is, lies in, or holds the {name} {stage.folder}" in each for each in problems)


def test_an_output_is_never_in_reach_of_the_removal(stage: Stage) -> None:
    """Also of a job whose DAG honours a drill."""
    east, west = stage.job.homes
    lake = stage.folder / "lake"
    west = replace(west, output=str(lake / "orders"))
    stage.job = replace(stage.job, homes=(east, west), honours_drill=True)
    (problem,) = _problems(stage, lake)
    assert f"holds the job's output at west {lake}/orders" in problem


def test_links_and_dots_lead_nowhere_else(stage: Stage) -> None:
    """A link to the job's folder, a link that it is reached by, and ``..`` are seen through."""
    east, west = stage.job.homes
    (stage.folder / "link").symlink_to(east.folder)
    (stage.folder / "up").symlink_to(stage.folder / "east")
    for drill in ("link", "link/drill", "up/orders", "up"):
        assert _problems(stage, stage.folder / drill), drill
    dots = _problems(stage, f"{stage.folder}/x/../east/orders")
    assert 'has ".." in it' in dots[0]
    assert len(dots) > 1
    (problem,) = _problems(stage, f"{stage.folder}/x/../drill")
    assert problem == dots[0].replace("east/orders", "drill")

    linked = replace(east, folder=str(stage.folder / "link"))
    stage.job = replace(stage.job, homes=(linked, west))
    assert any("job's folder at east" in each for each in _problems(stage, f"{east.folder}/drill"))


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ("s3a://lake/orders/drill", "s3://lake/orders/", True),
        ("s3://lake/orders-drill", "s3://lake/orders", False),
        ("s3://lake/x/../orders/drill", "s3://lake/orders", True),
        ("s3://lake/a//b", "s3://lake/a/b", True),
        ("s3://lake/orders", "s3://other/orders", False),
        ("s3://lake/orders", "s3://lake", True),
        ("s3://lake/orders", "memory://lake/orders", False),
        ("memory://lake/a", "memory://lake/a/b", False),
    ],
)
def test_spellings_of_one_storage(inner: str, outer: str, *, expected: bool) -> None:
    """Spark's names and fsspec's, slashes at the end, and ``..`` as Hadoop reads it."""
    assert is_within(UPath(inner, anon=True), UPath(outer, anon=True)) is expected


PATHS = st.lists(st.sampled_from(["a", "b", "ab", "..", "."]), max_size=5).map("/".join)


@given(one=PATHS, other=PATHS)
def test_overlap_is_of_paths(one: str, other: str) -> None:
    """Two folders overlap exactly if the shorter one's names begin the longer one's."""
    parts = [os.path.normpath(f"/r/r/r/r/r/r/{each}").split("/") for each in (one, other)]
    shorter = min(map(len, parts))
    expected = parts[0][:shorter] == parts[1][:shorter]
    for root in ("/r/r/r/r/r/r", "memory://r/r/r/r/r/r"):
        assert overlap(UPath(f"{root}/{one}"), UPath(f"{root}/{other}")) is expected


def test_a_folder_of_others_is_not_taken(stage: Stage) -> None:
    """What no drill has marked is somebody's; so is a copy of a drill's folder."""
    drill = stage.folder / "drill"
    drill.mkdir()
    (drill / "letters").touch()
    (problem,) = _problems(stage, drill)
    assert "holds letters and no drill.json" in problem

    mark_drill(UPath(stage.folder / "first"), ONE)
    (stage.folder / "first").rename(stage.folder / "second")
    (problem,) = _problems(stage, stage.folder / "second")
    assert "second is a copy" in problem


@pytest.mark.parametrize("lives", [True, False])
def test_an_earlier_drill_must_have_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, lives: bool
) -> None:
    """A heartbeat that moves is of a job that still writes there; what a dead one left is taken."""
    drill = stage.folder / "drill"
    mark_drill(UPath(drill), TWO)
    job = Job(drill, 4)
    job.beat(7, interval=0.1)

    def sleep(_seconds: float) -> None:
        job.beat(8 if lives else 7, interval=0.1)

    monkeypatch.setattr("airflow_mm2_offsets.job.liveness.time.sleep", sleep)
    problems = _problems(stage, drill)
    assert [f"earlier drill '{TWO}' still runs" in each for each in problems] == [True] * lives


def test_a_job_with_one_home_goes_nowhere(stage: Stage) -> None:
    """There is no move to rehearse."""
    stage.job = replace(stage.job, homes=stage.job.homes[:1])
    (problem,) = _problems(stage, stage.folder / "drill")
    assert problem == "job orders has one home, and goes nowhere"


def test_a_home_that_spark_names_otherwise() -> None:
    """The drill's folder lies beside it, so its name in Spark is known; elsewhere it is not."""
    home = Home(
        cluster="west",
        folder="/mnt/lake/orders",
        output="/mnt/out",
        spark_folder="hdfs:///lake/orders",
    )
    drill = drill_home(home, "/mnt/lake/drills/orders")
    assert drill.spark_sink == "hdfs:///lake/drills/orders/output"
    assert (drill.sink, drill.cluster) == ("/mnt/lake/drills/orders/output", "west")
    with pytest.raises(ConfigurationError, match="give a folder in /mnt/lake"):
        drill_home(home, "/tmp/orders-drill")  # noqa: S108 - nothing is written


def test_a_folder_that_was_closed_opens_no_more(tmp_path: Path) -> None:
    """A start that was paused goes on after the tear-down: the job finds the fence that stops."""
    home = Home(cluster="west", folder=str(tmp_path / "drill"))
    control = UPath(home.control)
    now = datetime.now(UTC)
    mark = DrillMark(request_id=ONE, at=now, folder=home.folder, created_folders=0)
    open_drill(home, control, mark, starting_offsets=OFFSETS, topics="orders")
    fence = read_fence(control)
    assert fence is not None
    assert (fence.state, fence.starting_offsets) == (FenceState.OPEN, OFFSETS)
    for _ in range(2):
        close_drill(home, control, mark)
    with pytest.raises(DrillError, match="is being torn down"):
        open_drill(home, control, mark, starting_offsets=OFFSETS, topics="orders")
    fence = read_fence(control)
    assert fence is not None
    assert (fence.number, fence.state, fence.request_id) == (2, FenceState.STOPPING, ONE)
