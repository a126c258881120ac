"""Reading real clusters, and the syncs that a real MirrorMaker 2 writes."""

import itertools
from collections.abc import Callable, Iterable
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core import (
    OffsetSync,
    Status,
    TopicPartition,
    Watermarks,
    encode_offset_sync,
)
from airflow_mm2_offsets.errors import PositionError, SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot, read_syncs
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.mirrors import wait_ended

SYNCS = "mm2-offset-syncs.source.internal"


@pytest.fixture
def source(stack: Stack) -> KafkaCluster:
    return KafkaCluster(name="source", config={"bootstrap.servers": stack.source})


@pytest.fixture
def target(stack: Stack) -> KafkaCluster:
    return KafkaCluster(name="target", config={"bootstrap.servers": stack.target})


@pytest.fixture
def admin(stack: Stack) -> AdminClient:
    return AdminClient({"bootstrap.servers": stack.source})


@pytest.fixture
def create(stack: Stack) -> Callable[[int], str]:
    """Make a topic on the source and return its name."""

    def make(partitions: int) -> str:
        name = f"orders-{uuid4().hex[:8]}"
        create_topic(stack.source, name, partitions)
        return name

    return make


def _write(stack: Stack, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": stack.source})
    for number in range(count):
        producer.produce(topic, value=b"%d" % number, partition=0)
    assert producer.flush(30) == 0


def _write_aborted(stack: Stack, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": stack.source, "transactional.id": str(uuid4())})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, value=b"aborted", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    wait_ended(KafkaCluster(name="source", config={"bootstrap.servers": stack.source}), topic)


def test_a_cluster_has_an_id_and_brokers(stack: Stack, source: KafkaCluster) -> None:
    """The cluster has an id, and the brokers' advertised addresses."""
    info = source.describe()
    assert info.cluster_id
    assert info.brokers == (stack.source,)


def test_topics_have_partitions_and_an_id(
    source: KafkaCluster, create: Callable[[int], str]
) -> None:
    """Existing topics are described; a missing one is absent, and asking does not create it."""
    topic, missing = create(3), f"orders-{uuid4().hex}"
    found = source.topics([topic, missing])
    assert list(found) == [topic]
    assert found[topic].partitions == 3
    assert found[topic].topic_id
    assert topic in source.topic_names()
    assert missing not in source.topic_names()


def test_a_recreated_topic_has_another_id(
    stack: Stack, source: KafkaCluster, admin: AdminClient
) -> None:
    """A recreated topic has another id under the same name."""
    name = f"again-{uuid4().hex[:8]}"

    def create_once() -> str | None:
        create_topic(stack.source, name)
        wait_until(lambda: name in source.topics([name]), name)
        return source.topics([name])[name].topic_id

    first = create_once()
    admin.delete_topics([name])[name].result(timeout=30)
    wait_until(lambda: name not in source.topics([name]), f"{name} to go")
    assert create_once() != first


def test_watermarks_follow_deletion(
    stack: Stack, source: KafkaCluster, admin: AdminClient, create: Callable[[int], str]
) -> None:
    """The low watermark rises with deletion; the high one counts aborted records and markers."""
    topic = create(2)
    _write(stack, topic, 10)
    _write_aborted(stack, topic, 3)
    until = KafkaTopicPartition(topic, 0, 4)
    admin.delete_records([until])[until].result(timeout=30)
    watermarks = {
        TopicPartition(topic, 0): Watermarks(low=4, high=14),
        TopicPartition(topic, 1): Watermarks(low=0, high=0),
    }
    assert source.watermarks(watermarks) == watermarks


def test_a_read_ends_behind_aborted_records(
    stack: Stack, source: KafkaCluster, create: Callable[[int], str]
) -> None:
    """Markers and aborted records after the last record do not keep a reader waiting."""
    topic = create(2)
    _write(stack, topic, 5)
    _write_aborted(stack, topic, 7)
    starts = {TopicPartition(topic, number): 0 for number in range(2)}
    batches = drain(source, starts, isolation="read_committed")
    assert [record.offset() for record in itertools.chain.from_iterable(batches)] == [*range(5)]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("deleted", [40, 100])
def test_records_deleted_during_a_read_are_an_error(
    stack: Stack,
    source: KafkaCluster,
    admin: AdminClient,
    create: Callable[[int], str],
    *,
    monkeypatch: pytest.MonkeyPatch,
    isolation: str,
    deleted: int,
) -> None:
    """Records deleted between the watermarks and the read are an error, not an end."""
    topic = create(1)
    _write(stack, topic, 100)
    watermarks = KafkaCluster.watermarks

    def look_and_delete(
        cluster: KafkaCluster, partitions: Iterable[TopicPartition], **options: str
    ) -> dict[TopicPartition, Watermarks]:
        seen = watermarks(cluster, partitions, **options)
        until = KafkaTopicPartition(topic, 0, deleted)
        admin.delete_records([until])[until].result(timeout=30)
        return seen

    monkeypatch.setattr(KafkaCluster, "watermarks", look_and_delete)
    with pytest.raises(PositionError, match=rf"{topic}\[0\]: offset 0 is gone, and was "):
        list(drain(source, {TopicPartition(topic, 0): 0}, isolation=isolation))


def test_a_read_committed_read_stops_at_the_last_stable_offset(
    stack: Stack, source: KafkaCluster, create: Callable[[int], str]
) -> None:
    """The read stops at the last stable offset, and does not wait for the transaction."""
    topic = create(1)
    _write(stack, topic, 5)
    producer = Producer({"bootstrap.servers": stack.source, "transactional.id": str(uuid4())})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value=b"open", partition=0)
    producer.flush(30)
    _write(stack, topic, 5)
    for start, count in ((0, 5), (5, 0), (8, 0)):
        batches = drain(source, {TopicPartition(topic, 0): start}, isolation="read_committed")
        assert len(list(itertools.chain.from_iterable(batches))) == count
    for isolation, end in (("read_committed", 5), ("read_uncommitted", 11)):
        watermarks = {TopicPartition(topic, 0): Watermarks(low=0, high=end)}
        assert source.watermarks(watermarks, isolation=isolation) == watermarks
    producer.abort_transaction(30)


def _write_syncs(stack: Stack, topic: str, upstreams: range) -> None:
    producer = Producer({"bootstrap.servers": stack.source, "enable.idempotence": True})
    for each in upstreams:
        sync = OffsetSync(topic="orders", partition=0, upstream=each, downstream=each)
        key, value = encode_offset_sync(sync)
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(30) == 0


def test_a_later_read_continues_the_index(
    stack: Stack, source: KafkaCluster, create: Callable[[int], str]
) -> None:
    """A later read adds the new syncs to the index, and leaves the earlier index as it was."""
    topic = create(1)
    _write_syncs(stack, topic, range(10, 20))
    first = read_syncs(source, topic)
    same = read_syncs(source, topic, previous=first)
    assert (same.records_read, same.next_offset, len(same.index)) == (10, 10, 10)
    _write_syncs(stack, topic, range(20, 25))
    later = read_syncs(source, topic, previous=same)
    assert (later.records_read, later.next_offset, len(later.index)) == (15, 15, 15)
    assert (len(first.index), len(same.index)) == (10, 10)


def test_a_truncated_syncs_topic_is_not_continued(
    stack: Stack, source: KafkaCluster, admin: AdminClient, create: Callable[[int], str]
) -> None:
    """Syncs that were read may be deleted; if unread ones are, the read can't be continued."""
    topic = create(1)
    _write_syncs(stack, topic, range(10))
    first = read_syncs(source, topic)
    _write_syncs(stack, topic, range(10, 15))

    def read_on_after_deletion_before(offset: int) -> SyncsSnapshot:
        until = KafkaTopicPartition(topic, 0, offset)
        admin.delete_records([until])[until].result(timeout=30)
        return read_syncs(source, topic, previous=first)

    assert len(read_on_after_deletion_before(10).index) == 15
    with pytest.raises(SyncsTopicError, match=rf"{topic}\[0\]: its first offset 12 is above 10: "):
        read_on_after_deletion_before(12)
    assert len(read_syncs(source, topic).index) == 3


def test_a_recreated_syncs_topic_is_not_continued(
    stack: Stack, source: KafkaCluster, admin: AdminClient, create: Callable[[int], str]
) -> None:
    """A topic that ends before the start was recreated, and is read from its beginning."""
    topic = create(1)
    _write_syncs(stack, topic, range(10))
    first = read_syncs(source, topic)
    admin.delete_topics([topic])[topic].result(timeout=30)
    wait_until(lambda: topic not in source.topics([topic]), f"{topic} to go")
    create_topic(stack.source, topic)
    _write_syncs(stack, topic, range(3))
    with pytest.raises(SyncsTopicError, match=rf"{topic}\[0\]: its end offset 3 is below 10: "):
        read_syncs(source, topic, previous=first)
    assert len(read_syncs(source, topic).index) == 3


def test_the_syncs_of_mirrormaker_translate(
    stack: Stack, source: KafkaCluster, target: KafkaCluster, create: Callable[[int], str]
) -> None:
    """MirrorMaker 2's syncs are read without a skipped record, translate, and can be continued."""
    topic = create(1)
    _write_aborted(stack, topic, 6)
    # Of many records at once, MirrorMaker 2 may leave out the first sync. Of one it can't.
    _write(stack, topic, 1)
    wait_until(lambda: _synced(target, topic), f"a sync of {topic}")
    _write(stack, topic, 500)
    first = read_syncs(target, SYNCS)
    assert first.skipped_count == 0
    # Six aborted records and their marker come before the first record that is copied.
    assert first.index.translate(topic, 0, 7).target == 0
    assert first.index.translate(topic, 0, 7).status is Status.EXACT

    other = create(1)
    _write(stack, other, 1)

    def later() -> SyncsSnapshot:
        return read_syncs(target, SYNCS, previous=first)

    wait_until(lambda: (other, 0) in set(later().index), f"a sync of {other}")
    assert set(later().index) > set(first.index)

    with pytest.raises(SyncsTopicError, match=r"source: .* does not exist; .*topic\.location"):
        read_syncs(source, SYNCS)


def _synced(target: KafkaCluster, topic: str) -> bool:
    try:
        return (topic, 0) in set(read_syncs(target, SYNCS).index)
    except SyncsTopicError:
        return False  # MM2 has not written any yet.
