"""Reading stretches of partitions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.ranges import (
    OffsetRange,
    RangeRecord,
    find_empty,
    read_ranges,
)
from tests.support.mock_broker import MockBroker

ORDERS, RETURNS = TopicPartition("orders", 0), TopicPartition("returns", 1)
NOTHING = OffsetRange(5, 4)
ENOUGH = 2**20


@pytest.fixture
def cluster(broker: MockBroker) -> KafkaCluster:
    """Return a cluster with 20 different records in orders[0] and returns[1]."""
    for topic, partition in (ORDERS, RETURNS):
        broker.write(topic, [(b"key", b"%d" % number) for number in range(20)], partition)
    return broker.cluster()


def test_a_range_has_a_size() -> None:
    """Both ends belong to the range; a range that ends before it begins is empty."""
    assert OffsetRange(3, 3).size == 1
    assert NOTHING.size == 0
    assert OffsetRange(9, -1).size == 0


def test_ranges_of_several_topics_are_read(cluster: KafkaCluster) -> None:
    """Each range returns its records, in order; offsets beyond the end return none."""
    records_of = read_ranges(
        cluster,
        {
            "some": (ORDERS, OffsetRange(3, 5)),
            "last": (RETURNS, OffsetRange(18, 30)),
            "beyond": (TopicPartition("returns", 2), OffsetRange(0, 9)),
            "no offsets": (TopicPartition("orders", 1), NOTHING),
        },
        max_bytes=ENOUGH,
    )
    assert _offsets(records_of) == {
        "some": [3, 4, 5],
        "last": [18, 19],
        "beyond": [],
        "no offsets": [],
    }


def test_ranges_of_one_partition_may_overlap(cluster: KafkaCluster) -> None:
    """Each has its records; what several have is read once, as the limit of bytes shows."""
    ranges = {
        (first, last): (ORDERS, OffsetRange(first, last))
        for first, last in ((2, 6), (2, 6), (4, 9), (4, 4), (10, 11), (14, 13), (17, 30))
    }
    expected = {each: [*range(each[0], min(each[1], 19) + 1)] for each in ranges}
    # Offsets 2 to 11 and 17 to 19 are read: 13 records with keys of 3 bytes.
    size = 13 * len(b"key") + sum(len(b"%d" % each) for each in (*range(2, 12), 17, 18, 19))
    assert _offsets(read_ranges(cluster, ranges, max_bytes=size)) == expected
    assert (17, 30) not in read_ranges(cluster, ranges, max_bytes=0)


def test_one_consumer_reads_many_ranges_of_a_partition(broker: MockBroker) -> None:
    """They lie apart, so it goes from one to the next; none lacks a record or has another's."""
    ends = {0: 2000, 1: 735}
    for partition, end in ends.items():
        broker.write("orders", [(b"key", b"%d" % number) for number in range(end)], partition)
    ranges = {
        (partition, first): (TopicPartition("orders", partition), OffsetRange(first, first + size))
        for partition, end in ends.items()
        for size, first in enumerate(range(0, end, 200))
    }
    assert _offsets(read_ranges(broker.cluster(), ranges, max_bytes=ENOUGH)) == {
        (partition, first): [*range(first, min(offsets.last + 1, ends[partition]))]
        for (partition, first), (_, offsets) in ranges.items()
    }


def _offsets(read: Mapping[Any, Sequence[RangeRecord]]) -> dict[Any, list[int]]:
    return {key: [record.offset for record in records] for key, records in read.items()}


def test_no_more_than_max_bytes_are_read(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small range is read, the large one left out whole; with 0 bytes, both are left out."""
    monkeypatch.setattr("airflow_mm2_offsets.kafka.ranges._AT_A_TIME", 1)
    ranges = {ORDERS: (ORDERS, OffsetRange(0, 19)), RETURNS: (RETURNS, OffsetRange(0, 1))}
    each = len(b"key0")
    assert set(read_ranges(cluster, ranges, max_bytes=2 * each)) == {RETURNS}
    assert set(read_ranges(cluster, ranges, max_bytes=ENOUGH)) == set(ranges)
    assert read_ranges(cluster, ranges, max_bytes=0) == {}


def test_empty_ranges_need_no_request() -> None:
    """For empty ranges even an unreachable cluster is no error."""
    cluster = KafkaCluster(name="source", config={"bootstrap.servers": "127.0.0.1:1"})
    assert read_ranges(cluster, {1: (ORDERS, NOTHING)}, max_bytes=ENOUGH) == {1: []}
    assert read_ranges(cluster, {}, max_bytes=ENOUGH) == {}
    assert find_empty(cluster, {1: (ORDERS, NOTHING)}) == {1}


def test_ranges_without_records_are_found(cluster: KafkaCluster) -> None:
    """A range without a record is empty, whatever records follow it."""
    empty = find_empty(
        cluster,
        {
            "last": (ORDERS, OffsetRange(19, 19)),
            "another": (TopicPartition("orders", 1), OffsetRange(0, 100)),
            "no offsets": (TopicPartition("returns", 0), NOTHING),
            "all": (RETURNS, OffsetRange(0, 19)),
        },
    )
    assert empty == {"another", "no offsets"}


def test_overlapping_ranges_without_records_are_found(cluster: KafkaCluster) -> None:
    """Ranges that all begin, or all end, at one offset, and some between."""
    ranges = {
        (first, last): (ORDERS, OffsetRange(first, last))
        for first in range(15, 21)
        for last in range(14, 30)
    }
    without = {(first, last) for first, last in ranges if first > min(last, 19)}
    assert find_empty(cluster, ranges) == without


def test_a_topic_that_does_not_exist_is_named(cluster: KafkaCluster) -> None:
    """A range of a missing topic is an error, not an empty range."""
    with pytest.raises(TopicNotFoundError, match=r"nowhere\[0\]: does not exist"):
        find_empty(cluster, {1: (TopicPartition("nowhere", 0), OffsetRange(0, 5))})


def _variants() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "the value", {"value": b"other"}
    yield "no value", {"value": None}
    yield "the key", {"key": b"other"}
    yield "no key", {"key": None}
    yield "an empty key", {"key": b""}
    yield "the timestamp", {"timestamp": 1_800_000_000_001}
    yield "no header", {"headers": []}
    yield "a header's value", {"headers": [("a", b"2")]}
    yield "a header without value", {"headers": [("a", None)]}
    yield "a header's name", {"headers": [("b", b"1")]}
    yield "a header more", {"headers": [("a", b"1"), ("a", b"1")]}
    yield "where key and value part", {"key": b"keyv", "value": b"alue"}


def test_content_is_all_that_a_record_holds(broker: MockBroker) -> None:
    """Records are equal only if key, value, timestamp and headers are equal."""
    same: dict[str, Any] = {
        "key": b"key",
        "value": b"value",
        "timestamp": 1_800_000_000_000,
        "headers": [("a", b"1")],
    }
    producer = Producer({"bootstrap.servers": broker.servers})
    for change in ({}, {}, *(change for _, change in _variants())):
        producer.produce("orders", partition=0, **(same | change))
    assert producer.flush(10) == 0
    ranges = {1: (ORDERS, OffsetRange(0, 99))}
    records = read_ranges(broker.cluster(), ranges, max_bytes=ENOUGH)[1]
    first, again, *others = [(each.digest, each.milliseconds) for each in records]
    assert first == again
    assert len({first, *others}) == 1 + len(list(_variants()))
