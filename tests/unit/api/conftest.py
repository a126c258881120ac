"""An app over an index in memory, whose clusters are nowhere."""

import pytest

from tests.support.pair_fixtures import clusters
from tests.unit.api.homes import Home

__all__ = ["clusters", "home"]


@pytest.fixture
def home() -> Home:
    """Return an app and what it stands on."""
    return Home()
