"""Real losses, which the proofs of a disaster rest on, and what comes back afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import httpx
import pytest
from confluent_kafka import Producer

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from benchmarks.broker import OneBroker
from demo.environment import TOPIC
from demo.producer import BATCH, PARTITIONS, NumberedProducer
from stack import jars
from stack.local import LocalStack
from stack.reverse import turn_round
from stack.s3 import BUCKET, PASSWORD, REGION, USER, S3Storage
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.soaks import LONGEST

pytestmark = pytest.mark.timeout(LONGEST)
BUILD = Path(__file__).parents[2] / "build"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OneBroker]:
    """A source cluster of the test's own, with the demo's topic."""
    with OneBroker(tmp_path / "kafka", jars.fetch(BUILD, progress=print).kafka) as made:
        create_topic(made.source, TOPIC, PARTITIONS)
        yield made


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[LocalStack]:
    """Two clusters of the test's own, whose mirror copies the demo's topic."""
    with LocalStack(tmp_path / "kafka", jars.fetch(BUILD, progress=print).kafka) as made:
        create_topic(made.source, TOPIC)
        made.create_mirror(TOPIC)
        yield made


def _read(servers: str, partitions: int, isolation: str = "read_committed") -> list[bytes]:
    cluster = KafkaCluster(name="cluster", config={"bootstrap.servers": servers})
    starts = {TopicPartition(TOPIC, number): 0 for number in range(partitions)}
    batches = drain(cluster, starts, isolation=isolation)
    return [record.value() or b"" for batch in batches for record in batch]


def _write(servers: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(30) == 0


def _committed(servers: str) -> set[int]:
    values = _read(servers, PARTITIONS)
    return {number for each in values if (number := json.loads(each)["number"]) >= 0}


def test_a_killed_broker_returns_with_all_that_was_committed(broker: OneBroker) -> None:
    """Killed in mid-stream and started again, it holds every number whose commit was confirmed.

    What its last transaction held may be there or not: the producer does not write it again.
    """
    producer = NumberedProducer(TOPIC)
    producer.start(broker.source)
    wait_until(lambda: producer.produced >= 5 * BATCH, "numbers")

    broker.stop_broker("source")
    confirmed = producer.produced
    producer.abandon()
    producer.wait_abandoned()
    broker.start_broker("source")
    producer.abort_open(broker.source)

    wait_until(lambda: _committed(broker.source) >= set(range(confirmed)), "what was confirmed")
    assert _committed(broker.source) <= set(range(confirmed + BATCH))
    assert producer.due == range(confirmed + BATCH, confirmed + BATCH)


def test_a_producer_goes_on_elsewhere_after_a_loss(broker: OneBroker) -> None:
    """After a loss it writes new numbers only, and only those are due."""
    producer = NumberedProducer(TOPIC)
    producer.start(broker.source)
    wait_until(lambda: producer.produced >= BATCH, "numbers")
    producer.abandon()
    first = producer.produced

    producer.start(broker.source)
    wait_until(lambda: producer.produced >= first + BATCH, "new numbers")
    producer.stop()

    assert producer.due == range(first, producer.produced)
    producer.wait_abandoned()


def test_the_mirror_turned_round_copies_only_what_is_new(pair: LocalStack) -> None:
    """What came from the source does not return there; what is written on the target does."""
    _write(pair.source, "a", "b")
    wait_until(lambda: _is_copied(pair), "the copies")

    turn_round(pair, TOPIC, {TOPIC: {0: 2}})
    _write(pair.target, "c")

    wait_until(lambda: b"c" in _read(pair.source, 1), "the new record at home")
    assert _read(pair.source, 1) == [b"a", b"b", b"c"]
    assert _read(pair.target, 1) == [b"a", b"b", b"c"]


def _is_copied(pair: LocalStack) -> bool:
    target = KafkaCluster(name="target", config={"bootstrap.servers": pair.target})
    return TOPIC in target.topics([TOPIC]) and len(_read(pair.target, 1)) == 2


def test_a_storage_that_is_paused_does_not_answer(tmp_path: Path) -> None:
    """It takes connections and hangs; when it answers again, it has what it held."""
    with S3Storage(tmp_path) as storage:
        place = f"{storage.url}/{BUCKET}/{uuid4()}"
        httpx.put(place, content=b"kept", timeout=60).raise_for_status()
        assert _size(storage) == 4

        storage.pause()
        with pytest.raises(httpx.ReadTimeout):
            httpx.head(place, timeout=1)
        storage.resume()

        assert _size(storage) == 4


def _size(storage: S3Storage) -> int:
    """Return the bytes of the only object."""
    client = boto3.client(
        "s3",
        endpoint_url=storage.url,
        region_name=REGION,
        aws_access_key_id=USER,
        aws_secret_access_key=PASSWORD,
    )
    try:
        (held,) = client.list_objects_v2(Bucket=BUCKET)["Contents"]
        return int(held["Size"])
    finally:
        client.close()


def test_a_storage_that_is_killed_refuses_connections(tmp_path: Path) -> None:
    """Its address is nobody's."""
    with S3Storage(tmp_path) as storage:
        storage.kill()
        with pytest.raises(httpx.ConnectError):
            httpx.get(storage.url, timeout=10)
