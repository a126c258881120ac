"""Reading a topic to the end it had."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, Message

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    PositionError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka import drain as drain_module
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain, watched_reads
from airflow_mm2_offsets.kafka.session import ClientSession
from tests.support.mock_broker import MockBroker


def _numbers(first: int, count: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(b"k", b"%d" % number) for number in range(first, first + count)]


ORDERS = TopicPartition("orders", 0)
ALL = {TopicPartition("orders", partition): 0 for partition in range(4)}


def _values(
    cluster: KafkaCluster, starts: Mapping[TopicPartition, int] = ALL, **options: Any
) -> list[bytes | None]:
    batches = drain(cluster, starts, **options)
    return [record.value() for record in itertools.chain.from_iterable(batches)]


def _after_watermarks(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen once the ends are known, before the first record is read."""
    ask = KafkaCluster.watermarks

    def ask_and_act(
        cluster: KafkaCluster, partitions: Iterable[TopicPartition], **options: str
    ) -> dict[TopicPartition, Watermarks]:
        answer = ask(cluster, partitions, **options)
        act()
        return answer

    monkeypatch.setattr(KafkaCluster, "watermarks", ask_and_act)


def test_every_partition_is_read_to_its_end(broker: MockBroker) -> None:
    """All records of all partitions come, each partition in order; empty ones do not matter."""
    broker.write("orders", _numbers(0, 12_000), partition=0)
    broker.write("orders", _numbers(20_000, 3), partition=3)
    read: dict[int, list[bytes | None]] = {}
    for record in itertools.chain.from_iterable(drain(broker.cluster(), ALL)):
        read.setdefault(record.partition(), []).append(record.value())
    assert read == {
        0: [b"%d" % number for number in range(12_000)],
        3: [b"20000", b"20001", b"20002"],
    }


def test_only_the_requested_partitions_are_read(broker: MockBroker) -> None:
    """The starts name the partitions to read and the first offset of each."""
    broker.write("orders", _numbers(0, 10), partition=0)
    broker.write("orders", _numbers(100, 10), partition=1)
    assert _values(broker.cluster(), {TopicPartition("orders", 1): 8}) == [b"108", b"109"]


def test_several_topics_are_read_at_once(broker: MockBroker) -> None:
    """One read returns partitions of several topics, each from its own start."""
    broker.write("orders", _numbers(0, 10))
    broker.write("returns", _numbers(100, 10))
    starts = {ORDERS: 9, TopicPartition("returns", 0): 8}
    assert set(_values(broker.cluster(), starts)) == {b"108", b"109", b"9"}


def test_a_partition_ends_at_its_stop(broker: MockBroker) -> None:
    """A stop ends its partition exactly there, and does not affect the others."""
    for partition in range(3):
        broker.write("orders", _numbers(1000 * partition, 500), partition)
    starts = {ORDERS: 90, TopicPartition("orders", 1): 0, TopicPartition("orders", 2): 499}
    stops = {ORDERS: 93, TopicPartition("orders", 1): 0, TopicPartition("orders", 2): 2**62}
    values = _values(broker.cluster(), starts, stops=stops)
    assert len(values) == 4
    assert set(values) == {b"2499", b"90", b"91", b"92"}


def test_a_first_record_is_enough(broker: MockBroker) -> None:
    """With first_only a partition ends with its first records, or at its end."""
    broker.write("orders", _numbers(0, 50_000), 0)
    broker.write("orders", _numbers(900_000, 1), 1)
    values = _values(broker.cluster(), first_only=True)
    assert values[0] == b"0"
    assert b"900000" in values
    assert len(values) < 50_000


