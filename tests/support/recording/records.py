"""What is written to the source of a recorded run, and what is read from both sides after it."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from confluent_kafka import Producer

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain
from tests.integration.mirrors import DROP

PARTITIONS = 2
SEND_SECONDS = 60


@dataclass(kw_only=True)
class NumberedRecords:
    """Writes records whose values are numbers, and knows which of them are to be copied."""

    servers: str
    topic: str
    chance: random.Random
    copied: set[bytes] = field(default_factory=set)
    """The values of all that MirrorMaker 2 is to copy."""
    _number: int = 0

    def plain(self, count: int, *, dropped: float = 0) -> None:
        """Write records; mark that share of them for the filter."""
        producer = Producer({"bootstrap.servers": self.servers})
        for value in self._values(count):
            drop = self.chance.random() < dropped
            self._produce(producer, value, drop=drop)
            if not drop:
                self.copied.add(value)
        assert producer.flush(SEND_SECONDS) == 0

    def transactions(self, count: int, *, aborted: float) -> None:
        """Write records in transactions of up to 40, and abort that share of the transactions."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": self.topic})
        producer.init_transactions(SEND_SECONDS)
        values = list(self._values(count))
        while values:
            size = self.chance.randint(1, 40)
            some, values = values[:size], values[size:]
            producer.begin_transaction()
            for value in some:
                self._produce(producer, value)
            # What was only queued would be dropped by the abort.
            assert producer.flush(SEND_SECONDS) == 0
            if self.chance.random() < aborted:
                producer.abort_transaction(SEND_SECONDS)
            else:
                producer.commit_transaction(SEND_SECONDS)
                self.copied.update(some)

    def _values(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            self._number += 1
            yield b"%d" % self._number

    def _produce(self, producer: Producer, value: bytes, *, drop: bool = False) -> None:
        # One partition gets more than the other, so that their offsets differ.
        partition = int(self.chance.random() < 0.4)
        headers: dict[str, str | bytes | None] = {DROP: b""} if drop else {}
        producer.produce(self.topic, value, partition=partition, headers=headers)


def read(
    cluster: KafkaCluster, topic: str, partitions: int, isolation: str = "read_committed"
) -> list[Record]:
    """Return every record of a topic; none where the topic does not exist yet."""
    if topic not in cluster.topics([topic]):
        return []
    starts = dict.fromkeys(_partitions(topic, partitions), 0)
    return list(chain.from_iterable(drain(cluster, starts, isolation=isolation)))


def watermarks(cluster: KafkaCluster, topic: str) -> dict[int, Watermarks]:
    """Return the watermarks of each partition."""
    read_now = cluster.watermarks(_partitions(topic, PARTITIONS))
    return {each.partition: to for each, to in read_now.items()}


def _partitions(topic: str, count: int) -> Iterable[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in range(count)]
