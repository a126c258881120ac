"""Kafka clusters in memory: what ``kafka/`` asks of confluent-kafka, answered without a server.

A plan takes a millisecond on them. ``memory_clients()`` lets every client that is started
meanwhile look for its cluster here, by its bootstrap.servers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch
from weakref import WeakValueDictionary

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)

from airflow_mm2_offsets.kafka import clients
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

_PARTITION_EOF = KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - the library's local error
_UNKNOWN = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


class MemoryRecord(NamedTuple):
    """What a consumer gets, at its offset."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    append_time: bool = False


@dataclass(slots=True, kw_only=True)
class MemoryPartition:
    """A partition as it is now."""

    low: int = 0
    high: int = 0
    stable: int | None = None
    """Where the first open transaction begins, if there is one."""
    records: Sequence[MemoryRecord] = ()
    """What a read_committed consumer gets, by offset."""


@dataclass(slots=True, kw_only=True)
class MemoryTopic:
    """A topic as it is now."""

    id: str
    partitions: list[MemoryPartition]


@dataclass(slots=True, kw_only=True, weakref_slot=True)
class MemoryBroker:
    """A cluster; who changes it sees the change in the next answer."""

    cluster_id: str = "memory"
    topics: dict[str, MemoryTopic] = field(default_factory=dict)
    meanwhile: Callable[[], None] = field(default=lambda: None, repr=False)
    """Called before each answer: what happens while others ask."""
    servers: str = field(init=False)

    def __post_init__(self) -> None:
        """Take an address."""
        self.servers = f"memory-{next(_NUMBERS)}"
        _BROKERS[self.servers] = self

    def cluster(self, name: str) -> KafkaCluster:
        """Return how to reach it."""
        return KafkaCluster(name=name, config={"bootstrap.servers": self.servers}, timeout=5.0)

    def partition(self, topic: str, number: int) -> MemoryPartition:
        """Return a partition, or raise what a client raises where there is none."""
        if topic not in self.topics or number >= len(self.topics[topic].partitions):
            raise KafkaException(_UNKNOWN)
        return self.topics[topic].partitions[number]


_NUMBERS = count()
_BROKERS: WeakValueDictionary[str, MemoryBroker] = WeakValueDictionary()


@contextmanager
def memory_clients() -> Iterator[None]:
    """Let clients that are started meanwhile ask clusters in memory."""
    with patch.multiple(clients, Consumer=_Consumer, AdminClient=_Admin):
        yield


class _Client:
    def __init__(self, settings: Mapping[str, Any], **_: object) -> None:
        self._broker = _BROKERS[settings["bootstrap.servers"]]
        self._committed = settings.get("isolation.level") == "read_committed"

    def list_topics(self, _topic: str | None = None, **_: object) -> SimpleNamespace:
        self._broker.meanwhile()
        return SimpleNamespace(
            cluster_id=self._broker.cluster_id, topics=dict(self._broker.topics), brokers={}
        )

    def poll(self, _: float) -> None:
        pass

    def close(self) -> None:
        pass


class _Admin(_Client):
    def describe_topics(self, names: TopicCollection, **_: object) -> dict[str, "Future[Any]"]:
        self._broker.meanwhile()
        return {name: self._describe(name) for name in names.topic_names}

    def _describe(self, name: str) -> "Future[Any]":
        future: Future[Any] = Future()
        if topic := self._broker.topics.get(name):
            future.set_result(
                SimpleNamespace(name=name, partitions=topic.partitions, topic_id=topic.id)
            )
        else:
            future.set_exception(KafkaException(_UNKNOWN))
        return future


class _Consumer(_Client):
    def offsets_for_times(
        self, places: Iterable[TopicPartition], **_: object
    ) -> list[TopicPartition]:
        self._broker.meanwhile()
        return [TopicPartition(each.topic, each.partition, self._edge(each)) for each in places]

    def _edge(self, place: TopicPartition) -> int:
        partition = self._broker.partition(place.topic, place.partition)
        return partition.low if place.offset == OFFSET_BEGINNING else self._end(partition)

    def _end(self, partition: MemoryPartition) -> int:
        if self._committed and partition.stable is not None:
            return partition.stable
        return partition.high

    def assign(self, places: Iterable[TopicPartition]) -> None:
        self._broker.meanwhile()
        self._reading = {(each.topic, each.partition): self._messages(each) for each in places}

    def pause(self, places: Iterable[TopicPartition]) -> None:
        for each in places:
            self._reading.pop((each.topic, each.partition), None)

    def consume(self, most: int, **_: object) -> list["_Message"]:
        for place, messages in list(self._reading.items()):
            found = [message for message, _ in zip(messages, range(most), strict=False)]
            if found:
                return found
            del self._reading[place]
        return []

    def _messages(self, place: TopicPartition) -> Iterator["_Message"]:
        partition = self._broker.partition(place.topic, place.partition)
        end = self._end(partition)
        for record in partition.records:
            if place.offset <= record.offset < end:
                yield _Message(place.topic, place.partition, record)
        yield _Message(place.topic, place.partition, MemoryRecord(end, None, None), _PARTITION_EOF)


class _Message:
    """What ``drain`` asks of a message."""

    __slots__ = ("_error", "_partition", "_record", "_topic")

    def __init__(
        self, topic: str, partition: int, record: MemoryRecord, error: KafkaError | None = None
    ) -> None:
        self._topic, self._partition, self._record = topic, partition, record
        self._error = error

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._record.offset

    def key(self) -> bytes | None:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def timestamp(self) -> tuple[int, int]:
        return 2 if self._record.append_time else 1, self._record.timestamp

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self._record.headers) or None
