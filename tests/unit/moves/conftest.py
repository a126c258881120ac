"""A job without Airflow, Spark and Kafka."""

from pathlib import Path

import pytest

from tests.unit.moves.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A job that runs at its first home."""
    return Stage(tmp_path)
