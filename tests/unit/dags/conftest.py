"""The parsed DAGs."""

import pytest
from airflow.providers.common.compat.sdk import DAG

from tests.unit.dags.folder import FOLDER, DagBag, parse


@pytest.fixture(scope="package")
def bag() -> DagBag:
    return parse(FOLDER)


@pytest.fixture
def failover() -> DAG:
    """A DAG of a test's own: Airflow writes into its params what a run was given."""
    return parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
