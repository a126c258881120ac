"""Clusters that a failover can be checked with."""

import pytest

from tests.unit.operators.clusters import Clusters, describable


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the brokers of these tests describe topics."""
    describable(monkeypatch)


@pytest.fixture
def all_copied(clusters: Clusters, topics: None) -> Clusters:  # noqa: ARG001 - for its effect
    """Clusters of which every partition has a sync at its beginning."""
    clusters.copy_the_rest()
    return clusters
