"""Where a job is controlled."""

from pathlib import Path

import pytest
from upath import UPath


@pytest.fixture(params=["local", "memory"])
def control(request: pytest.FixtureRequest, tmp_path: Path) -> UPath:
    """An empty control location, on the local disk and away from it."""
    if request.param == "local":
        return UPath(tmp_path)
    root = UPath(f"memory://control{tmp_path}")
    root.mkdir(parents=True)
    return root
