"""Fixtures of two in-memory clusters; a folder's conftest.py imports those that it needs."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import ReplicationPolicy
from tests.support.pairs import Pair

BEFORE = 5
"""Records on the target before the first copy of partition 0."""


@pytest.fixture
def clusters() -> Pair:
    return Pair()


@pytest.fixture
def copied(clusters: Pair) -> Pair:
    """Return clusters where all of orders was copied: n is n + 5 of partition 0, n of others."""
    clusters.copy("orders", range(100, 100 + BEFORE))
    for partition in range(4):
        shift = 0 if partition else BEFORE
        clusters.write("orders", range(10), partition)
        clusters.copy("orders", range(10), partition)
        clusters.sync("orders", (0, shift), (9, 9 + shift), partition=partition)
    return clusters


@pytest.fixture
def renamed(copied: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return clusters where DefaultReplicationPolicy names the topics, and others beside them."""
    naming = replace(copied.pair.naming, policy=ReplicationPolicy.DEFAULT)
    monkeypatch.setattr(copied, "pair", replace(copied.pair, naming=naming))
    copied.copy("a.orders", range(100, 100 + BEFORE))
    for partition in range(4):
        copied.copy("a.orders", range(10), partition)
    for name in ("heartbeats", "a.orders-eu", "refunds"):
        copied.copy(name, range(3))
    return copied
