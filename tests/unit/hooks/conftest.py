"""Connections that lead nowhere."""

import pytest

from tests.unit.hooks.properties import KAFKA, SECRET
from tests.unit.operators.clusters import define


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Connections that are right, and lead nowhere."""
    for conn_id in ("kafka_source", "kafka_target"):
        define(monkeypatch, conn_id, conn_type="kafka", extra=KAFKA)
    define(monkeypatch, "mm2_default", extra={}, login="airflow", password=SECRET)
    return monkeypatch
