"""Clients are used again."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as KafkaTopicPartition

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import ClusterUnreachableError, TopicNotFoundError
from airflow_mm2_offsets.kafka import clients as module
from airflow_mm2_offsets.kafka.clients import ClientPool, make_admin, make_consumer
from airflow_mm2_offsets.kafka.session import ClientSession
from tests.support.mock_broker import MockBroker

ORDERS, RETURNS = TopicPartition("orders", 0), TopicPartition("returns", 1)


class SessionFactory(list[ClientSession[Any]]):
    """Makes sessions, and keeps them."""

    def __call__(self) -> ClientSession[Any]:
        self.append(make_admin("source", {"bootstrap.servers": "127.0.0.1:1"}, 5.0))
        return self[-1]


@pytest.fixture
def sessions() -> SessionFactory:
    return SessionFactory()


def test_a_client_that_got_an_answer_is_reused(sessions: SessionFactory) -> None:
    """A client is reused after an answer, also after a refusal."""
    clients = ClientPool()
    with clients.acquire("admin", sessions):
        pass
    with pytest.raises(TopicNotFoundError), clients.acquire("admin", sessions):
        raise TopicNotFoundError("no such topic")
    with clients.acquire("admin", sessions) as session:
        assert session is sessions[0]
    assert len(sessions) == 1


@pytest.mark.parametrize("error", [ClusterUnreachableError, RuntimeError, KeyboardInterrupt])
def test_a_client_that_got_no_answer_is_not_reused(
    sessions: SessionFactory, error: type[BaseException]
) -> None:
    """Its next reconnect may be far away, and its last request may still be running."""
    clients = ClientPool()
    with pytest.raises(error), clients.acquire("admin", sessions):
        raise error
    with clients.acquire("admin", sessions):
        pass
    assert len(sessions) == 2


def test_no_client_is_used_after_a_long_idle_time(
    sessions: SessionFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle clients are dropped after a time, and so are those that were idle even longer."""
    clients = ClientPool()
    with clients.acquire("admin", sessions), clients.acquire("admin", sessions):
        pass
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    with clients.acquire("admin", sessions), clients.acquire("admin", sessions):
        pass
    assert len(sessions) == 4


def test_no_client_is_used_twice_at_once(sessions: SessionFactory) -> None:
    """Each of several threads has a client; the pool keeps few of them."""
    clients, together = ClientPool(), 8
    all_here = threading.Barrier(together)

    def ask() -> ClientSession[Any]:
        with clients.acquire("admin", sessions) as session:
            all_here.wait(timeout=10)
        return session

    with ThreadPoolExecutor(together) as pool:
        asked = [each.result() for each in [pool.submit(ask) for _ in range(together)]]
        assert len(set(map(id, asked))) == together
        for each in [pool.submit(ask) for _ in range(together)]:
            each.result()
    assert len(sessions) == together + together - 4


def test_kinds_are_pooled_apart(sessions: SessionFactory) -> None:
    """A client of one isolation level does not serve another."""
    clients, others = ClientPool(), SessionFactory()
    with clients.acquire("read_committed", sessions):
        pass
    with clients.acquire("read_uncommitted", others):
        pass
    assert (len(sessions), len(others)) == (1, 1)


def test_the_deadline_starts_when_a_client_is_acquired(
    sessions: SessionFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline does not depend on the age of the client."""
    clients = ClientPool()
    with clients.acquire("admin", sessions):
        pass
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 50)
    with clients.acquire("admin", sessions) as session:
        assert session.remaining == pytest.approx(5.0)


def test_a_dropped_client_is_gone_at_once() -> None:
    """Its threads and connections end without a run of the garbage collector."""
    gc.disable()
    try:
        session = make_admin("source", {"bootstrap.servers": "127.0.0.1:1"}, 5.0)
        gone = weakref.ref(session)
        del session
        assert gone() is None
    finally:
        gc.enable()


def test_a_cluster_reuses_one_client(broker: MockBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """All watermark requests of a cluster use one client."""
    sessions: list[object] = []

    def making(*args: object, **options: object) -> ClientSession[Consumer]:
        sessions.append(args)
        return make_consumer(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("airflow_mm2_offsets.kafka.cluster.make_consumer", making)
    broker.write("orders", [(b"k", b"v")])
    cluster = broker.cluster()
    for end in (1, 2, 3):
        assert cluster.watermarks([ORDERS])[ORDERS].high == end
        broker.write("orders", [(b"k", b"v")])
    assert len(sessions) == 1


def test_a_partition_without_an_answer_is_an_error(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Librdkafka then returns the request's own negative offset, which is no position."""

    class Forgetful(Consumer):
        def offsets_for_times(
            self, partitions: list[KafkaTopicPartition], timeout: float = -1.0
        ) -> list[KafkaTopicPartition]:
            del timeout
            return partitions

    monkeypatch.setattr(module, "Consumer", Forgetful)
    broker.write("orders", [(b"k", b"v")])
    with pytest.raises(ClusterUnreachableError, match=r"^source .*: did not answer"):
        broker.cluster().watermarks([ORDERS])


def test_a_partition_that_is_not_led_yet_is_asked_for_again(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was just created is not found for a moment, while others are."""
    asked: list[int] = []

    class NotFound(KafkaTopicPartition):
        error = KafkaError(KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - its name

    class Late(Consumer):
        def offsets_for_times(
            self, partitions: list[KafkaTopicPartition], timeout: float = -1.0
        ) -> list[KafkaTopicPartition]:
            asked.append(len(partitions))
            answers = super().offsets_for_times(partitions, timeout)
            return [answers[0], NotFound(*RETURNS)] if len(asked) == 1 else answers

    monkeypatch.setattr(module, "Consumer", Late)
    for topic, partition in (ORDERS, RETURNS):
        broker.write(topic, [(b"k", b"v")], partition)
    found = broker.cluster().watermarks([ORDERS, RETURNS])
    assert {each: marks.high for each, marks in found.items()} == {ORDERS: 1, RETURNS: 1}
    assert asked == [2, 2, 2]
