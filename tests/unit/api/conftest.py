"""An app over an index in memory, whose clusters are nowhere."""

import pytest

from tests.support.pair_fixtures import clusters
from tests.unit.api.api_harness import ApiHarness

__all__ = ["api", "clusters"]


@pytest.fixture
def api() -> ApiHarness:
    """Return an app and what it stands on."""
    return ApiHarness()
