"""The breaker before a source that does not answer."""

import pytest

from airflow_mm2_offsets.api.breaker import Breaker
from airflow_mm2_offsets.core import Watermarks
from airflow_mm2_offsets.errors import ClusterUnreachableError, TopicNotFoundError
from tests.unit.api.api_harness import BASE, ORDERS, ApiHarness, FakeCluster

ENDS = {ORDERS: Watermarks(low=0, high=300)}


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def breaker(cluster: FakeCluster, clock: Clock) -> Breaker:
    return Breaker(cluster, pause=5, clock=clock)  # type: ignore[arg-type]


def fails(asked: Breaker) -> None:
    with pytest.raises(ClusterUnreachableError, match="did not answer"):
        asked.watermarks([ORDERS])


def test_a_silent_source_is_not_asked_again_at_once(clock: Clock) -> None:
    """Within the pause each request gets the same error, and the source gets no request."""
    source = FakeCluster("source")
    asked = breaker(source, clock)
    fails(asked)
    clock.seconds = 4.9
    fails(asked)
    assert source.requests == 1


def test_one_request_finds_out_whether_the_source_is_back(clock: Clock) -> None:
    """After the pause one request goes through; those that come meanwhile do not."""
    source = FakeCluster("source")
    asked = breaker(source, clock)
    fails(asked)
    clock.seconds = 5.0
    meanwhile: list[int] = []

    def watermarks(_partitions: object) -> dict[object, object]:
        fails(asked)
        meanwhile.append(source.requests)
        return dict(ENDS)

    source.watermarks = watermarks  # type: ignore[method-assign, assignment]
    assert asked.watermarks([ORDERS]) == ENDS
    assert meanwhile == [1]


def test_an_answer_ends_it(clock: Clock) -> None:
    """Once the source answers, all requests reach it again."""
    source = FakeCluster("source")
    asked = breaker(source, clock)
    fails(asked)
    source.known_watermarks = ENDS
    clock.seconds = 5.0
    for _ in range(3):
        assert asked.watermarks([ORDERS]) == ENDS
    assert source.requests == 4


def test_no_partition_asks_nobody(clock: Clock) -> None:
    """Such a request is answered during the pause, too, and does not end it."""
    source = FakeCluster("source")
    asked = breaker(source, clock)
    fails(asked)
    for clock.seconds in (1.0, 5.0):
        assert asked.watermarks([]) == {}
    clock.seconds = 4.9
    fails(asked)
    assert source.requests == 1


def test_a_refusal_is_an_answer(clock: Clock) -> None:
    """A cluster that refuses a request is back."""
    source = FakeCluster("source")
    asked = breaker(source, clock)
    fails(asked)
    clock.seconds = 5.0

    def refuse(_partitions: object) -> dict[object, object]:
        raise TopicNotFoundError("there is no such topic")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "watermarks", refuse)
        with pytest.raises(TopicNotFoundError):
            asked.watermarks([ORDERS])
    source.known_watermarks = ENDS
    assert asked.watermarks([ORDERS]) == ENDS


def test_each_request_has_an_error_of_its_own(clock: Clock) -> None:
    """One that is raised over and over would keep the frames of each request in memory."""
    asked = breaker(FakeCluster("source"), clock)
    errors = []
    for _ in range(3):
        with pytest.raises(ClusterUnreachableError, match="did not answer") as raised:
            asked.watermarks([ORDERS])
        errors.append(raised.value)
    assert len({id(error) for error in errors}) == 3
    assert len({str(error) for error in errors}) == 1


def test_batches_share_the_breaker(api: ApiHarness) -> None:
    """A second batch is refused as the first, and the source was asked once."""
    api.source.known_watermarks = {}
    body = {"topicName": "orders", "offsetList": [{"partition": 0, "startOffset": 1}]}
    for _ in range(2):
        answer = api.client.post(f"{BASE}/translate/batch", json=body)
        assert answer.status_code == 503
        assert "check_source=false" in answer.json()["detail"]
    assert api.source.requests == 1
    unchecked = api.client.post(f"{BASE}/translate/batch?check_source=false", json=body)
    assert unchecked.status_code == 200
