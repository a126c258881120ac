"""Clusters that a failover can be checked with."""

import pytest

from tests.unit.operators.clusters import Clusters


@pytest.fixture
def all_copied(clusters: Clusters) -> Clusters:
    """Clusters of which every partition has a sync at its beginning."""
    clusters.copy_the_rest()
    return clusters
