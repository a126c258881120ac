"""An Airflow of the tests' own: its home is a temporary folder, whatever the machine has."""

import logging
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from airflow_mm2_offsets.testing import in_memory_clients
from airflow_mm2_offsets.testing.connect import in_memory_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.operators.clusters import Clusters
    from tests.unit.operators.mover import Mover
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


@pytest.fixture(scope="session", autouse=True)
def schemas_checked_once() -> "Iterator[None]":
    """Let Airflow check a param's schema once, not each time that it reads the param.

    That was a quarter of the time of a task here.
    """
    checked: set[str] = set()
    check = Draft202012Validator.check_schema

    def check_once(schema: object) -> None:
        if (text := repr(schema)) not in checked:
            check(schema)
            checked.add(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", check_once)
        yield


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> "Iterator[None]":
    """Let clients find the clusters in memory, and refuse every real connection and program."""
    for name in _REFUSED:
        monkeypatch.setattr(name, _refuse)
    monkeypatch.setattr("subprocess.Popen._execute_child", _start_program)
    # boto asks the metadata service of EC2 for the credentials that it does not find.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # Its examples bring a plugin that looks at each task: a seventh of the time of a task here.
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    with in_memory_clients(), in_memory_connect():
        yield


_REFUSED = (
    "socket.socket.connect",
    "socket.socket.connect_ex",
    "airflow_mm2_offsets.testing.clients.AdminClient",
    "airflow_mm2_offsets.testing.clients.Consumer",
)


_execute_child = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # noqa: SLF001


def _start_program(popen: object, command: list[str], *arguments: object) -> None:
    # platform.architecture() runs it, once, when Airflow first makes a DAG.
    if command[0] != "file":
        _refuse(command)
    _execute_child(popen, command, *arguments)


def _refuse(*arguments: object, **_: object) -> None:
    raise AssertionError(
        f"a unit test opens a connection or starts a program: {arguments!r}; let it use "
        "airflow_mm2_offsets.testing, or move it to tests/integration"
    )


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


@pytest.fixture
def mover(worker: "Worker", clusters: "Clusters", tmp_path: Path) -> "Mover":
    """A job that runs at its first home, whose records are all copied."""
    from tests.unit.operators.clusters import RECORDS  # noqa: PLC0415
    from tests.unit.operators.mover import Mover  # noqa: PLC0415
    from tests.unit.operators.spark_job import Job  # noqa: PLC0415

    clusters.copy_the_rest()
    for partition in (2, 3):
        clusters.source.produce("orders", partition, RECORDS)
    for partition in (1, 2, 3):
        clusters.sync(9, 9, partition)
    Job(tmp_path / "source", 4, 6, 3, 2)
    return Mover(worker=worker, folder=tmp_path)
