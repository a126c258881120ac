"""Two in-memory clusters for each test."""

from tests.support.pair_fixtures import clusters, copied

__all__ = ["clusters", "copied"]
