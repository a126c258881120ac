"""Reading the offset-syncs topic."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_mm2_offsets.core import OffsetSync, TopicPartition, Watermarks, encode_offset_sync
from airflow_mm2_offsets.core.epochs import History
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka import sync_log
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record
from airflow_mm2_offsets.kafka.drain import drain as real_drain
from airflow_mm2_offsets.kafka.sync_log import MAX_SKIPPED
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.kafka.throttle import Throttle
from tests.support.mock_broker import MockBroker

TOPIC = "mm2-offset-syncs.target.internal"
ORDERS = TopicPartition("orders", 0)
KEY, VALUE = encode_offset_sync(OffsetSync(topic="orders", partition=1, upstream=7, downstream=3))


def _syncs(upstreams: range, topic: str = "orders") -> list[tuple[bytes, bytes]]:
    return [
        encode_offset_sync(OffsetSync(topic=topic, partition=0, upstream=u, downstream=u - 5))
        for u in upstreams
    ]


def test_syncs_are_indexed(broker: MockBroker) -> None:
    """The index holds every sync of every partition, and next_offset follows the last."""
    broker.write(TOPIC, [*_syncs(range(10, 1000, 10)), *_syncs(range(5, 8), "returns")])
    read = read_syncs(broker.cluster(), TOPIC)
    assert set(read.index) == {("orders", 0), ("returns", 0)}
    assert len(read.index) == 102
    assert (read.records_read, read.skipped_count, read.next_offset) == (102, 0, 102)
    assert read.index.partitions[TopicPartition("orders", 0)].segments.upstream_at(495) == 500


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY[:-1], VALUE),
        (KEY, VALUE[:-1]),
        (KEY, VALUE + b"\0"),
        (KEY, None),
        (None, VALUE),
        (b"", b""),
        (b'{"foreign":1}', b"not a sync at all"),
        (KEY, (-1).to_bytes(8, signed=True) + bytes(8)),
        (b"\x00\x02\xff\xff\x00\x00\x00\x00", VALUE),
    ],
)
def test_an_invalid_record_is_skipped_and_reported(
    broker: MockBroker, key: bytes | None, value: bytes | None
) -> None:
    """Truncated, foreign and negative records and tombstones are reported; the others count."""
    broker.write(TOPIC, [*_syncs(range(10, 12)), (key, value), *_syncs(range(12, 14))])
    read = read_syncs(broker.cluster(), TOPIC)
    assert len(read.index) == 4
    assert (read.records_read, read.skipped_count, read.next_offset) == (5, 1, 5)
    assert read.skipped[0].offset == 2
    assert read.skipped[0].reason


def test_the_list_of_skipped_records_is_capped(broker: MockBroker) -> None:
    """Of many invalid records all are counted, and the first are listed."""
    broker.write(TOPIC, [*_syncs(range(10, 11)), *[(b"x", b"y")] * 100])
    read = read_syncs(broker.cluster(), TOPIC)
    assert read.skipped_count == 100
    assert len(read.skipped) == MAX_SKIPPED


def test_a_later_read_continues_the_index(broker: MockBroker) -> None:
    """A read from next_offset gets only new syncs, and extends the given index."""
    broker.write(TOPIC, _syncs(range(10, 20)))
    first = read_syncs(broker.cluster(), TOPIC)
    broker.write(TOPIC, [*_syncs(range(20, 23)), *_syncs(range(5, 6), "returns")])
    later = read_syncs(broker.cluster(), TOPIC, previous=first)
    assert (later.records_read, later.next_offset) == (14, 14)
    assert len(first.index) == 10
    assert len(later.index) == 14


def test_a_later_read_may_find_nothing_new(broker: MockBroker) -> None:
    """A later read without new syncs succeeds."""
    broker.write(TOPIC, _syncs(range(10, 20)))
    first = read_syncs(broker.cluster(), TOPIC)
    later = read_syncs(broker.cluster(), TOPIC, previous=first)
    assert (later.records_read, len(later.index), later.next_offset) == (10, 10, 10)


def test_a_topic_that_shrank_is_not_continued(broker: MockBroker) -> None:
    """A topic that ends before the start was recreated: continuing would miss its syncs."""
    broker.write(TOPIC, _syncs(range(10, 12)))
    longer = replace(read_syncs(broker.cluster(), TOPIC), next_offset=100)
    with pytest.raises(SyncsTopicError, match="its end offset 2 is below 100"):
        read_syncs(broker.cluster(), TOPIC, previous=longer)


def test_a_truncated_topic_is_not_continued(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted syncs after the start were never read: continuing would miss them."""
    broker.write(TOPIC, _syncs(range(10, 20)))
    first = read_syncs(broker.cluster(), TOPIC)
    broker.write(TOPIC, _syncs(range(20, 23)))
    by_partition = {(TOPIC, 0): Watermarks(low=11, high=13)}
    monkeypatch.setattr(KafkaCluster, "watermarks", lambda *_, **__: by_partition)
    with pytest.raises(SyncsTopicError, match="its first offset 11 is above 10"):
        read_syncs(broker.cluster(), TOPIC, previous=first)
    assert len(read_syncs(broker.cluster(), TOPIC).index) == 2


