"""What wheel and sdist must hold: exactly the commit's files, each under its name there."""

import tarfile
import zipfile
from collections.abc import Collection
from io import BytesIO

from release.errors import ReleaseError

PACKAGE = "airflow_mm2_offsets/"
EXAMPLES = {"dags/": f"{PACKAGE}example_dags/"}
"""Folders of the checkout that the wheel has under another name."""
METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
SDIST_FOLDERS = (
    *("airflow_mm2_offsets", "benchmarks", "charts", "dags", "demo", "docs", "docsite"),
    *("release", "stack", "tests"),
)
SDIST_FILES = (
    *(".dockerignore", ".gitignore", ".pre-commit-config.yaml"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md"),
    *("SECURITY.md", "constraints.txt", "docker-compose.yaml", "mkdocs.yml", "noxfile.py"),
    "pyproject.toml",
)
NOT_IN_SDIST = (".ci", ".github")
"""Folders that serve the repository alone."""


def check_wheel(wheel: bytes, files: Collection[str], *, metadata_folder: str) -> None:
    """Compare a wheel with the package and the example DAGs of the commit."""
    names = EXAMPLES | {PACKAGE: PACKAGE}
    expected = {
        file.replace(before, after, 1)
        for file in files
        for before, after in names.items()
        if file.startswith(before)
    }
    with zipfile.ZipFile(BytesIO(wheel)) as archive:
        actual = {name for name in archive.namelist() if not name.endswith("/")}
    _compare("the wheel", actual, expected | {f"{metadata_folder}/{name}" for name in METADATA})


def check_sdist(sdist: bytes, files: Collection[str], *, folder: str) -> None:
    """Compare a sdist with the commit, and the commit's folders with the allowed ones.

    Raises:
        ReleaseError: A file is too much or too few, or the commit has a folder or a top-level file
            that this module does not name.
    """
    released = {file for file in files if file.partition("/")[0] not in NOT_IN_SDIST}
    if unknown := sorted(file for file in released if not _allowed(file)):
        raise ReleaseError(
            f"the sdist would hold {', '.join(unknown[:5])}: remove it, or add its folder to "
            f"release/contents.py"
        )
    with tarfile.open(fileobj=BytesIO(sdist)) as archive:
        actual = {member.name for member in archive.getmembers() if not member.isdir()}
    _compare("the sdist", actual, {f"{folder}/{file}" for file in (*released, "PKG-INFO")})


def _allowed(file: str) -> bool:
    first, slash, _ = file.partition("/")
    return first in (SDIST_FOLDERS if slash else SDIST_FILES)


def _compare(what: str, actual: set[str], expected: set[str]) -> None:
    if stray := sorted(actual - expected):
        raise ReleaseError(
            f"{what} holds {len(stray)} files too many, first {', '.join(stray[:5])}: correct "
            f"[tool.hatch.build] in pyproject.toml, or release/contents.py"
        )
    if missing := sorted(expected - actual):
        raise ReleaseError(
            f"{what} lacks {len(missing)} files, first {', '.join(missing[:5])}: correct "
            f"[tool.hatch.build] in pyproject.toml"
        )
