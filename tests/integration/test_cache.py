"""The index in memory, over a syncs topic that the test creates and deletes."""

from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.api.cache import SyncCache, read_on
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Naming,
    OffsetSync,
    SyncsLocation,
    TopicPartition,
    encode_offset_sync,
)
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until


class SyncsTopic:
    """An offset-syncs topic that only the test writes to."""

    def __init__(self, stack: Stack) -> None:
        servers = self._servers = stack.target
        self.pair = ClusterPair(
            source=KafkaCluster(name="source", config={"bootstrap.servers": stack.source}),
            target=KafkaCluster(name="target", config={"bootstrap.servers": servers}),
            naming=Naming(source_alias=f"c{uuid4().hex[:8]}", target_alias="b"),
            syncs_location=SyncsLocation.TARGET,
        )
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._producer = Producer({"bootstrap.servers": servers})
        self.cache = SyncCache(partial(read_on, self.pair))

    @property
    def name(self) -> str:
        return self.pair.syncs_topic

    def create(self) -> None:
        create_topic(self._servers, self.name)
        wait_until(lambda: self.exists, "the topic")

    def delete(self) -> None:
        self._admin.delete_topics([self.name])[self.name].result(timeout=30)
        wait_until(lambda: not self.exists, "the topic to go")

    @property
    def exists(self) -> bool:
        return self.name in self.pair.target.topics([self.name])

    def write(self, *upstreams: int) -> None:
        for upstream in upstreams:
            sync = OffsetSync(topic="orders", partition=0, upstream=upstream, downstream=upstream)
            key, value = encode_offset_sync(sync)
            self._producer.produce(self.name, value, key, partition=0)
        assert self._producer.flush(30) == 0

    def cut(self, offset: int) -> None:
        until = KafkaTopicPartition(self.name, 0, offset)
        self._admin.delete_records([until])[until].result()

    def error(self) -> Exception | None:
        """Return the error of the last refresh."""
        return self.cache.state.error

    def cached(self) -> list[int]:
        """Return the upstream offsets of the syncs in the cache."""
        assert self.cache.state.syncs is not None
        return [*self.cache.state.syncs.index.partitions[TopicPartition("orders", 0)].upstream]


@pytest.fixture
def topic(stack: Stack) -> Iterator[SyncsTopic]:
    made = SyncsTopic(stack)
    made.create()
    yield made
    if made.exists:
        made.delete()


def test_a_recreated_topic_is_read_from_its_beginning(topic: SyncsTopic) -> None:
    """The topic id reveals a recreated topic, even if it is longer than the last read."""
    topic.write(0, 10, 20)
    topic.cache.refresh()
    topic.write(30)
    topic.cache.refresh()
    assert topic.cached() == [0, 10, 20, 30]
    topic.delete()
    topic.create()
    topic.write(5, 15, 25, 35, 45)
    topic.cache.refresh()
    assert topic.cached() == [5, 15, 25, 35, 45]


def test_a_deleted_topic_leaves_the_last_index(topic: SyncsTopic) -> None:
    """The last index stays, marked stale, until the topic exists again."""
    topic.write(0, 10)
    topic.cache.refresh()
    topic.delete()
    with pytest.raises(SyncsTopicError, match="does not exist"):
        topic.cache.refresh()
    assert topic.error() is not None
    assert topic.cached() == [0, 10]
    topic.create()
    topic.write(1)
    topic.cache.refresh()
    assert topic.error() is None
    assert topic.cached() == [1]


def test_syncs_that_were_read_are_kept(topic: SyncsTopic) -> None:
    """Syncs deleted after a read stay; if unread ones are deleted, the topic is read again."""
    topic.write(0, 10, 20)
    topic.cache.refresh()
    topic.cut(3)
    topic.write(30)
    topic.cache.refresh()
    assert topic.cached() == [0, 10, 20, 30]
    topic.write(40, 50)
    topic.cut(5)
    topic.cache.refresh()
    assert topic.cached() == [50]
