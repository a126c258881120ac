"""An app over an index in memory, whose clusters are nowhere."""

import pytest

from tests.support.pairs import Pair
from tests.unit.api.homes import Home


@pytest.fixture
def home() -> Home:
    """Return an app and what it stands on."""
    return Home()


@pytest.fixture
def clusters() -> Pair:
    """Return two in-process clusters."""
    return Pair()
