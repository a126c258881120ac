"""The parsed DAGs, and a run of one."""

import pytest
from airflow.providers.common.compat.sdk import DAG

from tests.unit.dags.dags_folder import FOLDER, DagBag, parse
from tests.unit.dags.failovers import Failover, write_jobs
from tests.unit.operators.mover import Mover


@pytest.fixture(autouse=True)
def _a_lost_part_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that does not run is silent here: each question to it waits this long."""
    monkeypatch.setattr("airflow_mm2_offsets.planning.lost_parts.PROBE_SECONDS", 0.1)


@pytest.fixture(scope="package")
def bag() -> DagBag:
    return parse(FOLDER)


@pytest.fixture
def failover(bag: DagBag) -> DAG:
    return bag.dags["mm2_failover"]


@pytest.fixture
def mover(mover: Mover, monkeypatch: pytest.MonkeyPatch) -> Mover:
    """The job in a file of jobs, with a folder for its positions."""
    mover.more = {"saved_positions": str(mover.folder / "saved")}
    return write_jobs(mover, monkeypatch)


@pytest.fixture
def run(mover: Mover) -> Failover:
    return Failover.of(mover)
