"""The parsed DAGs, and a run of one."""

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

from tests.unit.dags.dags_folder import FOLDER, DagBag, parse
from tests.unit.dags.failovers import Failover
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker


@pytest.fixture(autouse=True)
def _a_lost_part_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that does not run is silent here: each question to it waits this long."""
    monkeypatch.setattr("airflow_mm2_offsets.planning.lost_parts.PROBE_SECONDS", 0.1)


@pytest.fixture(scope="package")
def bag() -> DagBag:
    return parse(FOLDER)


@pytest.fixture
def failover() -> DAG:
    """A DAG of a test's own: Airflow writes into its params what a run was given."""
    return parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]


@pytest.fixture
def source(clusters: Clusters, tmp_path: Path) -> Job:
    """A job on the source that has read up to 4, and clusters where all is copied."""
    clusters.copy_the_rest()
    return Job(tmp_path / "source", 4, 0, 0, 0)


@pytest.fixture
def run(worker: Worker, failover: DAG, source: Job) -> Failover:
    return Failover(worker, failover, source)
