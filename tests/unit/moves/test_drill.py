"""Where a drill may not run."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from airflow_mm2_offsets.locations import is_within, overlap
from airflow_mm2_offsets.spark.drill import mark_drill
from airflow_mm2_offsets.spark.drill_checks import DrillFolders, find_drill_problems
from tests.unit.operators.spark_job import Job

OWN, OTHER = "mm2_failover:drill__1", "mm2_failover:drill__2"


def _folders(tmp_path: Path, drill: UPath | Path | str, **changes: Any) -> DrillFolders:
    source = UPath(tmp_path / "orders" / "source")
    fields: dict[str, Any] = {
        "drill": UPath(drill),
        "job": {"source folder": source, "target folder": UPath(tmp_path / "orders" / "target")},
        "others": {"archive": UPath(tmp_path / "syncs")},
        "sinks": [source / "output"],
    }
    return DrillFolders(**{**fields, **changes})


def _problems(tmp_path: Path, drill: UPath | Path | str, **changes: Any) -> list[str]:
    return find_drill_problems(_folders(tmp_path, drill, **changes), OWN)


def test_a_folder_apart_is_taken(tmp_path: Path) -> None:
    """A new one, an empty one, and one that its own earlier try has marked."""
    drill = tmp_path / "orders" / "source-drill"
    assert _problems(tmp_path, drill) == []
    drill.mkdir(parents=True)
    assert _problems(tmp_path, drill) == []
    mark_drill(UPath(drill), OWN)
    assert _problems(tmp_path, drill) == []


@pytest.mark.parametrize(
    ("drill", "name"),
    [
        ("orders/source", "source folder"),
        ("orders/source/", "source folder"),
        ("orders//source/checkpoint", "source folder"),
        ("orders/source/output/drill", "source folder"),
        ("orders/target/drill", "target folder"),
        ("orders", "target folder"),
        ("", "archive"),
        ("syncs/pair=1", "archive"),
    ],
)
def test_nothing_of_the_job_is_in_reach_of_the_removal(
    tmp_path: Path, drill: str, name: str
) -> None:
    """The drill's folder is none of the others, lies in none, and holds none."""
    problems = _problems(tmp_path, f"{tmp_path}/{drill}")
    assert any(f"is, lies in, or holds the {name} {tmp_path}" in each for each in problems)


def test_links_and_dots_lead_nowhere_else(tmp_path: Path) -> None:
    """A link to the job's folder, a link that it is reached by, and ``..`` are seen through."""
    source = tmp_path / "orders" / "source"
    source.mkdir(parents=True)
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "up").symlink_to(tmp_path / "orders")
    for drill in ("link", "link/drill", "up/source", "up"):
        assert _problems(tmp_path, tmp_path / drill), drill
    job = {"source folder": UPath(tmp_path / "link")}
    assert len(_problems(tmp_path, source / "drill", job=job, others={})) == 1

    dots = _problems(tmp_path, f"{tmp_path}/x/../orders/source")
    assert len(dots) == 2
    assert 'has ".." in it' in dots[0]
    assert _problems(tmp_path, f"{tmp_path}/x/../drill") == [
        dots[0].replace("orders/source", "drill")
    ]


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


@pytest.mark.parametrize("sink", ["orders_out", "kafka://target/orders_out", UPath("/lake/orders")])
def test_a_sink_elsewhere_needs_the_users_word(tmp_path: Path, sink: UPath | str) -> None:
    """A topic, a table or a folder that does not move with the job's folder would be written to."""
    drill = tmp_path / "drill"
    sinks = [UPath(tmp_path / "orders" / "source" / "output"), sink]
    (problem,) = _problems(tmp_path, drill, sinks=sinks)
    assert f"the job writes to {sink}, outside its folder" in problem
    assert "if the job's DAG honours conf['drill']" in problem
    assert _problems(tmp_path, drill, sinks=sinks, honours_drill=True) == []


def test_sinks_that_are_not_named_are_not_guessed(tmp_path: Path) -> None:
    """Without a word about where the job writes, no drill begins."""
    (problem,) = _problems(tmp_path, tmp_path / "drill", sinks=[])
    assert problem.startswith("it is not known where the job writes")
    assert _problems(tmp_path, tmp_path / "drill", sinks=[], honours_drill=True) == []


def test_a_sink_is_never_in_reach_of_the_removal(tmp_path: Path) -> None:
    """The user's word about ``conf["drill"]`` does not make it the drill's."""
    sinks = [UPath(tmp_path / "lake" / "orders")]
    problems = _problems(tmp_path, tmp_path / "lake", sinks=sinks, honours_drill=True)
    assert problems == [f"the drill folder {tmp_path}/lake overlaps the sink {sinks[0]}"]


def test_a_folder_of_others_is_not_taken(tmp_path: Path) -> None:
    """What no drill has marked is somebody's; so is a copy of a drill's folder."""
    drill = tmp_path / "drill"
    drill.mkdir()
    (drill / "letters").touch()
    (problem,) = _problems(tmp_path, drill)
    assert "holds letters and no drill.json" in problem

    mark_drill(UPath(tmp_path / "first"), OWN)
    (tmp_path / "first").rename(tmp_path / "second")
    (problem,) = _problems(tmp_path, tmp_path / "second")
    assert "so" in problem
    assert "second is a copy" in problem


@pytest.mark.parametrize("lives", [True, False])
def test_an_earlier_drill_must_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lives: bool
) -> None:
    """A heartbeat that moves is of a job that still writes there; what a dead one left is taken."""
    mark_drill(UPath(tmp_path / "drill"), OTHER)
    job = Job(tmp_path / "drill", 4)
    job.beat(7, interval=0.1)

    def sleep(_seconds: float) -> None:
        job.beat(8 if lives else 7, interval=0.1)

    monkeypatch.setattr("airflow_mm2_offsets.job.liveness.time.sleep", sleep)
    problems = _problems(tmp_path, tmp_path / "drill")
    assert [f"earlier drill '{OTHER}' still runs" in each for each in problems] == [True] * lives
