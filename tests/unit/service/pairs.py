"""Two clusters in the test's own process, with what MirrorMaker 2 would have made of them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import httpx
from confluent_kafka import Producer

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    Naming,
    OffsetSync,
    ReplicationPolicy,
    SyncsLocation,
    encode_offset_sync,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.service.pair import ClusterPair
from tests.unit.kafka.brokers import MockBroker

BORN = 1_800_000_000_000
"""The timestamp of record 0; each has its own, equal on both sides."""


class Pair:
    """A source, a target and syncs on the target; a topic has four partitions."""

    def __init__(self) -> None:
        self._source, self._target = MockBroker(), MockBroker()
        self.pair = ClusterPair(
            source=self._source.cluster(),
            target=KafkaCluster(
                name="target", config={"bootstrap.servers": self._target.servers}, timeout=5.0
            ),
            naming=Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY),
            syncs_location=SyncsLocation.TARGET,
        )

    def write(self, topic: str, numbers: Iterable[int], partition: int = 0) -> None:
        """Write numbered records to the source."""
        _write(self._source, topic, numbers, partition)

    def copy(self, topic: str, numbers: Iterable[int], partition: int = 0) -> None:
        """Write numbered records to the target."""
        _write(self._target, topic, numbers, partition)

    def sync(self, topic: str, *syncs: tuple[int, int], partition: int = 0) -> None:
        """Write offset syncs."""
        self._target.write(
            self.pair.syncs_topic,
            [
                encode_offset_sync(
                    OffsetSync(topic=topic, partition=partition, upstream=up, downstream=down)
                )
                for up, down in syncs
            ],
        )

    def stop(self) -> None:
        self._source.stop()
        self._target.stop()


def _write(broker: MockBroker, topic: str, numbers: Iterable[int], partition: int) -> None:
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 1})
    for each in numbers:
        producer.produce(topic, b"%d" % each, b"key", partition, timestamp=BORN + each)
    assert producer.flush(10) == 0


def connect(
    offsets: Mapping[tuple[str, int], int] | None = None,
    *,
    state: str = "RUNNING",
    config: Mapping[str, str] = MappingProxyType({}),
    tasks: Iterable[Mapping[str, Any]] = ({"id": 0, "state": "RUNNING"},),
) -> ConnectClient:
    """Return a Connect with one connector from a to b, and how far it says that it has copied.

    Args:
        offsets: The last copied offsets.
        state: The connector's.
        config: What its configuration says beside its class and the aliases.
        tasks: Their states.
    """
    config = {
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "offset-syncs.topic.location": "target",
        **config,
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
    }
    answers = {
        "/": {"version": "4.1.0"},
        "/connectors": {"mirror": {"info": {"config": config}}},
        "/connectors/mirror/config": config,
        "/connectors/mirror/status": {"connector": {"state": state}, "tasks": list(tasks)},
        "/connectors/mirror/offsets": {
            "offsets": [
                {
                    "partition": {"cluster": "a", "topic": topic, "partition": partition},
                    "offset": {"offset": offset},
                }
                for (topic, partition), offset in (offsets or {}).items()
            ]
        },
    }
    return ConnectClient(
        url="http://connect:8083",
        transport=httpx.MockTransport(
            lambda request: httpx.Response(200, json=answers[request.url.path])
        ),
    )
