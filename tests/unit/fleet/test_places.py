"""Whether jobs have folders of their own."""

from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.fleet.places import check_places
from airflow_mm2_offsets.locations import spark_location
from tests.unit.fleet.manifests import job


def _check(*places: dict[str, object]) -> None:
    names = ("a", "b")
    jobs = [
        job(name, line=number, **fields)
        for number, (name, fields) in enumerate(zip(names, places, strict=False))
    ]
    check_places(jobs, "fleet.yaml", UPath)


def test_jobs_of_their_own_folders_pass() -> None:
    """A job's output lies in its folder; a name that begins like another's is another folder."""
    _check({"source_folder": "/eu/orders"}, {"source_folder": "/eu/orders-2"})


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"source_folder": "/source/a"}, r"is also source_folder of job a.*checkpoint and control"),
        ({"source_folder": "/source/x/../a"}, "is also source_folder of job a"),
        ({"source_folder": "file:///source/a/"}, "is also source_folder of job a"),
        ({"target_folder": "/target/a"}, "is also target_folder of job a"),
        (
            {"target_folder": "/source/a"},
            r"target_folder of job b .* is also source_folder of job a",
        ),
        ({"target_output": "/target/a/output"}, "lies in target_folder of job a"),
        ({"source_output": "/target/a/output"}, "source_output of job b .*its own output"),
        ({"target_output": "/source/a/checkpoint"}, "lies in source_folder of job a"),
        ({"target_folder": "/target"}, "target_folder of job a .* lies in target_folder of job b"),
    ],
)
def test_two_jobs_that_share_a_folder_are_refused(other: dict[str, object], problem: str) -> None:
    """By whatever spelling; one folder may not lie in the other's, either."""
    with pytest.raises(ConfigurationError, match=problem) as caught:
        _check({}, other)
    assert "fleet.yaml" in str(caught.value)


def test_a_job_that_moves_to_where_it_is_is_refused() -> None:
    """Its own fence would end it."""
    with pytest.raises(
        ConfigurationError, match=r"target_folder of job a .* source_folder of job a"
    ):
        _check({"target_folder": "/source/a"})


def test_links_to_one_folder_are_one_folder(tmp_path: Path) -> None:
    """Two names of a control location would be two fences for one job."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigurationError, match="is also source_folder"):
        _check({"source_folder": f"{tmp_path}/real"}, {"source_folder": f"{tmp_path}/link"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hdfs://nn1:8020/jobs/orders", "hdfs://nameservice1/jobs/orders"),
        ("hdfs://ns/jobs/orders", "hdfs://ns/jobs/x/../orders"),
        ("memory:///jobs/orders", "memory:///jobs/x/../orders"),
        ("s3://bucket/jobs/orders", "s3a://bucket/jobs//orders"),
    ],
)
def test_one_folder_by_two_spellings_is_refused(one: str, other: str) -> None:
    """Two control locations that are one would stop each other's jobs."""
    with pytest.raises(ConfigurationError, match=r"source_folder of job b .* job a|of job a .* b"):
        _check({"source_folder": one}, {"source_folder": other})


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("hdfs://eu/jobs/a", "hdfs://us/jobs/a"),
        (
            "abfss://c@eu.dfs.core.windows.net/jobs/a",
            "abfss://c@us.dfs.core.windows.net/jobs/a",
        ),
    ],
)
def test_one_path_on_two_storages_is_two_folders(source: str, target: str) -> None:
    """A job keeps its path when it moves to another cluster's storage."""
    outputs = {f"{side}_output": f"/out/{side}" for side in ("source", "target")}
    moved = job("a", source_folder=source, target_folder=target, **outputs)
    check_places([moved], "fleet.yaml", lambda text: spark_location(text) or UPath(text))


def test_a_login_in_a_location_is_not_shown() -> None:
    """Messages reach logs."""
    with pytest.raises(ConfigurationError) as caught:
        _check({"source_folder": "http://u:secret@h/x"}, {"source_folder": "http://u:secret@h/x"})
    assert "secret" not in str(caught.value)
