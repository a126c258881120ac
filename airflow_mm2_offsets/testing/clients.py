"""Replaces confluent-kafka's clients by clients of clusters in memory; ``simulation`` calls it.

librdkafka's own mock cluster (``test.mock.num.brokers``) needs sockets, describes no topics, has
no transactions and keeps only the last records. These clients answer in microseconds.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.errors import TopicNotFoundError
from airflow_mm2_offsets.kafka import clients
from airflow_mm2_offsets.kafka.network_path import StepResult, walk
from airflow_mm2_offsets.testing.clusters import InMemoryCluster, find_cluster
from airflow_mm2_offsets.testing.descriptions import (
    UNKNOWN_TOPIC,
    DescribingAdmin,
    done,
    failed,
)
from airflow_mm2_offsets.testing.logs import PartitionLog, Record
from airflow_mm2_offsets.testing.messages import Message

if TYPE_CHECKING:
    from concurrent.futures import Future

_PARTITION_EOF = KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - the library's local error
_TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - the library's local error
_NO_OFFSET = -1


@contextmanager
def in_memory_clients() -> Iterator[None]:
    """Let new Kafka clients find the clusters in memory by ``bootstrap.servers``.

    Clients of other addresses are real ones.
    """
    with patch.multiple(
        clients,
        Consumer=_choose(_Consumer, Consumer),
        AdminClient=_choose(_Admin, AdminClient),
        walk=_walk,
    ):
        yield


def _walk(cluster: str, settings: Mapping[str, object], timeout: float) -> Iterator[StepResult]:
    """Yield no step to a cluster in memory: there is no network on the way."""
    if find_cluster(str(settings["bootstrap.servers"])) is None:
        yield from walk(cluster, settings, timeout)


def _choose(in_memory: type["_Client"], real: Callable[..., Any]) -> Callable[..., Any]:
    def make(settings: Mapping[str, Any], **options: Any) -> Any:  # noqa: ANN401 - two kinds
        cluster = find_cluster(settings["bootstrap.servers"])
        return real(settings, **options) if cluster is None else in_memory(cluster, settings)

    return make


class _Client:
    def __init__(self, cluster: InMemoryCluster, settings: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._is_read_committed = settings.get("isolation.level") == "read_committed"
        self._on_error: Callable[[KafkaError], None] = settings["error_cb"]

    def _outage(self) -> KafkaException | None:
        """Call ``before_answer``; return the error of a cluster that does not run."""
        self._cluster.before_answer()
        if self._cluster.is_running:
            return None
        error = KafkaError(KafkaError._TRANSPORT, "the in-memory cluster does not run")  # noqa: SLF001
        self._on_error(error)
        return KafkaException(error)

    def list_topics(self, _topic: str | None = None, *, timeout: float) -> SimpleNamespace:
        if outage := self._outage():
            time.sleep(timeout)  # a real client waits as long for a broker
            raise outage
        host, port = self._cluster.bootstrap_servers.split(":")
        return SimpleNamespace(
            cluster_id=self._cluster.cluster_id,
            topics={name: self._partitions(name) for name in list(self._cluster.topics)},
            brokers={1: SimpleNamespace(host=host, port=int(port))},
        )

    def _partitions(self, topic: str) -> SimpleNamespace:
        numbers = range(len(self._cluster.topics[topic].partitions))
        leaderless = {number for name, number in self._cluster.leaderless if name == topic}
        leaders = {
            each: SimpleNamespace(leader=-1 if each in leaderless else 1) for each in numbers
        }
        return SimpleNamespace(partitions=leaders)

    def poll(self, _: float) -> None:
        pass

    def close(self) -> None:
        pass


class _Admin(_Client, DescribingAdmin):
    def describe_topics(self, names: TopicCollection, **_: object) -> dict[str, "Future[Any]"]:
        outage = self._outage()
        return {name: self._describe(name, outage) for name in names.topic_names}

    def _describe(self, name: str, outage: KafkaException | None) -> "Future[Any]":
        if outage is not None:
            return failed(outage)
        topic = self._cluster.topics.get(name)
        if topic is None:
            return failed(KafkaException(UNKNOWN_TOPIC))
        return done(
            SimpleNamespace(
                name=name,
                partitions=[
                    SimpleNamespace(replicas=range(topic.replicas)) for _ in topic.partitions
                ],
                topic_id=topic.topic_id,
                authorized_operations=None,
            )
        )

    def list_offsets(
        self, specs: Mapping[TopicPartition, Any], **_: object
    ) -> dict[TopicPartition, "Future[Any]"]:
        if outage := self._outage():
            return dict.fromkeys(specs, failed(outage))
        return {
            partition: self._first_since(partition, spec._value)  # noqa: SLF001 - no other way
            for partition, spec in specs.items()
        }

    def _first_since(self, partition: TopicPartition, timestamp: int) -> "Future[Any]":
        try:
            records = self._cluster.log(partition.topic, partition.partition).committed_records(0)
        except TopicNotFoundError:
            return failed(KafkaException(UNKNOWN_TOPIC))
        offsets = (offset for offset, record in records if record.timestamp >= timestamp)
        return done(SimpleNamespace(offset=next(offsets, _NO_OFFSET)))


class _Consumer(_Client):
    def __init__(self, cluster: InMemoryCluster, settings: Mapping[str, Any]) -> None:
        super().__init__(cluster, settings)
        self._paused: set[tuple[str, int]] = set()
        """As librdkafka's, it outlives ``assign``."""

    def offsets_for_times(
        self, partitions: Iterable[TopicPartition], **_: object
    ) -> list[SimpleNamespace]:
        if outage := self._outage():
            raise outage
        requested = list(partitions)
        if self._cluster.leaderless & {(each.topic, each.partition) for each in requested}:
            raise KafkaException(_TIMED_OUT)  # a real client waits for a leader
        return [self._watermark(partition) for partition in requested]

    def _watermark(self, requested: TopicPartition) -> SimpleNamespace:
        result = SimpleNamespace(topic=requested.topic, partition=requested.partition, error=None)
        try:
            log = self._cluster.log(requested.topic, requested.partition)
        except TopicNotFoundError:
            result.offset, result.error = _NO_OFFSET, UNKNOWN_TOPIC
        else:
            result.offset = log.low if requested.offset == OFFSET_BEGINNING else self._end(log)
        return result

    def _end(self, log: PartitionLog) -> int:
        return log.stable if self._is_read_committed else log.high

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._outage()
        self._reading = {
            (start.topic, start.partition): self._messages(start) for start in partitions
        }

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused |= {(each.topic, each.partition) for each in partitions}

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused -= {(each.topic, each.partition) for each in partitions}

    def consume(self, most: int, *, timeout: float) -> list["Message"]:
        if not self._cluster.is_running:
            time.sleep(timeout)
            return []
        for partition, messages in list(self._reading.items()):
            if partition in self._paused:
                continue
            batch = list(islice(messages, most))
            if batch:
                return batch
            del self._reading[partition]
        return []

    def _messages(self, start: TopicPartition) -> Iterator["Message"]:
        try:
            log = self._cluster.log(start.topic, start.partition)
        except TopicNotFoundError as error:
            raise KafkaException(UNKNOWN_TOPIC) from error
        append_time = self._cluster.topics[start.topic].log_append_time
        kind = TIMESTAMP_LOG_APPEND_TIME if append_time else TIMESTAMP_CREATE_TIME
        end = self._end(log)
        for offset, record in log.committed_records(start.offset):
            if offset >= end:
                break
            yield Message(start, offset, record, kind)
        yield Message(start, end, Record(None, None), kind, _PARTITION_EOF)
