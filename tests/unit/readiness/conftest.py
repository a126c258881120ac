"""A world in which all is well."""

from pathlib import Path

import pytest

from tests.unit.readiness.ready_world import ReadyWorld


@pytest.fixture
def world(tmp_path: Path) -> ReadyWorld:
    return ReadyWorld(folder=tmp_path)
