"""Reading a real Kafka Connect worker that hosts MirrorMaker 2."""

from uuid import uuid4

import pytest
from confluent_kafka import Producer

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.errors import ConnectError
from stack.mirror import SOURCE_CONNECTOR, Stack
from stack.topics import create_topic
from stack.waiting import wait_until


@pytest.fixture
def connect(stack: Stack) -> ConnectClient:
    return ConnectClient(url=stack.connect_url)


def test_a_worker_names_its_version(connect: ConnectClient) -> None:
    """The version is Kafka's."""
    assert connect.check().startswith("4.")


def test_the_mirror_is_found_and_runs(connect: ConnectClient) -> None:
    """The connector is found by its aliases; it and its tasks run."""
    (name,) = connect.find_mirror_sources("source", "target")
    assert name == SOURCE_CONNECTOR
    assert name in connect.mirror_sources()
    status = connect.status(name)
    assert status.state == "RUNNING"
    assert {task.state for task in status.tasks} == {"RUNNING"}


def test_a_connector_that_does_not_exist_is_named(connect: ConnectClient) -> None:
    """Connect's own message comes through, with the connector and the status."""
    with pytest.raises(ConnectError, match=r"connector nope: HTTP 404: .*nope"):
        connect.status("nope")
    with pytest.raises(ConnectError, match="connector nope: HTTP 404"):
        connect.offsets("nope")


def test_the_offset_is_that_of_the_last_copied_record(stack: Stack, connect: ConnectClient) -> None:
    """After ten records MM2's offset becomes 9: the last one's, not the next one's."""
    topic = f"orders-{uuid4().hex[:8]}"
    create_topic(stack.source, topic)
    producer = Producer({"bootstrap.servers": stack.source})
    for number in range(10):
        producer.produce(topic, value=b"%d" % number)
    assert producer.flush(30) == 0

    def copied() -> int | None:
        return connect.offsets(SOURCE_CONNECTOR).get(("source", topic, 0))

    wait_until(lambda: copied() is not None, f"an offset of {topic}")
    wait_until(lambda: copied() == 9, f"the last offset of {topic}")
    assert {topic for _, topic, _ in connect.offsets(SOURCE_CONNECTOR)}.isdisjoint({"heartbeats"})
