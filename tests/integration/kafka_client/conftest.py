"""librdkafka's mock broker, for the tests of what ``kafka/`` makes of the real client."""

from collections.abc import Iterator

import pytest

from tests.support.mock_broker import MockBroker


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    mock = MockBroker()
    yield mock
    mock.stop()
