"""Starting offsets in a file, from both sides: the failover's and the job's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from upath import UPath

from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.job import starting_offsets
from airflow_mm2_offsets.job.offsets_file import check_offsets_file, offsets_file_name
from airflow_mm2_offsets.spark.offsets_file import read_offsets, write_offsets

TEXT = '{"orders":{"0":42}}'


class Hadoop:
    """A played session of Spark, whose storage is one file of any name."""

    def __init__(self, text: str, **conf: str) -> None:
        self.text, self.conf = text, conf
        self.opened: list[str] = []

    def session(self) -> SparkSession:
        files = SimpleNamespace(open=lambda path: SimpleNamespace(path=path, close=lambda: None))

        def path(location: str) -> Any:  # noqa: ANN401 - a Java object
            self.opened.append(location)
            return SimpleNamespace(getFileSystem=lambda _: files)

        jvm = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    hadoop=SimpleNamespace(fs=SimpleNamespace(Path=path)),
                    commons=SimpleNamespace(
                        io=SimpleNamespace(IOUtils=SimpleNamespace(toString=lambda *_: self.text))
                    ),
                )
            )
        )
        context = SimpleNamespace(hadoopConfiguration=lambda: self.conf)
        return cast("SparkSession", SimpleNamespace(_jvm=jvm, _jsc=context))


@given(st.text(), st.text(min_size=1), st.text())
def test_a_name_tells_what_the_file_holds(stem: str, text: str, other: str) -> None:
    """The same text has the same name, another text another; each storage takes the name."""
    name = offsets_file_name(stem, text)
    assert name == offsets_file_name(stem, text)
    assert "/" not in name
    assert ":" not in name
    check_offsets_file(f"s3://lake/plans/{name}", text)
    if other != text:
        with pytest.raises(ValueError, match="was changed: its name says"):
            check_offsets_file(name, other)


def test_a_retry_writes_the_same_file(tmp_path: Path) -> None:
    """One file for each text, beside the plan; what is whole there is not written again."""
    plan = str(tmp_path / "plans" / "manual__2026-11-21T09:10:00+00:00.json")
    first = write_offsets(TEXT, plan, UPath)
    (file,) = (tmp_path / "plans").iterdir()
    assert file.read_text() == TEXT
    assert first == f"@{file}"
    written = file.stat().st_mtime_ns
    assert write_offsets(TEXT, plan, UPath) == first
    assert file.stat().st_mtime_ns == written
    assert write_offsets(TEXT.replace("2", "3"), plan, UPath) != first
    assert read_offsets(first, UPath) == TEXT
    file.write_text("")
    assert write_offsets(TEXT, plan, UPath) == first
    assert file.read_text() == TEXT


@pytest.mark.parametrize("text", [TEXT, "earliest", "latest"])
def test_what_names_no_file_is_taken_as_it_is(text: str) -> None:
    """Nothing is read."""
    hadoop = Hadoop("unread")
    assert starting_offsets(hadoop.session(), text) == text
    assert read_offsets(text, UPath) == text
    assert hadoop.opened == []


@pytest.mark.parametrize(
    ("airflows", "conf", "sparks"),
    [
        ("/data/plans/", {}, "/data/plans/"),
        ("s3://lake/plans/", {}, "s3a://lake/plans/"),
        ("s3://lake/plans/", {"fs.s3.impl": "com.amazon.Emrfs"}, "s3://lake/plans/"),
        ("s3://my_conn@lake/plans/", {}, "s3a://lake/plans/"),
        ("s3a://lake/plans/", {}, "s3a://lake/plans/"),
        ("gcs://my_conn@lake/plans/", {}, "gs://lake/plans/"),
        ("hdfs://name:8020/plans/", {}, "hdfs://name:8020/plans/"),
        ("abfss://c@a.dfs.core.windows.net/plans/", {}, "abfss://c@a.dfs.core.windows.net/plans/"),
    ],
)
def test_the_job_opens_airflows_location(airflows: str, conf: dict[str, str], sparks: str) -> None:
    """Without the connection's id, and by the protocol that this Spark knows."""
    hadoop, name = Hadoop(TEXT, **conf), offsets_file_name("run", TEXT)
    assert starting_offsets(hadoop.session(), f"@{airflows}{name}") == TEXT
    assert hadoop.opened == [f"{sparks}{name}"]


def test_the_job_opens_the_folder_that_it_is_told() -> None:
    """Where only a user can say how Spark spells it."""
    hadoop, name = Hadoop(TEXT), offsets_file_name("run", TEXT)
    starting_offsets(hadoop.session(), f"@abfs://lake/plans/{name}", "abfss://c@a/plans/")
    assert hadoop.opened == [f"abfss://c@a/plans/{name}"]


@pytest.mark.parametrize(
    ("name", "named"),
    [
        (offsets_file_name("run", TEXT), "was changed: its name says"),
        ("run.json", "is no file of starting offsets"),
        (f"{offsets_file_name('run', TEXT)}.tmp", "is no file of starting offsets"),
    ],
)
def test_the_job_takes_no_other_file(tmp_path: Path, name: str, named: str) -> None:
    """A file that was changed, or that the failover did not write, ends the job and the task."""
    other = TEXT.replace("4", "5")
    with pytest.raises(ValueError, match=named):
        starting_offsets(Hadoop(other).session(), f"@/plans/{name}")
    tmp_path.joinpath(name).write_text(other)
    with pytest.raises(PlanError, match=named):
        read_offsets(f"@{tmp_path}/{name}", UPath)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """With the next step."""
    with pytest.raises(PlanError, match=r"run\.json: the file of the starting offsets is gone"):
        read_offsets(f"@{tmp_path}/run.json", UPath)
