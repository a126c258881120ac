"""An app over an index in memory, whose clusters are nowhere."""

from collections.abc import Iterator

import pytest

from tests.unit.api.homes import Home
from tests.unit.service.pairs import Pair


@pytest.fixture
def home() -> Home:
    """Return an app and what it stands on."""
    return Home()


@pytest.fixture
def clusters() -> Iterator[Pair]:
    """Return two in-process clusters."""
    made = Pair()
    yield made
    made.stop()
