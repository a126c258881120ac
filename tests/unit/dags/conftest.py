"""The parsed DAGs."""

import pytest
from airflow.providers.common.compat.sdk import DAG

from tests.unit.dags.folder import FOLDER, DagBag, parse


@pytest.fixture(scope="package")
def bag() -> DagBag:
    return parse(FOLDER)


@pytest.fixture
def failover(bag: DagBag) -> DAG:
    return bag.dags["mm2_failover"]
