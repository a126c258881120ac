"""What wheel and sdist hold is compared with the commit, file by file."""

import tarfile
import zipfile
from collections.abc import Iterable
from io import BytesIO

import pytest

from release.contents import METADATA, check_sdist, check_wheel
from release.errors import ReleaseError

COMMITTED = (
    "LICENSE",
    ".ci/run",
    "airflow_mm2_offsets/__init__.py",
    "airflow_mm2_offsets/py.typed",
    "dags/mm2_failover.py",
    "docs/cli.md",
    "tests/unit/test_errors.py",
)
WHEEL = (
    "airflow_mm2_offsets/__init__.py",
    "airflow_mm2_offsets/py.typed",
    "airflow_mm2_offsets/example_dags/mm2_failover.py",
    *(f"info/{name}" for name in METADATA),
)
SDIST = tuple(f"base/{name}" for name in (*COMMITTED, "PKG-INFO") if name != ".ci/run")


def wheel(names: Iterable[str]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return file.getvalue()


def sdist(names: Iterable[str]) -> bytes:
    file = BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return file.getvalue()


def test_a_wheel_holds_the_package_and_the_example_dags() -> None:
    """Each file of the package, and dags/ by its other name."""
    check_wheel(wheel(WHEEL), COMMITTED, metadata_folder="info")


def test_a_wheel_with_a_stray_file_is_refused() -> None:
    """A file of tests/, or one that nobody committed, would be installed beside the package."""
    with pytest.raises(ReleaseError, match=r"1 files too many, first tests/conftest\.py"):
        check_wheel(wheel([*WHEEL, "tests/conftest.py"]), COMMITTED, metadata_folder="info")


@pytest.mark.parametrize("name", WHEEL)
def test_a_wheel_that_lacks_a_file_is_refused(name: str) -> None:
    """The package's data and the license are missed as its code is."""
    names = [each for each in WHEEL if each != name]
    with pytest.raises(ReleaseError, match=f"lacks 1 files, first {name}"):
        check_wheel(wheel(names), COMMITTED, metadata_folder="info")


def test_a_sdist_holds_all_but_what_serves_the_repository_alone() -> None:
    """Docs and tests belong to it; .ci does not."""
    check_sdist(sdist(SDIST), COMMITTED, folder="base")
    with pytest.raises(ReleaseError, match=r"too many, first base/\.ci/run"):
        check_sdist(sdist([*SDIST, "base/.ci/run"]), COMMITTED, folder="base")
    names = [each for each in SDIST if each != "base/docs/cli.md"]
    with pytest.raises(ReleaseError, match=r"lacks 1 files, first base/docs/cli\.md"):
        check_sdist(sdist(names), COMMITTED, folder="base")


@pytest.mark.parametrize("stray", ["notes.txt", "scratch/run.py"])
def test_a_new_top_level_name_must_be_allowed_first(stray: str) -> None:
    """What somebody committed by mistake is not released by mistake."""
    names = [*SDIST, f"base/{stray}"]
    with pytest.raises(ReleaseError, match=f"the sdist would hold {stray}"):
        check_sdist(sdist(names), [*COMMITTED, stray], folder="base")
