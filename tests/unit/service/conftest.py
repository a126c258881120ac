"""Two in-process clusters for each test."""

from collections.abc import Iterator

import pytest

from tests.unit.service.pairs import Pair


@pytest.fixture
def clusters() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()
