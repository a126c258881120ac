"""The running stack of these tests: in containers, or as local JVMs without an engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from stack import containers, jars
from stack.containers import ContainerStack
from stack.local import LocalStack
from stack.mirror import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stack.airflow import Airflow
    from tests.integration.contract import Mirrored
    from tests.integration.s3 import Server
    from tests.integration.secured import Secured
    from tests.integration.telemetry import Telemetry
    from tests.unit.operators.worker import Worker

pytest.register_assert_rewrite(
    "tests.integration.contract", "tests.integration.explained", "tests.integration.secured"
)

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build"
TOPICS = "orders.*"


SHARED = {
    "airflow": "airflow_parts approval observability page plugin waits_in_worker",
    "secured": "least_privilege secure_login wrong_setups",
}
"""Costly things, by their fixture, and the files whose tests share them."""
GROUPS = {f"test_{name}.py": thing for thing, names in SHARED.items() for name in names.split()}


class OneProcessForEach(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Gives the tests of one file, or of one costly thing, to one process.

    pytest-xdist 3.8 has marks for that (``--dist loadgroup``), which pytest 9.2 does not hand on.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return GROUPS.get(Path(file).name, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneProcessForEach:  # noqa: ANN401 - xdist's own
    """Return what hands the tests to the processes."""
    return OneProcessForEach(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests, and see that each costly thing is made once."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.integration)
            for thing in SHARED.keys() & set(getattr(item, "fixturenames", ())):
                assert GROUPS.get(item.path.name) == thing, f"{item.path.name}: see SHARED"


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
def mirrored_topic(stack: Stack) -> Iterator["Mirrored"]:
    """A topic of the shared Airflow's connections."""
    from tests.integration.contract import mirrored  # noqa: PLC0415 - few tests need it

    with mirrored(stack) as made:
        yield made


@pytest.fixture(scope="session")
def telemetry() -> Iterator["Telemetry"]:
    """What the shared Airflow exports."""
    from tests.integration.telemetry import receive  # noqa: PLC0415 - few tests need it

    with receive("statsd") as received:
        yield received


@pytest.fixture(scope="session")
def airflow(
    stack: Stack,
    mirrored_topic: "Mirrored",
    telemetry: "Telemetry",
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Airflow"]:
    """An Airflow with the DAGs of airflow_dags, shared by all tests: it takes a minute to start."""
    from stack.airflow import Airflow  # noqa: PLC0415 - few tests need it
    from tests.integration.airflow_dags.page_world import write_jobs  # noqa: PLC0415
    from tests.integration.contract import (  # noqa: PLC0415
        REFRESH_SECONDS,
        airflow_connections,
    )

    connections = airflow_connections(stack, mirrored_topic)
    others = {"mm2_again": connections["mm2_default"], "no_mm2": {"conn_type": "http", "extra": {}}}
    naming = mirrored_topic.mirror.pair.naming
    jobs = write_jobs(tmp_path_factory.mktemp("jobs"), naming.source_alias, naming.target_alias)
    env = {
        "AIRFLOW__MM2_OFFSETS__REFRESH_SECONDS": str(REFRESH_SECONDS),
        "AIRFLOW__MM2_OFFSETS__JOBS_FILE": str(jobs),
    }
    made = Airflow(
        tmp_path_factory.mktemp("airflow"),
        HERE / "airflow_dags",
        connections=connections | others,
        env={**env, **telemetry.env},
        progress=print,
    )
    try:
        made.start()
        made.api.wait_dags("page_world", "observed", "stops", "stops_in_vain")
        yield made
    finally:
        made.stop()


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
