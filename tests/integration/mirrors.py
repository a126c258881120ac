"""MirrorMaker 2 connectors of single tests, beside the stack's, with other aliases and syncs."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from uuid import uuid4

import httpx
from confluent_kafka import Producer

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    Naming,
    Positions,
    ReplicationPolicy,
    SyncsLocation,
    TopicPartition,
)
from airflow_mm2_offsets.errors import ConnectError, SyncsTopicError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.plan import still_copying
from stack.mirror import CONFIG, SOURCE_CONNECTOR, Stack
from stack.topics import create_topic
from stack.waiting import wait_until

DROP = "drop"
"""The header of the records that ``FILTER`` drops."""

FILTER = {
    "predicates": "marked",
    "predicates.marked.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.marked.name": DROP,
    "transforms": "filter",
    "transforms.filter.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.filter.predicate": "marked",
}
"""A single message transform (SMT) that drops records."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """A MirrorSourceConnector that copies the topics that start with its name."""

    stack: Stack
    name: str

    @cached_property
    def pair(self) -> ClusterPair:
        """The pair of clusters as the package sees it."""
        user, password = self.stack.connect_login or (None, None)
        return ClusterPair(
            source=KafkaCluster(name="source", config={"bootstrap.servers": self.stack.source}),
            target=KafkaCluster(name="target", config={"bootstrap.servers": self.stack.target}),
            naming=Naming(
                source_alias=f"{self.name}-a",
                target_alias=f"{self.name}-b",
                policy=ReplicationPolicy.IDENTITY,
            ),
            syncs_location=SyncsLocation.TARGET,
            connect=ConnectClient(url=self.stack.connect_url, username=user, password=password),
        )

    def configure(self, **overrides: str | int) -> None:
        """Create the connector, or change it."""
        config = json.loads((CONFIG / f"{SOURCE_CONNECTOR}.json").read_text())
        config |= self.stack.connector_logins(SOURCE_CONNECTOR)
        config |= {
            "source.cluster.alias": self.pair.naming.source_alias,
            "target.cluster.alias": self.pair.naming.target_alias,
            "topics": f"{self.name}.*",
            "heartbeats.replication.enabled": "false",
            "refresh.topics.interval.seconds": "1",
        }
        config |= {key: str(to) for key, to in overrides.items()}
        self.ask("PUT", "/config", json=config)

    def ask(self, method: str, path: str = "", **kwargs: object) -> httpx.Response:
        """Send a request about the connector."""
        path = f"/connectors/{self.name}{path}"
        with self.stack.connect_client() as client:
            return client.request(method, path, **kwargs).raise_for_status()  # type: ignore[arg-type]

    def states(self) -> list[str]:
        """Return the states of the connector and its tasks."""
        try:
            status = self.ask("GET", "/status").json()
        except httpx.HTTPError:
            return []
        return [each["state"] for each in (status["connector"], *status["tasks"])]

    def wait_running(self) -> None:
        """Wait until the connector and a task run."""
        wait_until(
            lambda: len(states := self.states()) > 1 and set(states) == {"RUNNING"}, self.name
        )

    def committed(self, topic: str) -> dict[int, int]:
        """Return the last source offset of each partition that the connector has noted."""
        assert self.pair.connect is not None
        try:
            offsets = self.pair.connect.offsets(self.name)
        except ConnectError:
            return {}  # It was made a moment ago.
        return {number: last for (_, name, number), last in offsets.items() if name == topic}

    def create_topic(self, partitions: int) -> str:
        """Make a topic on the source that the connector copies, and return its name."""
        name = f"{self.name}-{uuid4().hex[:8]}"
        create_topic(self.stack.source, name, partitions)
        return name

    def ends(self, topic: str) -> dict[int, int]:
        """Return the end of each partition of a topic on the source."""
        count = self.pair.source.topics([topic])[topic].partitions
        watermarks = self.pair.source.watermarks(topic_partitions(topic, range(count)))
        return {number: each.high for (_, number), each in watermarks.items()}

    def has_begun(self, writer: "Writer") -> bool:
        """Tell whether MirrorMaker 2 has written a sync of each partition that was written to.

        Of many records at once it may leave out the first sync, on a busy machine, for a later one.
        Of one record it can't.
        """
        try:
            index = read_syncs(self.pair.syncs_cluster, self.pair.syncs_topic).index
        except SyncsTopicError:
            return False
        return all(TopicPartition(writer.topic, each) in index.partitions for each in writer.last)

    def has_noted(self, writer: "Writer") -> bool:
        """Tell whether the connector has noted the last record to copy of each partition."""
        topic = writer.topic
        newest = {
            each.partition(): each.offset()
            for each in read(self.pair.source, topic, writer.last)
            if each.value() == writer.last[each.partition()]
        }
        return newest.keys() == writer.last.keys() and self.committed(topic) == newest

    def has_copied(self, writer: "Writer") -> bool:
        """Tell whether the last committed and kept record of each partition is on the target."""
        topic = writer.topic
        if topic not in self.pair.target.topics([topic]):
            return False
        records = read(self.pair.target, topic, writer.last)
        return {each.partition(): each.value() for each in records} == writer.last


class Writer:
    """Writes numbered records to a topic of the source."""

    def __init__(self, mirror: Mirror, topic: str) -> None:
        servers = {"bootstrap.servers": mirror.stack.source}
        self.mirror = mirror
        self.topic = topic
        self.last: dict[int, bytes] = {}
        """The last record of each partition that is to be copied."""
        self._number = 0
        self._born = int(time.time() * 1000)
        self._plain = Producer(servers)
        self._transactional = Producer(servers | {"transactional.id": topic})
        self._transactional.init_transactions(30)

    def write(self, counts: Mapping[int, int], *, drop: bool = False) -> None:
        """Write to partitions as many records as they map to; ``drop`` marks them for the SMT."""
        for partition in _spread(counts):
            self._produce(self._plain, partition, drop=drop)
        assert self._plain.flush(30) == 0

    def write_equal(self, partition: int, contents: Iterable[int]) -> None:
        """Write records that are equal, in all that they hold, where their content is."""
        for content in contents:
            self.last[partition] = value = b"equal %d" % content
            self._plain.produce(self.topic, value, partition=partition, timestamp=self._born)
        assert self._plain.flush(30) == 0

    def begin(self, counts: Mapping[int, int]) -> None:
        """Begin a transaction and write to it, without an end."""
        self._transactional.begin_transaction()
        for partition in _spread(counts):
            self._produce(self._transactional, partition)
        assert self._transactional.flush(30) == 0

    def commit(self) -> None:
        """Commit what was begun."""
        self._transactional.commit_transaction(30)
        self._wait_ended()

    def abort(self, counts: Mapping[int, int]) -> None:
        """Write a transaction and abort it."""
        last = dict(self.last)
        self.begin(counts)
        self._transactional.abort_transaction(30)
        self._wait_ended()
        self.last = last

    def _wait_ended(self) -> None:
        wait_ended(self.mirror.pair.source, self.topic)

    def _produce(self, producer: Producer, partition: int, *, drop: bool = False) -> None:
        self._number += 1
        value = b"%d" % self._number
        headers: dict[str, str | bytes | None] = {DROP: b""} if drop else {}
        producer.produce(self.topic, value, b"key", partition, headers=headers)
        if not drop:
            self.last[partition] = value


def _spread(counts: Mapping[int, int]) -> Iterator[int]:
    return chain.from_iterable(repeat(partition, count) for partition, count in counts.items())


def read(cluster: KafkaCluster, topic: str, partitions: Iterable[int]) -> list[Record]:
    """Return all that a read_committed consumer gets of partitions of a topic."""
    starts = dict.fromkeys(topic_partitions(topic, partitions), 0)
    return list(chain.from_iterable(drain(cluster, starts, isolation="read_committed")))


def wait_ended(cluster: KafkaCluster, *topics: str) -> None:
    """Wait until no transaction is open in topics, so that a read_committed consumer gets all.

    A broker confirms a commit or an abort before it has written the markers: until then the last
    stable offset lies below the transaction, and the next records may come before its marker.
    """
    found = cluster.topics(topics)
    keys = [key for name in topics for key in topic_partitions(name, range(found[name].partitions))]

    def are_ended() -> bool:
        stable = cluster.watermarks(keys, isolation="read_committed")
        return stable == cluster.watermarks(keys)

    wait_until(are_ended, f"the markers of transactions in {', '.join(topics)}")


def wait_copied(pair: ClusterPair, positions: Positions) -> None:
    """Wait until MirrorMaker 2 has begun, and has processed all that lies before the positions."""

    def is_copied() -> bool:
        names = {topic: pair.naming.target_topic(topic) for topic in positions}
        if len(pair.target.topics(names.values())) < len(names):
            return False
        try:
            return not still_copying(pair, positions)
        except SyncsTopicError:
            return False  # It copies a topic's first record before it writes its first sync.

    wait_until(is_copied, f"MirrorMaker 2 to copy {', '.join(positions)}")


def topic_partitions(topic: str, partitions: Iterable[int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in partitions]


@contextmanager
def mirror(stack: Stack, name: str | None = None) -> Iterator[Mirror]:
    """Yield a mirror that is not configured yet, and delete it afterwards."""
    made = Mirror(stack=stack, name=name or f"m{uuid4().hex[:8]}")
    try:
        yield made
    finally:
        if made.states():
            made.ask("DELETE")
