"""The stack itself: what the other integration tests and the demo build on."""

from uuid import uuid4

import pytest
from confluent_kafka import Producer

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.wire import decode_offset_sync
from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.mirrors import wait_ended

SYNCS = "mm2-offset-syncs.source.internal"
HEARTBEATS = "source.heartbeats"


@pytest.fixture
def topic(stack: Stack) -> str:
    """A new topic of one partition on the source."""
    name = f"orders-{uuid4().hex[:8]}"
    create_topic(stack.source, name)
    return name


def _transaction(stack: Stack, topic: str, values: list[str], *, commit: bool = True) -> None:
    producer = Producer({"bootstrap.servers": stack.source, "transactional.id": str(uuid4())})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value)
    producer.flush(30)
    (producer.commit_transaction if commit else producer.abort_transaction)(30)
    wait_ended(_cluster(stack.source), topic)


def _cluster(servers: str) -> KafkaCluster:
    return KafkaCluster(name="cluster", config={"bootstrap.servers": servers})


def _read(servers: str, topic: str) -> list[Record]:
    try:
        batches = drain(_cluster(servers), {TopicPartition(topic, 0): 0})
        return [record for batch in batches for record in batch]
    except TopicNotFoundError:
        return []  # MM2 has not made it yet.


def _values(servers: str, topic: str) -> list[str]:
    return [(record.value() or b"").decode() for record in _read(servers, topic)]


def test_committed_records_arrive_without_the_aborted_ones(stack: Stack, topic: str) -> None:
    """MM2 copies committed records, in order, to offsets that differ from the source's."""
    _transaction(stack, topic, ["a", "b"])
    _transaction(stack, topic, ["aborted"] * 3, commit=False)
    _transaction(stack, topic, ["c"])

    wait_until(lambda: "c" in _values(stack.target, topic), f"{topic} on the target")

    assert _values(stack.target, topic) == ["a", "b", "c"]
    assert _read(stack.source, topic)[-1].offset() == 7  # a b marker, 3 aborted, marker, c
    assert _read(stack.target, topic)[-1].offset() == 2


def test_offset_syncs_are_on_the_target(stack: Stack, topic: str) -> None:
    """The syncs are on the target, under the source's alias, and so outlive the source."""
    _transaction(stack, topic, ["a"])

    def synced() -> set[tuple[int, int]]:
        syncs = [decode_offset_sync(r.key(), r.value()) for r in _read(stack.target, SYNCS)]
        return {(sync.upstream, sync.downstream) for sync in syncs if sync.topic == topic}

    wait_until(lambda: (0, 0) in synced(), f"a sync of {topic}")
    assert _read(stack.source, SYNCS) == []


def test_heartbeats_are_copied(stack: Stack) -> None:
    """The source's heartbeats reach the target, where the age of the last one is the lag."""
    before = len(_read(stack.target, HEARTBEATS))

    wait_until(lambda: len(_read(stack.target, HEARTBEATS)) > before, "a heartbeat")


def test_a_killed_worker_continues(stack: Stack, topic: str) -> None:
    """After a SIGKILL Connect restarts MM2 by itself, and no record is missing."""
    _transaction(stack, topic, ["before"])
    wait_until(lambda: "before" in _values(stack.target, topic), f"{topic} on the target")

    stack.kill_connect()
    _transaction(stack, topic, ["while down"])
    stack.start_connect()

    wait_until(lambda: "while down" in _values(stack.target, topic), "what was written meanwhile")
    assert set(_values(stack.target, topic)) == {"before", "while down"}