def _assert_likely_causes(message: str) -> None:
    for cause in ("offset-syncs.topic.location", "alias", "emit.offset-syncs.enabled", "started"):
        assert cause in message


def test_a_missing_topic_comes_with_its_likely_causes(broker: MockBroker) -> None:
    """The error names cluster, topic, the causes, and the topics that look like the right one."""
    broker.create("mm2-offset-syncs.backup.internal")
    broker.create("orders")
    with pytest.raises(SyncsTopicError) as caught:
        read_syncs(broker.cluster(), TOPIC)
    message = str(caught.value)
    assert message.startswith(f"source: {TOPIC}: the offset-syncs topic does not exist; ")
    assert "the cluster has mm2-offset-syncs.backup.internal. " in message
    _assert_likely_causes(message)


def test_an_empty_topic_comes_with_its_likely_causes(broker: MockBroker) -> None:
    """A topic without a record is an error with the likely causes."""
    broker.create(TOPIC)
    with pytest.raises(SyncsTopicError, match="is empty; the cluster has no other topic") as caught:
        read_syncs(broker.cluster(), TOPIC)
    _assert_likely_causes(str(caught.value))


def test_a_topic_without_a_valid_sync_is_an_error(broker: MockBroker) -> None:
    """If no record is a sync, the error shows the first record."""
    broker.write(TOPIC, [(b"x", b"y")] * 3)
    with pytest.raises(SyncsTopicError, match=r"holds 3 records but no .* at offset 0: the value"):
        read_syncs(broker.cluster(), TOPIC)


def test_a_throttled_read_gets_the_same(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A throttled read takes slices smaller than a partition, and pauses before each."""
    rests: list[None] = []
    monkeypatch.setattr(Throttle, "pause", lambda _self: rests.append(None))
    monkeypatch.setattr(sync_log, "_SLICE", 20 * len(VALUE))
    broker.write(TOPIC, _syncs(range(10, 100)))
    read = read_syncs(replace(broker.cluster(), throttle_ratio=1.0), TOPIC)
    assert [*read.index.partitions[ORDERS].upstream] == [*range(10, 100)]
    assert len(rests) >= 1 + 5


def _left(monkeypatch: pytest.MonkeyPatch, gone: set[int]) -> None:
    """Let compaction have removed the records at some offsets."""

    def drain(*args: Any, **options: Any) -> Iterator[list[Record]]:
        for batch in real_drain(*args, **options):
            if left := [record for record in batch if record.offset() not in gone]:
                yield left

    monkeypatch.setattr(sync_log, "drain", drain)


@pytest.mark.parametrize(
    ("gone", "complete"),
    [
        (set(), {("orders", 0), ("returns", 0)}),
        ({7}, {("orders", 0), ("returns", 0)}),
        ({4}, {("orders", 0)}),
        ({5}, {("orders", 0)}),
        ({0}, set()),
        ({0, 1, 2}, set()),
    ],
)
def test_a_history_is_complete_if_no_sync_before_it_is_missing(
    broker: MockBroker,
    monkeypatch: pytest.MonkeyPatch,
    gone: set[int],
    complete: set[tuple[str, int]],
) -> None:
    """The history of a partition is complete if nothing is missing before its first sync."""
    broker.write(TOPIC, [*_syncs(range(10, 15)), *_syncs(range(5, 8), "returns")])
    _left(monkeypatch, gone)
    read = read_syncs(broker.cluster(), TOPIC)
    partitions = read.index.partitions.items()
    assert {
        partition for partition, syncs in partitions if syncs.beginning.history is History.COMPLETE
    } == complete
