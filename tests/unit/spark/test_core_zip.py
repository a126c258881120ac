"""The core that is handed to a Spark job as one zip."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from mm2_offsets_logs import check_python

import airflow_mm2_offsets
from airflow_mm2_offsets.spark.job import py_files
from airflow_mm2_offsets.spark.job.core_zip import core_zip

PACKAGE = Path(airflow_mm2_offsets.__file__).parent
TRANSLATE = """
import airflow_mm2_offsets.core as core
print(core.SyncIndex.of_pairs({("orders", 0): [(3, 2)]}).translate("orders", 0, 3).target)
print(core.__file__)
"""


def run(code: str, *path: Path) -> list[str]:
    """Run Python with nothing of this package on its path but what is given."""
    paths = "".join(f"sys.path.insert(0, {str(each)!r}); " for each in reversed(path))
    command = (sys.executable, "-ISc", f"import sys; {paths}\n{code}")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_core_is_imported_from_the_zip() -> None:
    """Where the package is not installed, with the standard library alone."""
    target, origin = run(TRANSLATE, core_zip())
    assert target == "2"
    assert origin.startswith(str(core_zip()))


def test_the_zip_hides_nothing_of_an_installed_package() -> None:
    """What the zip lacks is found where the package is installed; core is the zip's."""
    installed = "import airflow_mm2_offsets.spark.job as job; print(job.__file__)"
    (origin,) = run(installed, core_zip(), PACKAGE.parent)
    assert Path(origin) == PACKAGE / "spark" / "job" / "__init__.py"
    _, origin = run(TRANSLATE, core_zip(), PACKAGE.parent)
    assert origin.startswith(str(core_zip()))


def test_the_zip_is_the_same_for_the_same_sources() -> None:
    """A second call makes nothing new, and no file has the time of its making."""
    assert core_zip() == core_zip()
    assert str(core_zip()) in py_files().split(",")
    with ZipFile(core_zip()) as archive:
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert "airflow_mm2_offsets/core/rows.py" in archive.namelist()


def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others could write to the folder, the zip lies in a new one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = core_zip().parent
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert core_zip().parent != folder


def test_an_old_python_is_named() -> None:
    """Core's floor is told with the way around it."""
    with pytest.raises(RuntimeError, match=r"Python 3\.11 or newer.* this is 3\.9\. .*Parquet"):
        check_python((3, 9))
    check_python((3, 11))