def test_nothing_to_read_opens_no_consumer(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty partitions cost a request for watermarks, and no consumer."""
    broker.write("orders", _numbers(0, 5))
    monkeypatch.delattr("airflow_mm2_offsets.kafka.drain.make_consumer")
    assert _values(broker.cluster(), {ORDERS: 5, TopicPartition("orders", 1): 0}) == []
    assert _values(broker.cluster(), {}) == []


def test_records_that_come_later_are_not_read(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read ends at the end offsets of its start, though the topic has grown."""
    broker.write("orders", _numbers(0, 20))
    _after_watermarks(monkeypatch, lambda: broker.write("orders", _numbers(20, 5)))
    assert len(_values(broker.cluster())) == 20


def _with_end(monkeypatch: pytest.MonkeyPatch, high: int, low: int = 0) -> None:
    by_partition = {ORDERS: Watermarks(low=low, high=high)}
    monkeypatch.setattr(KafkaCluster, "watermarks", lambda *_, **__: by_partition)


def test_a_partition_that_ends_early_is_an_error(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that reports the end too early has lost records: the read fails."""
    broker.write("orders", _numbers(0, 5))
    _with_end(monkeypatch, 7)
    with pytest.raises(PositionError, match=r"orders\[0\]: its end offset is 5, and was 7 when"):
        _values(broker.cluster(timeout=3.0), {ORDERS: 0})


def test_a_broker_that_is_behind_is_waited_for(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new leader may report the end too early: the read waits for the records."""
    broker.write("orders", _numbers(0, 5))
    _with_end(monkeypatch, 7)
    messages: list[Message] = []

    def hear(session: ClientSession[Consumer], message: Message, *reading: Any) -> None:
        _handle_error(session, message, *reading)
        if message.error() is not None and not messages:
            messages.append(message)
            broker.write("orders", _numbers(5, 2))

    _handle_error = drain_module._handle_error  # noqa: SLF001 - the moment after the broker has said "end"
    monkeypatch.setattr(drain_module, "_handle_error", hear)
    assert len(_values(broker.cluster(), {ORDERS: 0})) == 7
    assert messages[0].offset() == 5


def test_reads_are_watched(broker: MockBroker) -> None:
    """Each batch is counted before its reader has it; afterwards nothing is counted."""
    broker.write("orders", _numbers(0, 25_000))
    counts: list[int] = []
    with watched_reads(counts.append):
        batches = [len(batch) for batch in drain(broker.cluster(), ALL)]
    assert counts == batches
    assert sum(counts) == 25_000
    assert len(_values(broker.cluster())) == 25_000
    assert sum(counts) == 25_000


def test_an_empty_topic_yields_nothing(broker: MockBroker) -> None:
    """A topic without records is read at once."""
    broker.create("orders")
    assert _values(broker.cluster()) == []


def test_a_missing_topic_is_named(broker: MockBroker) -> None:
    """A missing topic is an error, and the request does not create it."""
    with pytest.raises(TopicNotFoundError, match=r"^source .*: orders\[0\]: does not exist"):
        _values(broker.cluster())
    assert broker.cluster().topic_names() == frozenset()


def test_a_start_beyond_the_end_is_refused(broker: MockBroker) -> None:
    """A topic that ends before the start was truncated or recreated: the error says both."""
    broker.write("orders", _numbers(0, 5))
    with pytest.raises(PositionError, match="its end offset 5 is below 6") as raised:
        _values(broker.cluster(), {ORDERS: 6})
    subject = {"cluster": "source", "topic": "orders", "partition": 0, "position": 6}
    assert raised.value.fields == subject


def test_a_start_that_was_deleted_begins_at_the_first_record(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller chooses: the rest is read, or a deleted start is an error."""
    broker.write("orders", _numbers(0, 5))
    _with_end(monkeypatch, 5, low=3)
    assert _values(broker.cluster(), {ORDERS: 0}) == [b"3", b"4"]
    assert _values(broker.cluster(), {ORDERS: 3}, refuse_deleted=True) == [b"3", b"4"]
    with pytest.raises(PositionError, match="its first offset 3 is above 2"):
        _values(broker.cluster(), {ORDERS: 2}, refuse_deleted=True)


def test_a_broker_that_dies_during_a_read_is_reported(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no record comes any more, the read fails after the cluster's timeout."""
    broker.write("orders", _numbers(0, 5))
    _after_watermarks(monkeypatch, broker.stop)
    with pytest.raises(ClusterUnreachableError, match=r"^source .* tried for \d+\.\d s"):
        _values(broker.cluster(timeout=0.5), {ORDERS: 0})
