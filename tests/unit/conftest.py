"""An Airflow of the tests' own: its home is a temporary folder, whatever the machine has."""

import logging
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from airflow_mm2_offsets.testing import in_memory_clients
from airflow_mm2_offsets.testing.connect import in_memory_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.operators.clusters import Clusters
    from tests.unit.operators.worker import Worker

_home = tempfile.TemporaryDirectory(prefix="airflow-home-")
_settings = {
    "AIRFLOW_HOME": _home.name,
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
}
_before = {name: os.environ.get(name) for name in _settings}
# Airflow reads them once, when the first test module imports it.
os.environ.update(_settings)


def pytest_collection_finish() -> None:
    """Let the other tests start an Airflow of theirs: programs inherit the environment."""
    for name, value in _before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def pytest_unconfigure() -> None:
    """Remove the home, and the log handlers that Airflow made of streams closed by now."""
    _home.cleanup()
    logging.getLogger().handlers.clear()


@pytest.fixture(scope="session")
def airflow_home() -> str:
    """Where this Airflow may write."""
    return _home.name


@pytest.fixture(autouse=True)
def in_memory() -> "Iterator[None]":
    """Let clients of Kafka and Connect find the clusters in memory."""
    with in_memory_clients(), in_memory_connect():
        yield


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> "Worker":
    """A worker that runs tasks here."""
    # Where no test is of Airflow, nobody should wait for its import.
    from airflow.sdk.execution_time import task_runner  # noqa: PLC0415

    from tests.unit.operators.worker import Worker  # noqa: PLC0415

    worker = Worker()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", worker, raising=False)
    return worker


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> "Clusters":
    """Two clusters and the connections mm2_default, kafka_source and kafka_target."""
    from tests.unit.operators.clusters import Clusters  # noqa: PLC0415

    both = Clusters()
    both.connect(monkeypatch)
    return both
