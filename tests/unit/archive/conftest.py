"""Archives on the local disk and in memory."""

from itertools import count
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive

_NUMBERS = count()


@pytest.fixture(params=["file", "memory"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> SyncArchive:
    """Make an empty archive: a folder that does not exist yet."""
    if request.param == "file":
        return SyncArchive(str(tmp_path / "archive"))
    return SyncArchive(UPath(f"memory://archive-{next(_NUMBERS)}"))
