"""A job without Airflow, Spark and Kafka."""

from pathlib import Path

import pytest

from tests.unit.moves.stage import Asked, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A job that runs at its first home."""
    return Stage(tmp_path)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """A job that runs at its first home under stop control."""
    return Asked(tmp_path)
