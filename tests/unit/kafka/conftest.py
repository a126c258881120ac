"""An in-process broker for each test."""

from collections.abc import Iterator

import pytest

from tests.unit.kafka.brokers import MockBroker


@pytest.fixture
def described() -> None:
    """Leave the client as it is: these tests are of it."""


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    mock = MockBroker()
    yield mock
    mock.stop()
