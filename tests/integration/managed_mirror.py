"""A mirror that the operators manage, under writes, and the truth of its copies.

The value of each record is its offset on the source.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from confluent_kafka import Producer

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Translation
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.operators.connector_offsets import (
    AlterConnectorOffsetsOperator,
    ReadConnectorOffsetsOperator,
)
from airflow_mm2_offsets.operators.connector_states import SetConnectorStateOperator
from airflow_mm2_offsets.operators.connectors import ApplyMirrorMakerOperator
from stack.mirror import Stack
from stack.topics import create_topic
from tests.integration.mirrors import topic_partitions
from tests.unit.operators.worker import Worker

WORDS = ("copies again", "skips records")
SETTINGS: Mapping[str, str | int] = {
    "source.cluster.bootstrap.servers": "${env:SOURCE_BOOTSTRAP}",
    "target.cluster.bootstrap.servers": "${env:TARGET_BOOTSTRAP}",
    # There is one broker on each side.
    "replication.factor": 1,
    "offset-syncs.topic.replication.factor": 1,
    "checkpoints.topic.replication.factor": 1,
    "heartbeats.topic.replication.factor": 1,
    "refresh.topics.interval.seconds": 1,
    "sync.topic.acls.enabled": "false",
}


class ManagedMirror:
    """A mirror of topics that begin with its name."""

    def __init__(self, stack: Stack, worker: Worker, url: str) -> None:
        self.stack, self.worker, self.url = stack, worker, url
        self.name = f"c{uuid4().hex[:8]}"
        self.source_connector = f"{self.name}-source"

    def use_connections(self, patch: pytest.MonkeyPatch) -> None:
        """Let Airflow find the clusters and Connect."""
        user, password = self.stack.connect_login or (None, None)
        extra = {
            "source_alias": f"{self.name}-a",
            "target_alias": f"{self.name}-b",
            "offset_syncs_topic_location": "target",
            "connect_url": self.url,
        }
        connections: dict[str, dict[str, Any]] = {
            "mm2_default": {
                "conn_type": "mm2",
                "login": user,
                "password": password,
                "extra": extra,
            }
        }
        for side in ("source", "target"):
            servers = {"bootstrap.servers": getattr(self.stack, side)}
            connections[f"kafka_{side}"] = {"conn_type": "kafka", "extra": servers}
        for conn_id, connection in connections.items():
            patch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))

    @property
    def pair(self) -> ClusterPair:
        """The pair of clusters as the operators see it."""
        return Mm2OffsetHook().get_conn()

    @property
    def connect(self) -> ConnectClient:
        """Connect as the operators see it."""
        connect = self.pair.connect
        assert connect is not None
        return connect

    def run(self, kind: type[BaseOperator], **settings: Any) -> Any:  # noqa: ANN401 - JSON
        """Run a task to its end, and return its XCom."""
        with DAG("mirror", schedule=None):
            task = kind(task_id="task", **settings)
        self.worker.run(task)
        return self.worker.xcoms["task", "return_value"]

    def apply(self, *, is_dry_run: bool = False, **further: Any) -> Any:  # noqa: ANN401 - JSON
        """Create or update the connectors by a description with further fields."""
        mirror = {"topics": f"{self.name}.*", "name": self.name, "settings": SETTINGS, **further}
        return self.run(
            ApplyMirrorMakerOperator,
            mirror=mirror,
            is_dry_run=is_dry_run,
            poll_interval=0.2,
            timeout=600,
        )

    def set_state(self, state: str, connector: str | None = None) -> None:
        """Let the source connector run or stop."""
        self.run(
            SetConnectorStateOperator,
            connector=connector or self.source_connector,
            state=state,
            poll_interval=0.1,
        )

    def read_offsets(self, connector: str | None = None) -> list[dict[str, Any]]:
        """Return the offsets of the stopped source connector."""
        name = connector or self.source_connector
        told = self.run(ReadConnectorOffsetsOperator, connector=name)
        offsets: list[dict[str, Any]] = told["offsets"]
        return offsets

    def alter(self, offsets: object, connector: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """Alter the offsets of the stopped source connector, with a new backup."""
        return self.run(
            AlterConnectorOffsetsOperator,
            connector=connector or self.source_connector,
            offsets=offsets,
            backup=self.read_offsets(connector),
            confirm=WORDS,
        )

    def new_topic(self, partitions: int = 1) -> str:
        """Create a topic that is mirrored."""
        topic = f"{self.name}-{uuid4().hex[:6]}"
        create_topic(self.stack.source, topic, partitions)
        return topic

    def copies(self, topic: str) -> dict[int, dict[int, list[int]]]:
        """Return the target offsets of each source record, by partition and source offset."""
        name = self.pair.naming.target_topic(topic)
        infos = self.pair.target.topics([name])
        count = infos[name].partitions if name in infos else 0
        found: dict[int, dict[int, list[int]]] = {number: {} for number in range(count)}
        starts = dict.fromkeys(topic_partitions(name, range(count)), 0)
        for record in chain.from_iterable(drain(self.pair.target, starts)):
            at = found[record.partition()].setdefault(int(record.value() or b""), [])
            at.append(record.offset())
        return found

    def delete(self) -> None:
        """Delete the connectors that Connect has of this mirror."""
        for name in self.connect.configs():
            if name.startswith(self.name):
                with self.stack.connect_client() as client:
                    client.delete(f"{self.url}/connectors/{name}")


class NumberedWriter:
    """The sole writer of a topic, in a thread or at once."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.ends = [0] * partitions
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})

    def write(self, count: int) -> None:
        """Write to each partition."""
        for partition, end in enumerate(self.ends):
            for number in range(end, end + count):
                self._producer.produce(self.topic, b"%d" % number, partition=partition)
            self.ends[partition] += count
        assert self._producer.flush(30) == 0

    @contextmanager
    def writing(self, count: int, pause: float) -> Iterator[None]:
        """Go on writing so many records at a time."""
        over = Event()

        def go_on() -> None:
            while not over.wait(pause):
                self.write(count)

        thread = Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class Truth:
    """The largest target position of each source position that misses no copied record."""

    def __init__(self, copies: Mapping[int, list[int]]) -> None:
        self._sources = sorted(copies)
        lasts = [max(copies[source]) for source in self._sources]
        self._least = lasts.copy()
        for at in range(len(lasts) - 2, -1, -1):
            self._least[at] = min(lasts[at], self._least[at + 1])

    def of(self, position: int) -> int | None:
        """Return the truth; None where no record at or after the position was copied."""
        at = bisect_left(self._sources, position)
        return self._least[at] if at < len(self._sources) else None

    def is_above(self, answer: Translation) -> bool:
        """Tell whether an answer loses a record."""
        truth = self.of(answer.position)
        start = answer.target
        return start is not None and truth is not None and start > truth


def source_cluster(stack: Stack) -> KafkaCluster:
    """Return the source, as a test reads it."""
    return KafkaCluster(name="source", config={"bootstrap.servers": stack.source})
