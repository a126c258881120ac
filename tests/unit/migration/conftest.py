"""Two in-memory clusters for each test."""

from tests.support.pair_fixtures import clusters, copied, renamed

__all__ = ["clusters", "copied", "renamed"]
