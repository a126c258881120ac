"""The names in a folder, through a played Hadoop; test_spark_files.py has the real one."""

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from airflow_mm2_offsets.job import files
from airflow_mm2_offsets.job.files import HadoopFiles
from tests.unit.job.hadoop import Hadoop


def _names(hadoop: Hadoop) -> list[str]:
    return HadoopFiles(hadoop.session(), "s3a://lake/orders/control").names_in("fence")


def test_one_call_lists_a_folder() -> None:
    """A job lists its fences every two seconds."""
    hadoop = Hadoop(fence=["000001.json", "000002.json"])
    assert _names(hadoop) == ["000001.json", "000002.json"]
    assert hadoop.calls == ["list"]


def test_a_folder_that_does_not_exist_is_empty() -> None:
    """Hadoop raises then."""
    assert _names(Hadoop()) == []


def test_a_storage_that_refuses_for_a_moment_has_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again: a fence must not look absent."""
    monkeypatch.setattr("airflow_mm2_offsets.job.files.time.sleep", lambda _: None)
    for refusals in (1, 2, 3):
        hadoop = Hadoop(fence=["000001.json"])
        hadoop.refusals = refusals
        assert _names(hadoop) == ["000001.json"]


def test_a_storage_that_fails_is_no_empty_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a folder of which the listing alone fails."""
    monkeypatch.setattr(files, "_REPEAT_SECONDS", -1.0)
    for refusals in (1, 2):
        hadoop = Hadoop(fence=["000001.json"])
        hadoop.refusals = refusals
        with pytest.raises(Py4JJavaError):
            _names(hadoop)
