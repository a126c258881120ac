"""Reading real clusters, and the syncs that a real MirrorMaker 2 writes."""

import itertools
from collections.abc import Callable
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from airflow_mm2_offsets.core import Status, Watermarks
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.kafka.syncs import SyncsRead, read_syncs
from stack.mirror import Stack
from stack.waiting import wait_until

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
def create(admin: AdminClient) -> Callable[[int], str]:
    """Make a topic on the source and return its name."""

    def make(partitions: int) -> str:
        name = f"orders-{uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=30)
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


def test_a_cluster_says_who_it_is(stack: Stack, source: KafkaCluster) -> None:
    """The cluster has an id, and brokers that are reached under what they advertise."""
    info = source.describe()
    assert info.cluster_id
    assert info.brokers == (stack.source,)


def test_topics_have_partitions_and_an_id(
    source: KafkaCluster, create: Callable[[int], str]
) -> None:
    """What exists is described; what does not is absent, and not created by asking."""
    topic, missing = create(3), f"orders-{uuid4().hex}"
    found = source.topics([topic, missing])
    assert list(found) == [topic]
    assert found[topic].partitions == 3
    assert found[topic].topic_id
    assert topic in source.topic_names()
    assert missing not in source.topic_names()


def test_a_topic_created_again_has_another_id(source: KafkaCluster, admin: AdminClient) -> None:
    """The id tells a topic from a later one with its name."""
    name = f"again-{uuid4().hex[:8]}"

    def create_once() -> str | None:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=30)
        wait_until(lambda: name in source.topics([name]), name)
        return source.topics([name])[name].topic_id

    first = create_once()
    admin.delete_topics([name])[name].result(timeout=30)
    wait_until(lambda: name not in source.topics([name]), f"{name} to go")
    assert create_once() != first


def test_watermarks_follow_what_is_deleted(
    stack: Stack, source: KafkaCluster, admin: AdminClient, create: Callable[[int], str]
) -> None:
    """The first offset rises with deletion; the end counts aborted records and markers."""
    topic = create(2)
    _write(stack, topic, 10)
    _write_aborted(stack, topic, 3)
    place = TopicPartition(topic, 0, 4)
    admin.delete_records([place])[place].result(timeout=30)
    # The broker writes the marker soon after it has said that the transaction is aborted.
    wait_until(
        lambda: (
            source.watermarks([(topic, 0), (topic, 1)])
            == {
                (topic, 0): Watermarks(low=4, high=14),
                (topic, 1): Watermarks(low=0, high=0),
            }
        ),
        f"the marker of {topic}",
    )


def test_a_reading_ends_behind_aborted_records(
    stack: Stack, source: KafkaCluster, create: Callable[[int], str]
) -> None:
    """Markers and aborted records after the last record do not keep a reader waiting."""
    topic = create(2)
    _write(stack, topic, 5)
    _write_aborted(stack, topic, 7)
    batches = drain(source, {(topic, 0): 0, (topic, 1): 0}, isolation="read_committed")
    assert [record.offset() for record in itertools.chain.from_iterable(batches)] == [*range(5)]


def test_the_syncs_of_mirrormaker_translate(
    stack: Stack, source: KafkaCluster, target: KafkaCluster, create: Callable[[int], str]
) -> None:
    """What MM2 wrote is read without a skipped record, answers, and is continued later."""
    topic = create(1)
    _write_aborted(stack, topic, 6)
    _write(stack, topic, 500)
    wait_until(lambda: _synced(target, topic), f"a sync of {topic}")
    first = read_syncs(target, SYNCS)
    assert first.skipped_count == 0
    # Six aborted records and their marker come before the first record that is copied.
    assert first.index.translate(topic, 0, 7).target == 0
    assert first.index.translate(topic, 0, 7).status is Status.EXACT

    other = create(1)
    _write(stack, other, 1)

    def later() -> SyncsRead:
        return read_syncs(target, SYNCS, start=first.next_offset, known=first.index)

    wait_until(lambda: (other, 0) in set(later().index), f"a sync of {other}")
    assert set(later().index) > set(first.index)

    with pytest.raises(SyncsTopicError, match=r"source: .* does not exist; .*topic\.location"):
        read_syncs(source, SYNCS)


def _synced(target: KafkaCluster, topic: str) -> bool:
    try:
        return (topic, 0) in set(read_syncs(target, SYNCS).index)
    except SyncsTopicError:
        return False  # MM2 has not written any yet.
