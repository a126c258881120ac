"""The running stack of these tests: in containers, or as local JVMs without an engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stack import containers, jars
from stack.containers import ContainerStack
from stack.local import LocalStack
from stack.mirror import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.s3 import Server
    from tests.integration.secured import Secured
    from tests.unit.operators.worker import Worker

pytest.register_assert_rewrite(
    "tests.integration.contract", "tests.integration.explained", "tests.integration.secured"
)

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build"
TOPICS = "orders.*"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.integration)


def pytest_report_collectionfinish(items: list[pytest.Item]) -> str | None:
    """Report the kind of stack; pytest's header comes too early for this conftest.py."""
    if not any("stack" in getattr(item, "fixturenames", ()) for item in items):
        return None
    obstacle = containers.obstacle()
    kind = f"local JVMs, because {obstacle}" if obstacle else f"containers of {containers.IMAGE}"
    return f"stack: {kind}"


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two brokers and MirrorMaker 2, which copies every topic whose name starts with "orders"."""
    with _choose(tmp_path_factory) as running:
        running.create_mirror(TOPICS)
        yield running


@pytest.fixture(scope="module")
def exactly_once_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A second stack without connectors, whose MirrorMaker 2 copies each record once."""
    with _choose(tmp_path_factory, exactly_once=True) as running:
        yield running


@pytest.fixture(scope="session")
def s3_server() -> Iterator["Server"]:
    """An S3 server with one bucket, shared by all tests: Airflow caches connections."""
    from tests.integration.s3 import Server  # noqa: PLC0415

    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def spark() -> Iterator["SparkSession"]:
    """A session in this process, as a user has it, but for little data.

    PySpark keeps its JVM until the process ends, and only the jars of its first session are on the
    class path: so each module's session has those of the Kafka source.
    """
    # Few tests need PySpark.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from tests.integration.spark_jobs import LOOPBACK, kafka_jars  # noqa: PLC0415

    made = SparkSession.builder.master("local[2]").config(
        map={
            **LOOPBACK,
            "spark.jars": kafka_jars(),
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.showConsoleProgress": "false",
        }
    )
    session = made.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> "Worker":
    """A worker that runs tasks here."""
    # Tests without Airflow should not wait for its import.
    from airflow.sdk.execution_time import task_runner  # noqa: PLC0415

    from tests.unit.operators.worker import Worker  # noqa: PLC0415

    worker = Worker()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", worker, raising=False)
    return worker


def _choose(tmp_path_factory: pytest.TempPathFactory, *, exactly_once: bool = False) -> Stack:
    if containers.obstacle() is None:
        return ContainerStack(exactly_once=exactly_once, progress=print)
    return LocalStack(
        tmp_path_factory.mktemp("stack"),
        jars.fetch(BUILD, progress=print).kafka,
        exactly_once=exactly_once,
        progress=print,
    )


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Secured"]:
    """Brokers that demand logins and rights, always as local JVMs, with a mirrored topic."""
    from stack.secure import SecureStack  # noqa: PLC0415 - few tests need it
    from tests.integration.secured import run_secured  # noqa: PLC0415

    kafka = jars.fetch(BUILD, progress=print).kafka
    login = jars.fetch_connect_login(BUILD, progress=print)
    folder = tmp_path_factory.mktemp("secure")
    with run_secured(SecureStack(folder, kafka, login, progress=print), TOPICS) as running:
        yield running
