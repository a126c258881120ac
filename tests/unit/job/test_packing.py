"""What is handed to a Spark job: one zip."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.job.translation.logs import check_python


def test_the_zip_is_the_same_for_the_same_sources() -> None:
    """A second call makes nothing new, and no file has the time of its making."""
    assert py_files() == py_files()
    with ZipFile(py_files()) as archive:
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        names = {name.split("/")[1] for name in archive.namelist()}
        assert names == {"__init__.py", "errors.py", "logins.py", "core", "job"}
        assert "airflow_mm2_offsets/job/stop/control.py" in archive.namelist()


def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others could write to the folder, the zip lies in a new one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Path(py_files()).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert Path(py_files()).parent != folder


def test_an_old_python_is_named() -> None:
    """Core's floor is told with the way around it."""
    with pytest.raises(RuntimeError, match=r"Python 3\.11 or newer.* this is 3\.9\. .*Parquet"):
        check_python((3, 9))
    check_python((3, 11))
